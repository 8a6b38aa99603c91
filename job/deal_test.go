package job

import (
	"testing"

	"pgregory.net/rapid"
)

// dealOne gives one place at a time, as the sentence of Deal says: the model.
func dealOne(turns []Turn, left, n int) []int {
	given := make([]int, len(turns))
	if len(turns) == 0 {
		return given
	}
	if left <= 0 || left > turns[0].Weight {
		left = turns[0].Weight
	}
	for at, passed := 0, 0; n > 0 && passed <= len(turns); {
		if left > 0 && given[at] < turns[at].Room {
			given[at]++
			n, left, passed = n-1, left-1, 0
			continue
		}
		passed++
		at = (at + 1) % len(turns)
		left = turns[at].Weight
	}
	return given
}

func TestJ19_DealGivesTurnsByWeight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turns := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Turn {
			return Turn{Weight: rapid.IntRange(1, 5).Draw(t, "weight"), Room: rapid.IntRange(0, 12).Draw(t, "room")}
		}), 0, 6).Draw(t, "turns")
		left, n := rapid.IntRange(0, 5).Draw(t, "left"), rapid.IntRange(0, 60).Draw(t, "n")
		given, next, rest := Deal(turns, left, n)
		want, all, room := dealOne(turns, left, n), 0, 0
		for i := range given {
			if given[i] != want[i] {
				t.Fatalf("given %v, want %v", given, want)
			}
			all, room = all+given[i], room+turns[i].Room
		}
		if all != min(n, room) {
			t.Fatalf("%d of %d places given where there is room for %d", all, n, room)
		}
		if len(turns) > 0 && (next < 0 || next >= len(turns) || rest < 0 || rest > turns[next].Weight) {
			t.Fatalf("next is %d with %d left of its turn", next, rest)
		}
	})
}

// Places that are given one by one, each deal going on where the last ended, come in the
// ratio of the weights.
func TestJ19_DealsGoOnWhereTheLastEnded(t *testing.T) {
	weights := []int{3, 1, 2}
	got := make([]int, 3)
	at, left := 0, 0
	for range 600 {
		turns := make([]Turn, 3)
		for i := range turns {
			turns[i] = Turn{Weight: weights[(at+i)%3], Room: 1000}
		}
		given, next, rest := Deal(turns, left, 1)
		for i, n := range given {
			got[(at+i)%3] += n
		}
		at, left = (at+next)%3, rest
	}
	if got[0] != 300 || got[1] != 100 || got[2] != 200 {
		t.Errorf("given %v, want 300, 100 and 200", got)
	}
}

// Who has credit gets at most three quarters before the turns, no more than it has or has
// room for, and among several nobody gets two more than another who could have had them.
func TestJ19_CreditGoesAheadOfTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turns := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Turn {
			return Turn{Weight: 1, Room: rapid.IntRange(0, 12).Draw(t, "room"), Credit: rapid.IntRange(0, 12).Draw(t, "credit")}
		}), 0, 6).Draw(t, "turns")
		before := append([]Turn(nil), turns...)
		n := rapid.IntRange(0, 60).Draw(t, "n")
		given, left := DealAhead(turns, n)
		all, could := 0, 0
		for i, b := range before {
			most := min(b.Room, b.Credit)
			all, could = all+given[i], could+most
			if given[i] > most || turns[i].Room != b.Room-given[i] {
				t.Fatalf("%d of %+v, now %+v", given[i], b, turns[i])
			}
			for k := range given {
				if given[k] > given[i]+1 && given[i] < most {
					t.Fatalf("%v of %+v", given, before)
				}
			}
		}
		if all != min(n*3/4, could) || left != n-all {
			t.Fatalf("%d given of %d, %d left, could be %d", all, n, left, could)
		}
	})
}
