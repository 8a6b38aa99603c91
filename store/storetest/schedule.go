package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// clerk fires schedules through one store.
type clerk struct {
	d *database
	store.Schedules
}

func (d *database) clerk(s store.Store) clerk {
	d.Helper()
	schedules, ok := s.(store.Schedules)
	if !ok {
		d.Fatalf("%T is no store.Schedules", s)
	}
	return clerk{d, schedules}
}

func (c clerk) states() store.ScheduleStates {
	c.d.Helper()
	return must[store.ScheduleStates](c.d, "schedules")(c.ScheduleStates(c.d.ctx))
}

// state is that of the one schedule there is.
func (c clerk) state() store.ScheduleState {
	c.d.Helper()
	s := c.states()
	if len(s.List) != 1 {
		c.d.Fatalf("%d schedules, want 1", len(s.List))
	}
	return s.List[0]
}

func (c clerk) fire(list ...store.Firing) []store.Fired {
	c.d.Helper()
	return must[[]store.Fired](c.d, "fire")(c.Fire(c.d.ctx, c.states().Revision, list))
}

// hourly is a schedule that begins at the next full hour, by its name.
func (c clerk) begin(name string) store.ScheduleState {
	c.d.Helper()
	now := c.states().Now.Truncate(time.Microsecond)
	f := store.Firing{Name: name, New: true, Cron: "0 * * * *", Zone: "UTC", Anchor: now, Next: now.Truncate(time.Hour).Add(time.Hour)}
	equal(c.d, "begun", c.fire(f), []store.Fired{{Moved: true}})
	for _, s := range c.states().List {
		if s.Name == name {
			return s
		}
	}
	c.d.Fatalf("schedule %s has no state", name)
	return store.ScheduleState{}
}

// due is the firing of a state's next due time.
func dueOf(s store.ScheduleState, edit ...func(*job.Draft)) store.Firing {
	d := draft(edit...)
	d.ID = job.ScheduledID(s.Name, s.Next)
	return store.Firing{
		Name: s.Name, Was: s.Next, Cron: s.Cron, Zone: s.Zone, Anchor: s.Anchor, Next: s.Next.Add(time.Hour), Last: s.Next, Jobs: []job.Draft{d},
	}
}

