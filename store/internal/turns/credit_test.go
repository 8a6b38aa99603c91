package turns

import (
	"math"
	"slices"
	"testing"

	"github.com/pawlwork/pawl/job"
)

// played is a queue whose gates have jobs, and from which claims take.
type played struct {
	*Turns[int]
	t     *testing.T
	waits map[int64]int
	took  map[int64]int
	last  []int64 // gates of the last answer, in order
}

func play(t *testing.T) *played {
	return &played{Turns: scanned(t), t: t, waits: map[int64]int{}, took: map[int64]int{}}
}

func (p *played) enqueue(gate int64, jobs int) {
	p.waits[gate] += jobs
	p.Note("q", gate, "k", "", nil)
}

// claim takes jobs as a store does, and says how many of each gate.
func (p *played) claim(limit int) map[int64]int {
	p.t.Helper()
	list, left, more := p.Next("q", 100, noon)
	if len(list) == 0 {
		return nil
	}
	deal := make([]job.Turn, len(list))
	for i := range list {
		deal[i] = job.Turn{Weight: 1, Room: math.MaxInt32, Credit: int(list[i].Credit)}
	}
	if more {
		p.t.Fatal("there are more")
	}
	ahead, rest := job.DealAhead(deal, limit)
	given, next, rest := job.Deal(deal, left, rest)
	visits := make([]Visit[int], len(list))
	taken := make([]Taken[int64], len(list))
	got := map[int64]int{}
	for i := range list {
		n := list[i].Number
		v := Visit[int]{Of: &list[i], Weight: 1, Ahead: ahead[i], Took: min(given[i]+ahead[i], p.waits[n])}
		p.waits[n] -= v.Took
		p.took[n] += v.Took
		if v.Gone = v.Took == 0 && given[i] > 0; v.Took > 0 {
			got[n] = v.Took
		}
		visits[i], taken[i] = v, Taken[int64]{Jobs: slices.Repeat([]int64{n}, v.Took), Ahead: ahead[i]}
	}
	p.Settle("q", visits, list[next].Number, rest)
	p.last = Answer(taken, func(*int64) bool { return false }, func(*int64) {})
	return got
}

// Who had nothing while others had turns comes before them, with what it missed.
func TestJ19_WhoComesSeldomGoesAhead(t *testing.T) {
	p := play(t)
	p.enqueue(1, 100_000)
	for range 10 {
		p.claim(20)
	}
	p.enqueue(2, 100)
	claims := 0
	for p.waits[2] > 0 {
		got := p.claim(20)
		if claims++; got[1] < 1 {
			t.Fatalf("the other had %d of 20", got[1])
		}
		if p.last[0] != 2 {
			t.Fatalf("first came a job of gate %d", p.last[0])
		}
	}
	if claims > 7 { // ten by turns, five alone
		t.Errorf("100 jobs took %d claims of 20", claims)
	}
}

// What was missed is bounded, and is not had twice: over time nobody has more than its
// share, however it comes and goes.
func TestJ19_CreditIsNoLargerShare(t *testing.T) {
	for _, burst := range []int{1, 7, 30, 200, 1000} {
		p := play(t)
		p.enqueue(1, 1_000_000)
		for range 1000 {
			p.claim(20)
		}
		before := p.took[1]
		all := 0
		for range 3000 { // the second comes back as soon as it has nothing left
			if p.waits[2] == 0 {
				p.enqueue(2, burst)
			}
			for _, n := range p.claim(20) {
				all += n
			}
		}
		if second, first := p.took[2], p.took[1]-before; second > all/2+maxCredit || first+second != all {
			t.Errorf("bursts of %d: %d of %d jobs were of who comes and goes", burst, second, all)
		}
	}
}

// Names that are always new share one credit: beside any number of them who is always
// there has nearly its share.
func TestJ19_AlwaysNewNamesHaveNoMore(t *testing.T) {
	for _, beside := range []int64{1, 3, 10} {
		p := play(t)
		p.enqueue(1, 1_000_000)
		for range 100 {
			p.claim(20)
		}
		before, all, next := p.took[1], 0, int64(2)
		open := map[int64]bool{}
		for range 3000 {
			for gate := range open {
				if p.waits[gate] == 0 {
					delete(open, gate)
				}
			}
			for int64(len(open)) < beside {
				p.enqueue(next, 100)
				open[next] = true
				next++
			}
			for _, n := range p.claim(20) {
				all += n
			}
		}
		if had := p.took[1] - before; had < all/int(beside+2)*8/10 {
			t.Errorf("beside %d: %d of %d jobs were of who is always there", beside, had, all)
		}
	}
}

// Among those who are always there nobody goes ahead.
func TestJ19_NoCreditWithoutAbsence(t *testing.T) {
	p := play(t)
	for gate := range int64(5) {
		p.enqueue(gate, 10_000)
	}
	for range 500 {
		p.claim(7)
	}
	for gate, n := range p.took {
		if n < 699 || n > 701 {
			t.Errorf("gate %d had %d of 3500", gate, n)
		}
	}
}

// Who waits for its turn has missed nothing: it has it once.
func TestJ19_WhoWaitsForItsTurnHasItOnce(t *testing.T) {
	p := play(t)
	for gate := range int64(6) {
		p.enqueue(gate, 10)
	}
	for range 3 {
		p.claim(2)
	}
	for gate := range int64(6) {
		if p.took[gate] != 1 {
			t.Errorf("gate %d had %d turns of the first six", gate, p.took[gate])
		}
	}
}

// A gate that comes back goes on where it was, with the changes that came meanwhile.
func TestJ19_AGateThatComesBackIsRemembered(t *testing.T) {
	turns := scanned(t, 1, 2)
	list, _, _ := turns.Next("q", 10, noon)
	turns.Settle("q", []Visit[int]{{Of: &list[0], Gone: true, Data: 5}}, 2, 0)
	turns.Change("q", func(n *int) { *n *= 10 })
	turns.Note("q", 1, "k", "", func(n *int) { *n++ })
	if list, _, _ = turns.Next("q", 10, noon); len(list) != 2 {
		t.Fatalf("%+v", list)
	}
	if i := slices.IndexFunc(list, func(g Gate[int]) bool { return g.Number == 1 }); list[i].Data != 51 {
		t.Errorf("%+v, want 5, ten times and one more", list[i])
	}
}

// Suspects come first: they were taken because they can start.
func TestJ19_SuspectsAreAnsweredFirst(t *testing.T) {
	var ahead []int
	got := Answer([]Taken[int]{{Jobs: []int{1, 2, 3}}, {Jobs: []int{-4, 5}}, {Jobs: []int{6, 7, -8, 9}, Ahead: 2}},
		func(n *int) bool { return *n < 0 }, func(n *int) { ahead = append(ahead, *n) })
	if want := []int{-8, -4, 6, 7, 9, 5, 1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if want := []int{6, 7}; !slices.Equal(ahead, want) {
		t.Errorf("on credit came %v, want %v", ahead, want)
	}
}
