package schedules

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func entryOf(t *testing.T, s job.ScheduleSettings) *Entry {
	t.Helper()
	s.Kind = "k"
	value, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	e := ReadOne("s", value)
	if e.Fault != nil {
		t.Fatal(e.Fault)
	}
	return &e
}

// A model of one schedule of every ten minutes, which is told the time, pauses and
// changes: it knows each due time by its number, and notes which were fired.
//
// The states that decide makes are applied as a store would.
func TestJ16_DecideAgreesWithAModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 16))
	const every = 10 * time.Minute
	zero := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	for range 60 {
		set := job.ScheduleSettings{Cron: "*/10 * * * *", CatchUp: []job.CatchUp{"", job.CatchUpNone, job.CatchUpOne, job.CatchUpAll}[random.IntN(4)]}
		now := zero.Add(rand.N(24 * time.Hour))
		var state *store.ScheduleState
		fired := map[int64]bool{}
		// The model: what has been dealt with up to is not due again; paused has no due time.
		dealt, paused := int64(-1), false
		var log []string
		for range 40 {
			switch random.IntN(6) {
			case 0:
				now = now.Add(time.Duration(random.Int64N(int64(3 * 24 * time.Hour)))) // nobody was there
			case 1:
				paused = !paused
				set.Paused = &paused
			case 2:
				set.Cron = map[string]string{"*/10 * * * *": "0,10,20,30,40,50 * * * *", "0,10,20,30,40,50 * * * *": "*/10 * * * *"}[set.Cron]
			default:
				now = now.Add(time.Duration(random.Int64N(int64(25 * time.Minute))))
			}
			log = append(log, fmt.Sprint(now.Format("02T15:04:05"), " ", set.Cron, " ", paused))
			number := int64(now.Sub(zero) / every) // the newest due time
			// What is to be fired, by the model.
			var want []int64
			switch {
			case state == nil, state.Cron != set.Cron, paused, state.Next.IsZero():
				dealt = number // it begins, or goes on, from now
			default:
				from := dealt + 1
				switch set.CatchUp {
				case job.CatchUpAll:
					for n := max(from, number-job.MaxCatchUp+1); n <= number; n++ {
						want = append(want, n)
					}
				case job.CatchUpNone:
					if from <= number && now.Sub(zero.Add(time.Duration(number)*every)) <= time.Minute {
						want = append(want, number)
					}
				default:
					if from <= number {
						want = append(want, number)
					}
				}
				dealt = max(dealt, number)
			}
			d := decide(entryOf(t, set), state, now)
			var got []int64
			for _, at := range d.due {
				got = append(got, int64(at.Sub(zero)/every))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s: fires %v, want %v\n%v", set.CatchUp, got, want, log)
			}
			for _, n := range got {
				if fired[n] {
					t.Fatalf("%d is fired twice\n%v", n, log)
				}
				fired[n] = true
			}
			if d.needed {
				if err := store.CheckFirings([]store.Firing{d.firing}); err != nil {
					t.Fatal(err)
				}
				was := store.ScheduleState{}
				if state != nil {
					was = *state
				}
				state = &store.ScheduleState{Name: "s", Cron: d.firing.Cron, Zone: d.firing.Zone, Anchor: d.firing.Anchor, Next: d.firing.Next, Last: was.Last}
				if !d.firing.Last.IsZero() {
					state.Last = d.firing.Last
				}
			}
			if next := zero.Add(time.Duration(dealt+1) * every); paused != state.Next.IsZero() || !paused && !state.Next.Equal(next) {
				t.Fatalf("next is %v, want %v, paused %t\n%v", state.Next, next, paused, log)
			}
		}
	}
}

func TestJ16_AChangedRuleOfAZoneIsDueAllTheSame(t *testing.T) {
	e := entryOf(t, job.ScheduleSettings{Cron: "0 3 * * *", Zone: "Europe/Berlin"})
	now := time.Date(2026, 11, 16, 3, 30, 0, 0, time.UTC)
	state := &store.ScheduleState{Cron: "0 3 * * *", Zone: "Europe/Berlin", Anchor: now, Next: now.Add(-15 * time.Minute)} // by another database
	d := decide(e, state, now)
	if len(d.due) != 1 || !d.due[0].Equal(state.Next) {
		t.Errorf("due: %v", d.due)
	}
}