// schedules: a due time and its job are one transaction.
func schedules() []testCase {
	ann := store.Operator{Name: "ann", Note: "now"}
	return []testCase{
		{name: "J16_AStateIsAsItWasWritten", run: func(d *database) {
			c := d.clerk(d.Store)
			equal(d, "states of an empty store", len(c.states().List), 0)
			s := c.begin("nightly")
			within(d, "now", c.states().Now, s.Anchor, d.now())
			equal(d, "revision", c.states().Revision, d.settings().Revision)
			equal(d, "state", s, store.ScheduleState{
				Name: "nightly", Cron: "0 * * * *", Zone: "UTC", Anchor: s.Anchor, Next: s.Anchor.Truncate(time.Hour).Add(time.Hour), Revision: d.settings().Revision,
			})
		}},
		{name: "J16_AFireMovesAndEnqueues", run: func(d *database) {
			c := d.clerk(d.Store)
			s := c.begin("nightly")
			d.advance(time.Hour)
			f := dueOf(s)
			equal(d, "fired", c.fire(f), []store.Fired{{Moved: true, Receipts: []job.Receipt{{ID: f.Jobs[0].ID}}}})
			equal(d, "states", d.states(f.Jobs[0].ID), []job.State{job.Waiting})
			after := c.state()
			equal(d, "state", after, store.ScheduleState{
				Name: "nightly", Cron: s.Cron, Zone: s.Zone, Anchor: s.Anchor, Next: f.Next, Last: s.Next, LastJob: f.Jobs[0].ID, Fires: 1, Revision: s.Revision,
			})
			w := d.hire()
			equal(d, "claimed", w.take().ID, f.Jobs[0].ID)
		}},
		{name: "J16_ARepeatChangesNothing", run: func(d *database) {
			c := d.clerk(d.Store)
			f := dueOf(c.begin("nightly"))
			c.fire(f)
			before := c.state()
			equal(d, "fired again", c.fire(f), []store.Fired{{}})
			equal(d, "state", c.state(), before)
			w := d.hire()
			w.end(w.take(), job.Done)
			// Somebody who computed the same due time from a state that was lost and begun anew.
			if err := c.ForgetSchedule(d.ctx, "nightly"); err != nil {
				d.Fatal(err)
			}
			f.New = true
			equal(d, "fired anew", c.fire(f), []store.Fired{{Moved: true, Receipts: []job.Receipt{{ID: f.Jobs[0].ID, Duplicate: true}}}})
			equal(d, "jobs", d.count(), 1)
		}},
		{name: "J16_FiresOncePerDueTime", needs: Features{Shared: true}, run: func(d *database) {
			stores := []clerk{d.clerk(d.Store), d.clerk(d.open(store.Settings{})), d.clerk(d.open(store.Settings{}))}
			s := stores[0].begin("nightly")
			t := stores[0].begin("weekly")
			for range 5 {
				var all sync.WaitGroup
				var mu sync.Mutex
				moved := map[string]int{}
				list := []store.Firing{dueOf(s), dueOf(t)}
				revision := d.settings().Revision
				for i := range 6 {
					all.Go(func() {
						got, err := stores[i%3].Fire(d.ctx, revision, []store.Firing{list[i%2], list[1-i%2]})
						if err != nil {
							d.Errorf("fire: %v", err)
							return
						}
						mu.Lock()
						defer mu.Unlock()
						for n, f := range got {
							if f.Moved {
								moved[list[(i+n)%2].Name]++
							}
						}
					})
				}
				all.Wait()
				equal(d, "moved", moved, map[string]int{"nightly": 1, "weekly": 1})
				states := stores[1].states().List
				s, t = states[0], states[1]
			}
			equal(d, "jobs", d.count(), 10)
		}},
		{name: "J16_AnotherRevisionFiresNothing", run: func(d *database) {
			c := d.clerk(d.Store)
			f := dueOf(c.begin("nightly"))
			old := d.settings().Revision
			nightly := store.Setting{Kind: store.SettingSchedule, Name: "nightly"}
			if err := d.Store.Override(d.ctx, nightly, json.RawMessage(`{"paused": true}`), ann); err != nil {
				d.Fatal(err)
			}
			for _, revision := range []int64{old, d.settings().Revision + 1} {
				equal(d, "fired", must[[]store.Fired](d, "fire")(c.Fire(d.ctx, revision, []store.Firing{f})), []store.Fired{{}})
			}
			equal(d, "jobs", d.count(), 0)
			f.Next, f.Last, f.Jobs = time.Time{}, time.Time{}, nil
			equal(d, "paused", c.fire(f), []store.Fired{{Moved: true}})
			equal(d, "next", c.state().Next, time.Time{})
			equal(d, "revision", c.state().Revision, d.settings().Revision)
			f.Was, f.Next = time.Time{}, f.Anchor.Add(time.Hour)
			equal(d, "resumed", c.fire(f), []store.Fired{{Moved: true}})
		}},
		{name: "J16_SkipsWhileActive", run: func(d *database) {
			c := d.clerk(d.Store)
			skip := func(j *job.Draft) { j.Unique.Hash = job.ScheduleUnique("nightly") }
			first := dueOf(c.begin("nightly"), skip)
			c.fire(first)
			second := dueOf(c.state(), skip)
			equal(d, "fired", c.fire(second), []store.Fired{{Moved: true, Receipts: []job.Receipt{{ID: first.Jobs[0].ID, Duplicate: true}}}})
			s := c.state()
			equal(d, "counts", []int64{s.Fires, s.Skips}, []int64{1, 1})
			equal(d, "last job", s.LastJob, first.Jobs[0].ID)
			equal(d, "last", s.Last, second.Last)
			w := d.hire()
			w.end(w.take(), job.Done)
			third := dueOf(s, skip)
			equal(d, "fired", c.fire(third), []store.Fired{{Moved: true, Receipts: []job.Receipt{{ID: third.Jobs[0].ID}}}})
		}},
		{name: "J16_SeveralDueTimesAreOneCommit", run: func(d *database) {
			c := d.clerk(d.Store)
			s := c.begin("nightly")
			f := dueOf(s)
			for range 99 {
				next := draft()
				next.ID = job.ScheduledID("nightly", f.Last.Add(time.Hour))
				f.Last, f.Next = f.Last.Add(time.Hour), f.Next.Add(time.Hour)
				f.Jobs = append(f.Jobs, next)
			}
			got := c.fire(f)
			equal(d, "receipts", len(got[0].Receipts), 100)
			equal(d, "jobs", d.count(), 100)
			equal(d, "fires", c.state().Fires, 100)
			f.Jobs = append(f.Jobs, draft())
			if _, err := c.Fire(d.ctx, 0, []store.Firing{f}); !errors.Is(err, job.ErrInvalid) {
				d.Errorf("101 jobs: %v", err)
			}
			if _, err := c.Fire(d.ctx, 0, make([]store.Firing, store.MaxFirings+1)); !errors.Is(err, job.ErrInvalid) {
				d.Errorf("too many firings: %v", err)
			}
			if _, err := c.Fire(d.ctx, 0, []store.Firing{{Name: "x", Next: s.Next, Last: s.Next}}); !errors.Is(err, job.ErrInvalid) {
				d.Errorf("due again: %v", err)
			}
		}},
		{name: "J16_ATriggerIsAudited", run: func(d *database) {
			c := d.clerk(d.Store)
			before := c.begin("nightly")
			want := draft()
			got := must[job.Receipt](d, "trigger")(c.TriggerSchedule(d.ctx, "nightly", want, ann))
			equal(d, "receipt", got, job.Receipt{ID: want.ID})
			equal(d, "state", c.state(), before)
			entries := d.audit(store.AuditFilter{Target: "nightly"}, 10)
			equal(d, "entries", len(entries), 1)
			equal(d, "entry", []string{entries[0].By, entries[0].Action, entries[0].Note}, []string{"ann", "trigger schedule", "now"})
		}},
		{name: "J16_AStateThatNobodyMovesGoes", run: func(d *database) {
			c := d.clerk(d.Store)
			s := c.begin("nightly")
			d.advance(store.KeepSchedule)
			equal(d, "purged", must[int](d, "purge")(d.Store.Purge(d.ctx, 100)), 0)
			d.advance(time.Hour)
			equal(d, "due", must[store.Due](d, "look")(d.Store.Due(d.ctx)), store.Due{Purge: true})
			equal(d, "purged", must[int](d, "purge")(d.Store.Purge(d.ctx, 100)), 1)
			equal(d, "states", len(c.states().List), 0)
			equal(d, "fired", c.fire(dueOf(s)), []store.Fired{{}})
			equal(d, "jobs", d.count(), 0)
		}},
		{name: "J16_NamespacesDoNotSeeEachOther", needs: Features{Shared: true}, run: func(d *database) {
			here, there := d.clerk(d.Store), d.clerk(d.open(store.Settings{Namespace: "other"}))
			f := dueOf(here.begin("nightly"))
			equal(d, "states elsewhere", len(there.states().List), 0)
			there.begin("nightly")
			here.fire(f)
			equal(d, "fires elsewhere", there.state().Fires, 0)
		}},
		{name: "J16_FireAgreesWithAModel", run: fireProgram},
	}
}

