package claims

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/job"
)

var noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

func at(seconds int) position {
	return position{due: noon.Add(time.Duration(seconds) * time.Second)}
}

func all(p position) (list positions) {
	for i := range list {
		list[i] = p
	}
	return list
}

// A hint that arrives while a claim is under way is not undone by the claim's
// end: what was committed may lie in front of where the claim arrived.
func TestFrontier_AHintDuringAClaimStays(t *testing.T) {
	var f frontiers
	v := f.View(frontName{queue: "q"})
	f.Lower("q", 5, noon.Add(3*time.Second))
	f.advance(v, all(at(10)), lookedAt{quiet: true})
	if got := f.View(frontName{queue: "q"}).At[5]; at(3).before(got) {
		t.Errorf("the frontier is at %v, behind the hint of %v", got.due, at(3).due)
	}
	if f.View(frontName{queue: "q"}).quiet {
		t.Error("the lane is quiet although a hint has come")
	}
}

// Two claims under way at once: the one that ends last does not pull the
// frontier back, nor does one from before everything was dropped push it.
func TestFrontier_OnlyMovesForwardAndNotAfterADrop(t *testing.T) {
	var f frontiers
	a, b := f.View(frontName{queue: "q"}), f.View(frontName{queue: "q"})
	f.advance(b, all(at(20)), lookedAt{})
	f.advance(a, all(at(10)), lookedAt{})
	if got := f.View(frontName{queue: "q"}).At[5]; got != at(20) {
		t.Errorf("the frontier is at %v, want %v", got.due, at(20).due)
	}
	f.Drop()
	f.advance(a, all(at(30)), lookedAt{})
	if got := f.View(frontName{queue: "q"}).At[5]; got != Start {
		t.Errorf("after a drop the frontier is at %v, want the start", got.due)
	}
}

func TestFrontier_DroppedWhenTheClockStepsBack(t *testing.T) {
	var f frontiers
	f.clock(noon)
	f.advance(f.View(frontName{queue: "q"}), all(at(0)), lookedAt{})
	if !f.clock(noon.Add(-backstep / 2)) {
		t.Error("answers that overtook each other were taken for a step of the clock")
	}
	if f.clock(noon.Add(-time.Minute)) {
		t.Error("a step of a minute was not noticed")
	}
	if got := f.View(frontName{queue: "q"}).At[5]; got != Start {
		t.Errorf("the frontier is at %v, want the start", got.due)
	}
}

func TestFrontier_LowersEveryOfferOfTheQueueAndNoOther(t *testing.T) {
	var f frontiers
	for _, name := range []frontName{{"q", "a"}, {"q", "b"}, {"other", "a"}} {
		f.advance(f.View(name), all(at(10)), lookedAt{quiet: true})
	}
	f.Lower("q", 5, noon)
	for _, offer := range []string{"a", "b"} {
		if got := f.View(frontName{"q", offer}).At; got[5] != at(0) || got[4] != at(10) {
			t.Errorf("offer %s: priority 5 at %v, 4 at %v", offer, got[5].due, got[4].due)
		}
	}
	if got := f.View(frontName{"other", "a"}); got.At[5] != at(10) || !got.quiet {
		t.Errorf("another queue was moved to %v", got.At[5].due)
	}
}

// Whatever the slices, a sweep in slices comes to every place behind the
// frontier within a bounded number of turns, and to the newest every time.
func TestFrontier_SlicesCoverEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sweep{span: rapid.SampledFrom([]time.Duration{shortSpan, 3 * time.Second, time.Minute, firstSpan, 36 * time.Hour}).Draw(t, "span")}
		frontier := at(0)
		back := time.Duration(rapid.Int64Range(1, int64(10*365*24*time.Hour)/1000).Draw(t, "back")) * 1000
		place := frontier.due.Add(-back)
		for turn := range 60 {
			for n, stretch := range s.stretches(5, frontier) {
				if !place.Before(stretch.from.due) && place.Before(stretch.to) {
					return
				}
				if n == 0 && back < s.span {
					t.Fatalf("turn %d: the newest slice %v does not hold %v", turn, stretch, place)
				}
			}
			s.done(noon, sweepSlow) // neither quick nor slow: the span stays
		}
		t.Fatalf("60 sweeps with slices of %v never came to %v before the frontier", s.span, back)
	})
}

