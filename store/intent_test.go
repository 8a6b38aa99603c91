package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func TestP10_IntentsHaveBounds(t *testing.T) {
	good := store.Intent{
		ID: job.NewID(), Kind: 1,
		Subject: strings.Repeat("s", store.MaxIntentSubject), Payload: make([]byte, store.MaxIntentPayload),
	}
	if err := store.CheckIntents([]store.Intent{good, {ID: job.NewID(), Kind: 32_767}}); err != nil {
		t.Errorf("within the bounds: %v", err)
	}
	for word, change := range map[string]func(*store.Intent){
		"intent id":                    func(i *store.Intent) { i.ID = job.ID{} },
		"intent kind 0":                func(i *store.Intent) { i.Kind = 0 },
		"intent subject 513 bytes":     func(i *store.Intent) { i.Subject += "s" },
		"must be UTF-8 without zero":   func(i *store.Intent) { i.Subject = "a\x00b" },
		"must be UTF-8 without":        func(i *store.Intent) { i.Subject = "\xff" },
		"intent payload 65537 bytes: ": func(i *store.Intent) { i.Payload = make([]byte, store.MaxIntentPayload+1) },
	} {
		bad := good
		change(&bad)
		if err := store.CheckIntents([]store.Intent{good, bad}); !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), word) {
			t.Errorf("%v, want one that says %q", err, word)
		}
	}
	many := make([]store.Intent, store.IntentBytes/store.MaxIntentPayload+1)
	for i := range many {
		many[i] = store.Intent{ID: job.NewID(), Kind: 1, Payload: good.Payload}
	}
	if err := store.CheckIntents(many); !errors.Is(err, job.ErrInvalid) {
		t.Errorf("a call of more bytes than one carries: %v", err)
	}
}

func TestP8_ABadIntentIsTriedEverLessOften(t *testing.T) {
	last := time.Duration(0)
	for failures := 1; failures < 100; failures++ {
		pause := store.IntentPause(failures)
		if pause < last || pause <= 0 || pause > 5*time.Minute {
			t.Errorf("after %d failures: %v, before that %v", failures, pause, last)
		}
		last = pause
	}
	if last != 5*time.Minute || store.IntentPause(1) != 100*time.Millisecond {
		t.Errorf("from %v to %v", store.IntentPause(1), last)
	}
}

// Whatever a transaction holds of what there is, it applies of each subject the first ones only, and knows of each other
// one for whom it waits.
func TestP8_IntentsAreAppliedInTheOrderOfTheirSubject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type row struct {
			store.Intent
			held  bool
			until time.Time
		}
		var rows []row
		var held []store.Intent
		counts := map[string]int{}
		for range rapid.IntRange(0, 20).Draw(t, "rows") {
			r := row{Intent: store.Intent{ID: job.NewID(), Kind: 1, Subject: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "subject")}}
			if r.held = rapid.Bool().Draw(t, "held"); r.held {
				held = append(held, r.Intent)
				counts[r.Subject]++
			} else if rapid.Bool().Draw(t, "put off") {
				r.until = time.Unix(int64(len(rows)+1), 0)
			}
			rows = append(rows, r)
		}
		var first []store.IntentPlace
		for subject, n := range counts {
			for _, r := range rows {
				if r.Subject == subject && n >= 0 {
					first = append(first, store.IntentPlace{ID: r.ID, Kind: 1, Subject: subject, Until: r.until})
					n--
				}
			}
		}
		free, behind := store.IntentsInOrder(held, first)
		if len(free)+len(behind) != len(held) {
			t.Fatalf("%d free and %d behind of %d", len(free), len(behind), len(held))
		}
		for i, r := range rows {
			if !r.held {
				continue
			}
			var blocker *row
			for k := range rows[:i] {
				if rows[k].Subject == r.Subject && !rows[k].held && blocker == nil {
					blocker = &rows[k]
				}
			}
			until, waits := behind[r.ID]
			if waits != (blocker != nil) || waits && !until.Equal(blocker.until) {
				t.Errorf("row %d of %q: behind %v %v, blocked by %+v", i, r.Subject, waits, until, blocker)
			}
		}
	})
}

func TestP5_AnIntentSaysWhyItWaits(t *testing.T) {
	until := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, i := range map[string]store.IntentInfo{
		"no part of this build applies kind 7": {Intent: store.Intent{Kind: 7}},
		"has failed 4 times, is tried again at 2026-01-02T03:04:05Z: no such node": {
			Known: true, Failures: 4, Until: until, Error: "no such node",
		},
		`is behind one of subject "s" that failed and is tried again at 2026-01-02T03:04:05Z`: {
			Intent: store.Intent{Subject: "s"}, Known: true, Until: until,
		},
		"is about to be applied": {Known: true},
	} {
		if got := i.Why(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