// fireProgram fires at random, from states of now and of before, and compares with a
// model: each due time has its job once, and a state moves only from what it is.
func fireProgram(d *database) {
	seed := rand.Uint64()
	d.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 16))
	c := d.clerk(d.Store)
	type known struct {
		next, last time.Time
		fires      int64
	}
	model := map[string]known{}
	jobs := map[job.ID]bool{}
	revision := d.settings().Revision
	var seen []store.ScheduleState // of now and before
	var revisions []int64
	for step := range 120 {
		switch random.IntN(8) {
		case 0:
			name := fmt.Sprintf("s%d", random.IntN(3))
			now := c.states().Now
			f := store.Firing{Name: name, New: true, Cron: "c", Zone: "z", Anchor: now, Next: now.Truncate(time.Hour).Add(time.Hour)}
			_, there := model[name]
			equal(d, "begun", c.fire(f)[0].Moved, !there)
			if !there {
				model[name] = known{next: f.Next}
			}
		case 1:
			if random.IntN(3) == 0 {
				s := store.Setting{Kind: store.SettingSchedule, Name: "s1"}
				value := json.RawMessage(fmt.Sprintf(`{"priority": %d}`, step))
				if err := d.Store.Override(d.ctx, s, value, store.Operator{}); err != nil {
					d.Fatal(err)
				}
				revision = d.settings().Revision
			}
		case 2:
			seen = append(seen, c.states().List...)
		default:
			if len(seen) == 0 {
				continue
			}
			s := seen[random.IntN(len(seen))]
			if random.IntN(2) == 0 {
				s = seen[len(seen)-1]
			}
			by := revision
			if len(revisions) > 0 && random.IntN(4) == 0 {
				by = revisions[random.IntN(len(revisions))]
			}
			f := dueOf(s)
			got := must[[]store.Fired](d, "fire")(c.Fire(d.ctx, by, []store.Firing{f}))[0]
			was := model[s.Name]
			moves := by == revision && was.next.Equal(s.Next)
			equal(d, "moved", got.Moved, moves)
			if moves {
				equal(d, "receipts", got.Receipts, []job.Receipt{{ID: f.Jobs[0].ID}})
				model[s.Name] = known{f.Next, f.Last, was.fires + 1}
				jobs[f.Jobs[0].ID] = true
				seen = append(seen, c.states().List...)
			}
		}
		revisions = append(revisions, revision)
	}
	for _, s := range c.states().List {
		want := model[s.Name]
		equal(d, "state of "+s.Name, []any{s.Next, s.Last, s.Fires}, []any{want.next, want.last, want.fires})
	}
	equal(d, "jobs", d.count(), len(jobs))
}
