package turns

import (
	"math"
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

func found(numbers ...int64) (list []Found) {
	for _, n := range numbers {
		list = append(list, Found{Number: n, Kind: "k"})
	}
	return list
}

func numbers(list []Gate[int]) (all []int64) {
	for _, g := range list {
		all = append(all, g.Number)
	}
	return all
}

// scanned has a queue with gates that were found.
func scanned(t *testing.T, all ...int64) *Turns[int] {
	t.Helper()
	var turns Turns[int]
	if after, due := turns.Scan("q", noon); !due || after != math.MinInt64 {
		t.Fatalf("the first look scans behind %d, %v", after, due)
	}
	turns.Found("q", math.MinInt64, found(all...), true, noon, 0)
	return &turns
}

func expect(t *testing.T, turns *Turns[int], what string, now time.Time, want ...int64) []Gate[int] {
	t.Helper()
	list, _, _ := turns.Next("q", 10, now)
	if got := numbers(list); !slices.Equal(got, want) {
		t.Errorf("%s: next are %v, want %v", what, got, want)
	}
	return list
}

func TestJ19_TurnsGoRound(t *testing.T) {
	turns := scanned(t, -5, 1, 7)
	expect(t, turns, "at first", noon, -5, 1, 7)
	turns.Settle("q", nil, 1, 2)
	expect(t, turns, "then", noon, 1, 7, -5)
	if _, left, _ := turns.Next("q", 10, noon); left != 2 {
		t.Errorf("%d are left of the turn, want 2", left)
	}
	turns.Settle("q", nil, 8, 0)
	expect(t, turns, "behind the last", noon, -5, 1, 7)
}

func TestJ19_ClosedGatesArePassedUntilSomebodyTells(t *testing.T) {
	turns := scanned(t, 1, 2, 3)
	list := expect(t, turns, "at first", noon, 1, 2, 3)
	turns.Settle("q", []Visit[int]{
		{Of: &list[0], Closed: noon.Add(time.Second), Full: true},
		{Of: &list[1], Closed: noon.Add(time.Minute)},
	}, math.MinInt64, 0)
	expect(t, turns, "while two are closed", noon, 3)
	if w := turns.Wait("q", noon); w != time.Second {
		t.Errorf("the first opens in %v", w)
	}
	expect(t, turns, "a second later", noon.Add(time.Second), 1, 3)
	if !turns.Open(2) || turns.Open(99) {
		t.Error("which of them were closed")
	}
	expect(t, turns, "when an end has told", noon, 2, 3)
}

// What is told while a claim is under way is not undone by what the claim saw.
func TestJ19_WhatIsToldDuringAClaimHolds(t *testing.T) {
	turns := scanned(t, 1, 2)
	list := expect(t, turns, "at first", noon, 1, 2)
	turns.Open(1)
	turns.Note("q", 2, "k", "", nil)
	turns.Settle("q", []Visit[int]{{Of: &list[0], Closed: noon.Add(time.Hour)}, {Of: &list[1], Gone: true}}, math.MinInt64, 0)
	expect(t, turns, "after the claim", noon, 1, 2)
	list = expect(t, turns, "and again", noon, 1, 2)
	turns.Settle("q", []Visit[int]{{Of: &list[1], Gone: true}}, math.MinInt64, 0)
	expect(t, turns, "when nobody told", noon, 1)
}

func TestJ19_AGateWithoutRoomIsPassedEverLonger(t *testing.T) {
	turns := scanned(t, 1)
	var waits []time.Duration
	for range 6 {
		list, _, _ := turns.Next("q", 1, noon)
		waits = append(waits, list[0].Full())
		turns.Settle("q", []Visit[int]{{Of: &list[0], Full: true}}, 1, 0)
	}
	const ms = time.Millisecond
	if want := []time.Duration{200 * ms, 400 * ms, 800 * ms, 1600 * ms, 1600 * ms, 1600 * ms}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
}

func TestJ19_ScansComeWhenSomebodyTellsAndNowAndThen(t *testing.T) {
	turns := scanned(t, 1)
	due := func(what string, at time.Duration, want bool) {
		t.Helper()
		if _, got := turns.Scan("q", noon.Add(at)); got != want {
			t.Errorf("%s: due %v", what, got)
		}
	}
	due("right after", time.Millisecond, false)
	turns.Stale("q")
	due("when it is stale", time.Millisecond, true)
	turns.Found("q", math.MinInt64, found(1), true, noon, 20*time.Millisecond)
	turns.Stale("")
	due("again, after a slow one", 100*time.Millisecond, false)
	if w := turns.Wait("q", noon.Add(100*time.Millisecond)); w != 100*time.Millisecond {
		t.Errorf("it comes in %v", w)
	}
	due("ten times as long later", 200*time.Millisecond, true)
	turns.Found("q", math.MinInt64, found(1), true, noon, 0)
	due("now and then", ScanEvery, true)
}

// Many gates are seen through a window that moves on, and none is left out.
func TestP10_AWindowMovesOverManyGates(t *testing.T) {
	seesAll(t, 3*Window+17, time.Second, 0, false)
}

// What takes the window on is not a scan that is due anyway, nor one that a hint asks for: where scans are slow, or hints
// have no end, the gates behind the window would never have a turn.
func TestJ19_AWindowMovesOnWhereScansAreSlowAndHintsHaveNoEnd(t *testing.T) {
	t.Run("slow scans", func(t *testing.T) { seesAll(t, 2*Window+17, 11*time.Second, time.Second, false) })
	t.Run("hints", func(t *testing.T) { seesAll(t, 2*Window+17, 11*time.Second, 0, true) })
	t.Run("both", func(t *testing.T) { seesAll(t, 2*Window+17, 11*time.Second, time.Second, true) })
}

// seesAll makes forty claims, so long after one another, with scans that take so long, and wants each gate to have a turn.
func seesAll(t *testing.T, all int64, after, took time.Duration, hints bool) {
	t.Helper()
	var turns Turns[int]
	seen := map[int64]bool{}
	now := noon
	for range 40 {
		if hints {
			turns.Stale("q")
		}
		if behind, due := turns.Scan("q", now); due {
			var list []Found
			for n := max(behind+1, 1); n <= all && len(list) < Window; n++ {
				list = append(list, Found{Number: n})
			}
			turns.Found("q", behind, list, len(list) < Window, now, took)
		}
		list, _, _ := turns.Next("q", Window, now)
		for _, g := range list {
			seen[g.Number] = true
		}
		if len(list) > 0 {
			turns.Settle("q", nil, list[len(list)-1].Number+1, 0)
		}
		now = now.Add(after)
	}
	if int64(len(seen)) != all {
		t.Errorf("%d of %d gates had a turn", len(seen), all)
	}
}

// What is told while a claim is under way is not undone by what that claim saw.
func TestJ19_AHintWhileAClaimIsUnderWayIsKept(t *testing.T) {
	turns := scanned(t, 7)
	list := expect(t, turns, "at first", noon, 7)
	turns.Change("q", func(n *int) { *n = 1 }) // something was committed
	turns.Settle("q", []Visit[int]{{Of: &list[0], Data: 5}}, 7, 0)
	if list = expect(t, turns, "then", noon, 7); list[0].Data == 5 {
		t.Errorf("the claim's own view has replaced the hint: %+v", list)
	}
}

// What somebody tells of while a scan is under way stays, though the scan did not see it.
func TestJ19_WhatIsToldDuringAScanStays(t *testing.T) {
	for _, known := range [][]int64{{1}, {1, 7}} {
		turns := scanned(t, known...)
		later := noon.Add(ScanEvery)
		if _, due := turns.Scan("q", later); !due {
			t.Fatal("no scan")
		}
		turns.Note("q", 7, "k", "", nil)
		turns.Found("q", math.MinInt64, found(1), true, later, time.Millisecond)
		expect(t, turns, "after the scan", later, 1, 7)
	}
}

// A claim that saw a gate empty does not remove it when somebody told of it since: a scan,
// or one who found it gone and told anew.
func TestJ19_AnEmptyLookRemovesNothingThatIsNewer(t *testing.T) {
	later := noon.Add(time.Second)
	for _, seen := range [][]int64{{1, 7}, {1}} {
		turns := scanned(t, 1, 7)
		list := expect(t, turns, "at first", noon, 1, 7)
		turns.Stale("q")
		turns.Scan("q", later)
		turns.Found("q", math.MinInt64, found(seen...), true, later, time.Millisecond)
		if len(seen) == 1 {
			turns.Note("q", 7, "k", "", nil)
		}
		turns.Settle("q", []Visit[int]{{Of: &list[1], Gone: true}}, 1, 0)
		expect(t, turns, "after the claim", later, 1, 7)
	}
}
