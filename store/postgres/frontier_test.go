package postgres

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

func all(p position) (list [job.MaxPriority + 1]position) {
	for i := range list {
		list[i] = p
	}
	return list
}

// A hint that arrives while a claim is under way is not undone by the claim's
// end: what was committed may lie in front of where the claim arrived.
func TestFrontier_AHintDuringAClaimStays(t *testing.T) {
	var f frontiers
	v := f.view("q", "")
	f.lower("q", 5, noon.Add(3*time.Second))
	f.advance(v, all(at(10)), lookedAt{quiet: true})
	if got := f.view("q", "").at[5]; at(3).before(got) {
		t.Errorf("the frontier is at %v, behind the hint of %v", got.due, at(3).due)
	}
	if f.view("q", "").quiet {
		t.Error("the lane is quiet although a hint has come")
	}
}

// Two claims under way at once: the one that ends last does not pull the
// frontier back, nor does one from before everything was dropped push it.
func TestFrontier_OnlyMovesForwardAndNotAfterADrop(t *testing.T) {
	var f frontiers
	a, b := f.view("q", ""), f.view("q", "")
	f.advance(b, all(at(20)), lookedAt{})
	f.advance(a, all(at(10)), lookedAt{})
	if got := f.view("q", "").at[5]; got != at(20) {
		t.Errorf("the frontier is at %v, want %v", got.due, at(20).due)
	}
	f.drop()
	f.advance(a, all(at(30)), lookedAt{})
	if got := f.view("q", "").at[5]; got != start {
		t.Errorf("after a drop the frontier is at %v, want the start", got.due)
	}
}

func TestFrontier_DroppedWhenTheClockStepsBack(t *testing.T) {
	var f frontiers
	f.clock(noon)
	f.advance(f.view("q", ""), all(at(0)), lookedAt{})
	if !f.clock(noon.Add(-backstep / 2)) {
		t.Error("answers that overtook each other were taken for a step of the clock")
	}
	if f.clock(noon.Add(-time.Minute)) {
		t.Error("a step of a minute was not noticed")
	}
	if got := f.view("q", "").at[5]; got != start {
		t.Errorf("the frontier is at %v, want the start", got.due)
	}
}

func TestFrontier_LowersEveryOfferOfTheQueueAndNoOther(t *testing.T) {
	var f frontiers
	for _, name := range []frontName{{"q", "a"}, {"q", "b"}, {"other", "a"}} {
		f.advance(f.view(name.queue, name.offer), all(at(10)), lookedAt{quiet: true})
	}
	f.lower("q", 5, noon)
	for _, offer := range []string{"a", "b"} {
		if got := f.view("q", offer).at; got[5] != at(0) || got[4] != at(10) {
			t.Errorf("offer %s: priority 5 at %v, 4 at %v", offer, got[5].due, got[4].due)
		}
	}
	if got := f.view("other", "a"); got.at[5] != at(10) || !got.quiet {
		t.Errorf("another queue was moved to %v", got.at[5].due)
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
			for n, stretch := range s.stretches(frontier) {
				if !place.Before(stretch[0]) && place.Before(stretch[1].Add(time.Microsecond)) {
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
		p := position{due: noon, id: job.ID(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 0, 0, 1, 0x7f, 0xff}), 16, 16).Draw(t, "id"))}
		q := p.previous()
		if !q.before(p) {
			t.Fatalf("%v is not before %v", q, p)
		}
		if next := q; next.due.Equal(p.due) { // nothing lies between: adding one gives p
			for i := len(next.id) - 1; i >= 0; i-- {
				if next.id[i]++; next.id[i] != 0 {
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
		f.view("q", string(rune(i)))
	}
	if n := len(f.fronts); n > maxFronts {
		t.Errorf("%d lanes are remembered, want at most %d", n, maxFronts)
	}
}

// The predicate of a claim in SQL is job.Offer.Takes, for any offer and needs.
func TestP5_TheClaimsPredicateIsTakes(t *testing.T) {
	s := openInternal(t)
	kinds := []string{"a", "b", "a.b", "ünï"}
	names := []string{"gpu", "disk", "eu"}
	rapid.Check(t, func(t *rapid.T) {
		o := job.Offer{Kinds: map[string]int{}}
		for _, k := range kinds {
			if rapid.Bool().Draw(t, "knows "+k) {
				o.Kinds[k] = rapid.IntRange(0, 2).Draw(t, "newest of "+k)
			}
		}
		o.Capabilities = rapid.SliceOfDistinct(rapid.SampledFrom(names), func(s string) string { return s }).Draw(t, "has")
		kind := rapid.SampledFrom(append(kinds, "unheard.of")).Draw(t, "kind")
		version := rapid.IntRange(0, 3).Draw(t, "version")
		needs := rapid.SliceOfDistinct(rapid.SampledFrom(names), func(s string) string { return s }).Draw(t, "needs")
		made := newOffer(o)
		var stored any
		if len(needs) > 0 {
			stored = needs
		}
		var takes *bool
		err := s.pg.Work.QueryRow(t.Context(), `SELECT version <= ($2::int[])[array_position($1::text[], kind)] AND (capabilities IS NULL OR capabilities <@ $3::text[])
			FROM (SELECT $4::text AS kind, $5::int AS version, $6::text[] AS capabilities) AS job`, made.kinds, made.newest, made.capabilities, kind, version, stored).Scan(&takes)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := takes != nil && *takes, o.Takes(kind, version, needs); got != want {
			t.Fatalf("the claim takes %s/%d needing %v: %v, the offer %+v: %v", kind, version, needs, got, o, want)
		}
	})
}