// Whatever the slices, and however fast the frontier moves on, a lap comes to its end within a bounded number of sweeps, and
// to every place in front of that.
func TestFrontier_LapsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := []time.Duration{0, shortSpan, 3 * time.Second, time.Minute, firstSpan, 36 * time.Hour}
		s := sweep{span: rapid.SampledFrom(spans).Draw(t, "span")}
		s.older = rapid.IntRange(0, 10).Draw(t, "older")
		frontier, next := at(0), sweepRecent
		place := frontier.due.Add(-time.Duration(rapid.Int64Range(1, int64(10*365*24*time.Hour)/1000).Draw(t, "back")) * 1000)
		first := s.stretches(5, frontier)
		begins := first[len(first)-1]
		s.lapped(&begins, frontier, position{due: begins.from.due.Add(time.Second)}, false)
		if begins.from != Start && s.span == 0 || !s.laps[5].underWay() {
			t.Fatalf("no lap began: %+v", s)
		}
		came := s.span == 0 && !s.laps[5].at.due.Before(place)
		stops := rapid.IntRange(0, 10).Draw(t, "stretches that are too much for one sweep")
		for sweeps := 0; s.laps[5].underWay(); sweeps++ {
			if sweeps > 60+stops*40 {
				t.Fatalf("%d sweeps by %v, and it is at %v of %v", sweeps, s.span, s.laps[5].at.due, s.laps[5].end)
			}
			frontier.due = frontier.due.Add(next)
			list := s.stretches(5, frontier)
			on := list[len(list)-1]
			if on.from != s.laps[5].at || on.to.After(s.laps[5].end.Add(time.Microsecond)) {
				t.Fatalf("a lap at %v goes on with %+v", s.laps[5], on)
			}
			if stops > 0 && rapid.Bool().Draw(t, "too much") {
				stops--
				half := position{due: on.from.due.Add(on.to.Sub(on.from.due) / 2)}
				came = came || !place.Before(on.from.due) && place.Before(half.due)
				s.lapped(&on, frontier, half, false)
				continue
			}
			came = came || !place.Before(on.from.due) && place.Before(on.to)
			s.lapped(&on, frontier, position{}, true)
			s.lapped(&list[0], frontier, position{due: noon}, rapid.Bool().Draw(t, "the newest as a whole"))
		}
		if !came {
			t.Fatalf("a lap of sweeps by %v never came to %v", s.span, place)
		}
	})
}

func TestFrontier_SlowSweepsBecomeShorter(t *testing.T) {
	var s sweep
	s.done(noon, 10*sweepSlow)
	first := s.span
	s.done(noon, 10*sweepSlow)
	if first == 0 || s.span >= first {
		t.Errorf("slices of %v, then %v: want ever shorter ones", first, s.span)
	}
	for range 100 {
		s.done(noon, 0)
	}
	if s.span != 0 {
		t.Errorf("slices of %v after quick sweeps, want everything at once", s.span)
	}
}

func TestFrontier_PreviousIsRightInFront(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := position{due: noon, ID: job.ID(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 0, 0, 1, 0x7f, 0xff}), 16, 16).Draw(t, "id"))}
		q := p.previous()
		if !q.before(p) {
			t.Fatalf("%v is not before %v", q, p)
		}
		if next := q; next.due.Equal(p.due) { // nothing lies between: adding one gives p
			for i := len(next.ID) - 1; i >= 0; i-- {
				if next.ID[i]++; next.ID[i] != 0 {
					break
				}
			}
			if next != p {
				t.Fatalf("%v is not right in front of %v", q, p)
			}
		}
	})
}

func TestFrontier_MemoryIsBounded(t *testing.T) {
	var f frontiers
	for i := range maxFronts + 10 {
		f.View(frontName{queue: "q", offer: string(rune(i))})
	}
	if n := len(f.Fronts); n > maxFronts {
		t.Errorf("%d lanes are remembered, want at most %d", n, maxFronts)
	}
}

// A claim that a hint came into moves the frontier all the same, up to the hint.
func TestFrontier_AHintDuringAClaimBoundsItsAdvance(t *testing.T) {
	var f frontiers
	v := f.View(frontName{queue: "q"})
	f.Lower("q", 5, noon.Add(3*time.Second))
	f.Lower("q", 6, noon.Add(30*time.Second))
	f.advance(v, all(at(10)), lookedAt{full: true})
	got := f.View(frontName{queue: "q"})
	if got.At[5] != at(3) || got.At[6] != at(10) || got.At[4] != at(10) {
		t.Errorf("priority 5 is at %v, 6 at %v, 4 at %v; want the hint, and where the claim ended", got.At[5].due, got.At[6].due, got.At[4].due)
	}
	if !got.full {
		t.Error("what the claim found is forgotten")
	}
	// The hint is known to the next claim, and bounds that no more.
	f.advance(got, all(at(20)), lookedAt{quiet: true})
	if after := f.View(frontName{queue: "q"}); after.At[5] != at(20) || !after.quiet {
		t.Errorf("the next claim came to %v, want %v", after.At[5].due, at(20).due)
	}
}

// A hint that comes during a look at what falls due next does not hide it, nor is
// it hidden.
func TestFrontier_AHintDuringALookDoesNotHideWhatFallsDueNext(t *testing.T) {
	f := frontiers{latest: noon}
	v := f.View(frontName{queue: "q"})
	f.Lower("q", 5, noon) // ready at once
	f.expect(v, noon.Add(time.Hour))
	if got := f.View(frontName{queue: "q"}).next; !got.known || !got.at.Equal(noon.Add(time.Hour)) {
		t.Errorf("the next job falls due at %v (known: %v), want in an hour", got.at, got.known)
	}
	v = f.View(frontName{queue: "q"})
	f.Lower("q", 5, noon.Add(time.Minute))
	f.expect(v, noon.Add(time.Hour))
	if got := f.View(frontName{queue: "q"}).next; !got.known || !got.at.Equal(noon.Add(time.Minute)) {
		t.Errorf("the next job falls due at %v (known: %v), want in a minute", got.at, got.known)
	}
}
