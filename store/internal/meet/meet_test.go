package meet

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// place is a meeting that doubles numbers and leaves out what is negative.
type place struct {
	*Meeting[int, int]
	expected atomic.Int64
	mu       sync.Mutex
	met      [][]int
	fails    bool
}

func newPlace(expected int64) *place {
	p := &place{}
	p.expected.Store(expected)
	p.Meeting = New(Options[int, int]{
		Patience: 20 * time.Millisecond, Most: 5, Expected: &p.expected, Run: func(_ context.Context, asks []int) []*int {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.met = append(p.met, slices.Clone(asks))
			if p.fails {
				return nil
			}
			answers := make([]*int, len(asks))
			for i, n := range asks {
				if n >= 0 {
					answers[i] = new(int)
					*answers[i] = 2 * n
				}
			}
			return answers
		},
	})
	return p
}

// ask asks for each number in a goroutine and returns the answers, -1 for "alone".
func (p *place) ask(ctx context.Context, asks ...int) []int {
	answers := make([]int, len(asks))
	var all sync.WaitGroup
	for i, n := range asks {
		all.Go(func() {
			answer, ok := p.Do(ctx, n)
			if answers[i] = answer; !ok {
				answers[i] = -1
			}
		})
	}
	all.Wait()
	return answers
}

func TestF12_CallsOfOneMomentAreOneAndEachHasItsOwnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(4)
		began := time.Now()
		got := p.ask(t.Context(), 1, 2, -3, 4)
		if want := []int{2, 4, -1, 8}; !slices.Equal(got, want) {
			t.Errorf("answers %v, want %v", got, want)
		}
		if len(p.met) != 1 || time.Since(began) != 0 {
			t.Errorf("%d runs after %v, want one at once: all have come", len(p.met), time.Since(began))
		}
		p.Close()
	})
}

func TestF12_NobodyIsWaitedForLongerThanPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(4)
		began := time.Now()
		got := p.ask(t.Context(), 1, 2)
		if want := []int{2, 4}; !slices.Equal(got, want) || time.Since(began) != p.Patience {
			t.Errorf("answers %v after %v, want %v after %v", got, time.Since(began), want, p.Patience)
		}
		p.Close()
	})
}

func TestF12_WhoComesSlowlyIsWaitedForButNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(1000)
		p.Most = 1000
		began := time.Now()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { p.Do(t.Context(), 1) })
			time.Sleep(p.Patience / 4) // stimulus: they come one after the other
		}
		all.Wait()
		if len(p.met) < 2 || len(p.met) > 4 {
			t.Errorf("%d runs for 100 calls within %v, want one every %v", len(p.met), time.Since(began), 10*p.Patience)
		}
		p.Close()
	})
}

func TestF12_WhoIsTheOnlyOneAsksAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(1)
		began := time.Now()
		if got := p.ask(t.Context(), 1); got[0] != -1 || time.Since(began) != 0 {
			t.Errorf("answer %v after %v, want that it asks alone at once", got, time.Since(began))
		}
		p.expected.Store(3)
		if got := p.ask(t.Context(), 1); got[0] != -1 || len(p.met) != 0 {
			t.Errorf("answer %v after %d runs, want that it asks alone: nobody came", got, len(p.met))
		}
		var none *Meeting[int, int]
		if _, ok := none.Do(t.Context(), 1); ok {
			t.Error("there is an answer where nobody meets")
		}
		p.Close()
	})
}

func TestF12_AFailedMeetingLetsEachAskAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(3)
		p.fails = true
		if got, want := p.ask(t.Context(), 1, 2, 3), []int{-1, -1, -1}; !slices.Equal(got, want) {
			t.Errorf("answers %v, want %v", got, want)
		}
		p.Close()
	})
}

func TestF12_AMeetingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(12)
		p.ask(t.Context(), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
		for _, m := range p.met {
			if len(m) > p.Most {
				t.Errorf("%d have met, want %d at most", len(m), p.Most)
			}
		}
		p.Close()
	})
}

func TestF12_WhoGivesUpLeavesTheOthersTheirAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(9)
		tired, cancel := context.WithCancel(t.Context())
		gone := make(chan []int, 1)
		go func() { gone <- p.ask(tired, 1) }()
		synctest.Wait()
		patient := make(chan []int, 1)
		go func() { patient <- p.ask(t.Context(), 2) }()
		synctest.Wait()
		cancel()
		if got := <-gone; got[0] != -1 {
			t.Errorf("who gave up is answered %v", got)
		}
		if got := <-patient; got[0] != 4 {
			t.Errorf("the other is answered %v, want 4", got)
		}
		p.Close()
	})
}

func TestF12_CloseWaitsForNobodyWhoIsExpected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(9)
		began := time.Now()
		answers := make(chan []int, 1)
		go func() { answers <- p.ask(t.Context(), 1, 2) }()
		synctest.Wait()
		p.Close()
		<-answers
		if got := p.ask(t.Context(), 3, 4); !slices.Equal(got, []int{-1, -1}) || time.Since(began) != 0 {
			t.Errorf("after Close %v, %v later", got, time.Since(began))
		}
	})
}
