package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Schedules on the way to the store. What is refused is counted, too.

var (
	_ store.Schedules = (*way)(nil)

	scheduleReads sync.Map // *way → *atomic.Int64
	fireRefused   sync.Map // *way → error
)

func (w *way) scheduleReads() *atomic.Int64 {
	n, _ := scheduleReads.LoadOrStore(w, new(atomic.Int64))
	return n.(*atomic.Int64)
}

func (w *way) ScheduleStates(ctx context.Context) (store.ScheduleStates, error) {
	w.scheduleReads().Add(1)
	return w.Store.(store.Schedules).ScheduleStates(ctx)
}

func (w *way) Fire(ctx context.Context, revision int64, list []store.Firing) ([]store.Fired, error) {
	if err, ok := fireRefused.Load(w); ok {
		return nil, err.(error)
	}
	return w.Store.(store.Schedules).Fire(ctx, revision, list)
}

func (w *way) TriggerSchedule(ctx context.Context, name string, draft job.Draft, op store.Operator) (job.Receipt, error) {
	return w.Store.(store.Schedules).TriggerSchedule(ctx, name, draft, op)
}

func (w *way) ForgetSchedule(ctx context.Context, name string) error {
	return w.Store.(store.Schedules).ForgetSchedule(ctx, name)
}

func (w *way) SetClockOffset(d time.Duration) {
	w.Store.(interface{ SetClockOffset(time.Duration) }).SetClockOffset(d)
}

// fires is which due times of a schedule have a job, as the jobs say, in order. Jobs
// without one were triggered.
func (r *resident) fires(name string) (due []string) {
	r.town.t.Helper()
	list, err := r.List(r.town.t.Context(), pawl.Filter{}, pawl.Page{Limit: 1000})
	r.must(err)
	for _, j := range list.Jobs {
		if h := j.Headers(); h["pawl-schedule"] == name {
			due = append(due, h["pawl-due"])
		}
	}
	slices.Sort(due)
	return due
}

// schedule is one of all.
func (r *resident) schedule(name string) pawl.ScheduleStatus {
	r.town.t.Helper()
	list, err := r.Schedules(r.town.t.Context())
	r.must(err)
	for _, s := range list {
		if s.Name == name {
			return s
		}
	}
	r.town.t.Fatalf("no schedule %s in %+v", name, list)
	return pawl.ScheduleStatus{}
}

func wantFires(t *testing.T, r *resident, name string, want ...string) {
	t.Helper()
	if got := r.fires(name); !slices.Equal(got, want) {
		t.Errorf("%s has fired at\n%v, want\n%v", name, strings.Join(got, " "), strings.Join(want, " "))
	}
}

func minutely(name, cron string) pawl.Schedule {
	return pawl.Schedule{Name: name, Cron: cron, Job: Welcome{UserID: 7}}
}

// The bubble begins at midnight UTC of 1 January 2000.

func TestJ16_FiresOncePerDueTime(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		cfg := pawl.Config{
			Queues:    pawl.Queues{"default": {Workers: 10}},
			Schedules: []pawl.Schedule{minutely("minutely", "* * * * *"), minutely("steady", "@every 90s"), minutely("later", "0 12 * * *")},
		}
		var began sync.Map
		handle := func(e *pawl.Engine) {
			pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
				if _, again := began.LoadOrStore(j.ID, time.Now()); again || j.Args.UserID != 7 {
					t.Errorf("job %s of %v ran again", j.ID, j.Args)
				}
				return nil
			})
		}
		w := at.work(cfg, handle)
		at.work(cfg, handle)
		at.work(cfg, handle)
		pass(4*time.Minute + 50*time.Second)
		wantFires(t, w, "minutely", "2000-01-01T00:01:00Z", "2000-01-01T00:02:00Z", "2000-01-01T00:03:00Z", "2000-01-01T00:04:00Z")
		if n := len(w.fires("steady")); n != 3 {
			t.Errorf("steady fired %d times: %v", n, w.fires("steady"))
		}
		began.Range(func(_, when any) bool {
			if late := when.(time.Time).Sub(when.(time.Time).Truncate(time.Second)); late > 100*time.Millisecond && late < 900*time.Millisecond {
				t.Errorf("a job began at %v", when)
			}
			return true
		})
		s := w.schedule("minutely")
		if s.Fires != 4 || s.Skips != 0 || s.LastJob != job.ScheduledID("minutely", s.Last) || s.Owner != "pawl.test" || s.Fault != "" || s.Paused ||
			!s.Next.Equal(s.Last.Add(time.Minute)) || s.Holds.Kind != "welcome" {
			t.Errorf("shown: %+v", s)
		}
		if s := w.schedule("later"); s.Next.Format(time.RFC3339) != "2000-01-01T12:00:00Z" || !s.Last.IsZero() {
			t.Errorf("shown: %+v", s)
		}
	})
}

// A leader that beats and cannot fire costs a few seconds.
func TestJ16_AStuckLeaderIsStoodInFor(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		// Queues without handlers: what is in them is left to others.
		cfg := pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}, Schedules: []pawl.Schedule{minutely("minutely", "* * * * *")}}
		leader := at.work(cfg, func(*pawl.Engine) {})
		other := at.work(cfg, func(*pawl.Engine) {})
		fireRefused.Store(leader.way, errors.New("stuck"))
		pass(3*time.Minute + 10*time.Second)
		if n := len(other.fires("minutely")); n != 3 {
			t.Errorf("fired %d times: %v", n, other.fires("minutely"))
		}
		if s := leader.schedule("minutely"); !strings.Contains(s.Fault, "stuck") {
			t.Errorf("the leader shows %+v", s)
		}
		fireRefused.Delete(leader.way)
		pass(2 * time.Minute)
		if s := leader.schedule("minutely"); s.Fault != "" || s.Fires != 5 {
			t.Errorf("the leader shows %+v", s)
		}
	})
}

// Between due times nobody asks for much, and without schedules nobody asks at all.
func TestJ16_IdleCostsNearlyNothing(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		cfg := pawl.Config{Beat: time.Minute, LostAfter: 5 * time.Minute, Schedules: []pawl.Schedule{minutely("yearly", "@yearly")}}
		leader := at.work(cfg, func(*pawl.Engine) {})
		other := at.work(cfg, func(*pawl.Engine) {})
		pass(10 * time.Minute)
		a, b := leader.way.scheduleReads().Load(), other.way.scheduleReads().Load()
		pass(time.Hour)
		a, b = leader.way.scheduleReads().Load()-a, other.way.scheduleReads().Load()-b
		if a > 61 || b > 21 {
			t.Errorf("in an idle hour the leader looked %d times and the other %d", a, b)
		}
	})
	inTown(t, func(t *testing.T, at *town) {
		w := at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}, Beat: time.Minute, LostAfter: 5 * time.Minute}, ignoring)
		pass(time.Hour)
		if n := w.way.scheduleReads().Load(); n != 0 {
			t.Errorf("without schedules it looked %d times", n)
		}
	})
}

func TestJ16_CatchUpAfterAGap(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		cfg := pawl.Config{Version: "1"}
		for _, c := range []pawl.CatchUp{"", pawl.CatchUpNone, pawl.CatchUpOne, pawl.CatchUpAll} {
			cfg.Schedules = append(cfg.Schedules, pawl.Schedule{Name: "daily-" + string(c), Cron: "0 3 * * *", Job: Welcome{}, CatchUp: c})
		}
		cfg.Schedules = append(cfg.Schedules, pawl.Schedule{Name: "often-all", Cron: "*/10 * * * *", Job: Welcome{}, CatchUp: pawl.CatchUpAll})
		at.work(cfg, func(*pawl.Engine) {}).leave()
		at.open = nil
		time.Sleep(3 * 24 * time.Hour) // virtual: nobody is there
		w := at.work(cfg, func(*pawl.Engine) {})
		wantFires(t, w, "daily-", "2000-01-03T03:00:00Z")
		wantFires(t, w, "daily-none")
		wantFires(t, w, "daily-one", "2000-01-03T03:00:00Z")
		wantFires(t, w, "daily-all", "2000-01-01T03:00:00Z", "2000-01-02T03:00:00Z", "2000-01-03T03:00:00Z")
		often := w.fires("often-all")
		if len(often) != 100 || often[99] != "2000-01-04T00:00:00Z" || often[0] != "2000-01-03T07:30:00Z" {
			t.Errorf("%d were made up for, from %s", len(often), often)
		}
		for _, s := range cfg.Schedules[:4] {
			if next := w.schedule(s.Name).Next.Format(time.RFC3339); next != "2000-01-04T03:00:00Z" {
				t.Errorf("%s is due at %s", s.Name, next)
			}
		}
	})
}

// The newest due time of the last minute is fired also without catching up: one
// process takes over from another.
func TestJ16_ATakeOverIsNoGap(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		cfg := pawl.Config{Version: "1", Schedules: []pawl.Schedule{{Name: "often", Cron: "*/20 * * * * *", Job: Welcome{}, CatchUp: pawl.CatchUpNone}}}
		at.work(cfg, func(*pawl.Engine) {}).leave() // at 1 s
		at.open = nil
		time.Sleep(50 * time.Second) // virtual: nobody is there
		w := at.work(cfg, func(*pawl.Engine) {})
		wantFires(t, w, "often", "2000-01-01T00:00:40Z")
	})
}

func TestJ16_AClockStepFiresNothingTwice(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		cfg := pawl.Config{Schedules: []pawl.Schedule{minutely("minutely", "* * * * *"), {Name: "none", Cron: "0 * * * *", Job: Welcome{}, CatchUp: pawl.CatchUpNone}}}
		w := at.work(cfg, func(*pawl.Engine) {})
		pass(2 * time.Minute)
		w.way.SetClockOffset(-90 * time.Second) // it is 0:00:31 again
		pass(2 * time.Minute)                   // up to 0:02:31
		wantFires(t, w, "minutely", "2000-01-01T00:01:00Z", "2000-01-01T00:02:00Z")
		w.way.SetClockOffset(10*time.Minute - 90*time.Second)
		pass(70 * time.Second) // from 0:12:31 to 0:13:41; it is noticed when the old next one would have been due
		wantFires(t, w, "minutely", "2000-01-01T00:01:00Z", "2000-01-01T00:02:00Z", "2000-01-01T00:13:00Z")
		w.way.SetClockOffset(-90 * time.Second) // back to 0:03:41
		pass(5 * time.Minute)
		if n := len(w.fires("minutely")); n != 3 {
			t.Errorf("fired %d times: %v", n, w.fires("minutely"))
		}
		pass(5*time.Minute + 30*time.Second) // 0:14:11
		wantFires(t, w, "minutely", "2000-01-01T00:01:00Z", "2000-01-01T00:02:00Z", "2000-01-01T00:13:00Z", "2000-01-01T00:14:00Z")
		// What a step has skipped and not fired is due in its time.
		w.way.SetClockOffset(10 * time.Hour)
		pass(2 * time.Minute)
		wantFires(t, w, "none")
		w.way.SetClockOffset(-90 * time.Second)
		pass(2 * time.Minute)
		if next := w.schedule("none").Next.Format(time.RFC3339); next != "2000-01-01T01:00:00Z" {
			t.Errorf("next is %s", next)
		}
	})
}

func TestJ16_ABadExpressionDisablesOnlyItself(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		w := at.work(pawl.Config{Schedules: []pawl.Schedule{
			minutely("good", "* * * * *"), minutely("bad", "61 * * * *"), {Name: "nowhere", Cron: "@daily", Zone: "Europe/Atlantis", Job: Welcome{}},
			minutely("never", "0 0 30 2 *"),
		}}, func(*pawl.Engine) {})
		pass(2 * time.Minute)
		if n := len(w.fires("good")); n != 2 {
			t.Errorf("the good one fired %d times", n)
		}
		for name, part := range map[string]string{"bad": `minute "61"`, "nowhere": "Europe/Atlantis", "never": "never be due"} {
			if s := w.schedule(name); !strings.Contains(s.Fault, part) || !s.Next.IsZero() || s.Fires > 0 {
				t.Errorf("shown: %+v", s)
			}
			if n := strings.Count(at.log.String(), "schedule="+name); n != 1 {
				t.Errorf("%s was logged %d times:\n%s", name, n, at.log)
			}
		}
		w.must(w.Schedule("bad").Set(t.Context(), pawl.ScheduleSettings{Cron: "* * * * *"}))
		pass(time.Minute)
		if s := w.schedule("bad"); s.Fault != "" || s.Fires != 1 {
			t.Errorf("mended: %+v", s)
		}
	})
}

func TestJ16_AnEnqueueErrorDoesNotDisable(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var refuse atomic.Bool
		refuse.Store(true)
		cfg := pawl.Config{Schedules: []pawl.Schedule{minutely("one", "* * * * *"), {Name: "all", Cron: "* * * * *", Job: Welcome{UserID: 1}, CatchUp: pawl.CatchUpAll}}}
		cfg.Hooks.Enqueue = func(_ context.Context, drafts []pawl.Draft) error {
			if refuse.Load() && string(drafts[0].Args) == `{"user_id":1}` {
				return errors.New("no trace")
			}
			return nil
		}
		w := at.work(cfg, func(*pawl.Engine) {})
		pass(3 * time.Minute)
		wantFires(t, w, "all")
		if s := w.schedule("all"); !strings.Contains(s.Fault, "no trace") || s.Next.IsZero() {
			t.Errorf("shown: %+v", s)
		}
		if n := strings.Count(at.log.String(), "no trace"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, at.log)
		}
		if n := len(w.fires("one")); n != 3 {
			t.Errorf("the other fired %d times", n)
		}
		refuse.Store(false)
		pass(time.Minute)
		if n := len(w.fires("all")); n != 4 {
			t.Errorf("after it was mended, fired %v", w.fires("all"))
		}
		if s := w.schedule("all"); s.Fault != "" {
			t.Errorf("shown: %+v", s)
		}
	})
}

func TestJ16_SkipsWhileActive(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		release := make(chan struct{})
		w := at.work(pawl.Config{
			Queues:    pawl.Queues{"default": {Workers: 10}},
			Schedules: []pawl.Schedule{{Name: "slow", Cron: "* * * * *", Job: Welcome{}, SkipIfActive: true}},
		}, func(e *pawl.Engine) {
			pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error { <-release; return nil })
		})
		pass(3 * time.Minute)
		if s := w.schedule("slow"); s.Fires != 1 || s.Skips != 2 {
			t.Errorf("shown: %+v", s)
		}
		if r, err := w.Schedule("slow").Trigger(t.Context(), pawl.ByKey("a key says nothing here")); err != nil || !r.Duplicate {
			t.Errorf("triggered: %+v, %v", r, err)
		}
		close(release)
		pass(time.Minute)
		if s := w.schedule("slow"); s.Fires != 2 || s.Skips != 2 {
			t.Errorf("shown: %+v", s)
		}
	})
}

func TestJ16_OperatorsChangeSchedules(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		w := at.work(pawl.Config{Schedules: []pawl.Schedule{minutely("minutely", "* * * * *")}}, func(*pawl.Engine) {})
		ops := at.settle(pawl.Config{})
		ctx := pawl.As(t.Context(), "ann", "too often")
		h := ops.Schedule("minutely")

		ops.must(h.Pause(ctx))
		pass(3 * time.Minute) // to 0:03:01
		if s := ops.schedule("minutely"); !s.Paused || !s.Next.IsZero() || s.Fires != 0 || s.By != "ann" || s.Note != "too often" {
			t.Errorf("paused: %+v", s)
		}
		ops.must(h.Resume(ctx))
		pass(time.Minute)
		wantFires(t, ops, "minutely", "2000-01-01T00:04:00Z") // not those of the pause

		ops.must(h.Set(ctx, pawl.ScheduleSettings{Cron: "*/5 * * * *", Priority: 2, CatchUp: pawl.CatchUpAll}))
		pass(time.Minute + 30*time.Second)
		wantFires(t, ops, "minutely", "2000-01-01T00:04:00Z", "2000-01-01T00:05:00Z")
		if s := ops.schedule("minutely"); s.Next.Format("15:04") != "00:10" || !slices.Equal(s.Overridden, []string{"catch_up", "cron", "priority"}) || s.Declared.Cron != "* * * * *" {
			t.Errorf("set: %+v", s)
		}
		if j, err := ops.Get(ctx, ops.schedule("minutely").LastJob); err != nil || j.Priority != 2 {
			t.Errorf("its job: %+v, %v", j, err)
		}
		ops.must(h.Reset(ctx, "cron"))
		soon()
		if s := ops.schedule("minutely"); s.Next.Format("15:04") != "00:06" || s.Holds.Priority != 2 {
			t.Errorf("reset: %+v", s)
		}
		ops.must(h.Reset(ctx))
		r, err := h.Trigger(ctx)
		ops.must(err)
		if j, err := ops.Get(ctx, r.ID); err != nil || j.Priority != 5 || j.Headers()["pawl-schedule"] != "minutely" || j.Headers()["pawl-due"] != "" {
			t.Errorf("triggered: %+v, %v", j, err)
		}
		key := []pawl.UniqueRule{pawl.ByKey("release-7"), pawl.HeldFor(time.Hour)}
		once, err := h.Trigger(ctx, key...)
		ops.must(err)
		if again, err := h.Trigger(ctx, key...); err != nil || once.Duplicate || !again.Duplicate || again.ID != once.ID {
			t.Errorf("triggered again: %+v, %+v, %v", once, again, err)
		}
		shown, err := ops.Settings(ctx)
		ops.must(err)
		if len(shown.Schedules) != 1 || !reflect.DeepEqual(shown.Schedules[0], ops.schedule("minutely")) {
			t.Errorf("the settings show %+v", shown.Schedules)
		}

		own := ops.Schedule("extra")
		ops.must(own.Create(ctx, pawl.Schedule{Cron: "@every 1m", Job: Welcome{UserID: 9}, Options: []pawl.EnqueueOption{pawl.Queue("mail"), pawl.Tags("x")}}))
		pass(90 * time.Second)
		s := ops.schedule("extra")
		if j, err := ops.Get(ctx, s.LastJob); err != nil || j.Queue != "mail" || string(j.Args) != `{"user_id":9}` || s.Fires != 1 || s.Owner != "" {
			t.Errorf("created: %+v, %+v, %v", s, j, err)
		}
		ops.must(own.Delete(ctx))
		pass(2 * time.Minute)
		if n := len(ops.fires("extra")); n != 1 {
			t.Errorf("deleted, fired %d times", n)
		}
		ops.must(own.Create(ctx, pawl.Schedule{Cron: "@every 1m", Job: Welcome{}})) // it begins anew
		soon()
		if s := ops.schedule("extra"); s.Fires != 0 || !s.Last.IsZero() {
			t.Errorf("created again: %+v", s)
		}
		w.leave() // what an operator has created stays
		if s := ops.schedule("extra"); s.Fault != "" {
			t.Errorf("shown: %+v", s)
		}

		audit, err := ops.Audit(ctx, pawl.AuditFilter{By: "ann"}, pawl.AuditPage{Limit: 100})
		ops.must(err)
		var did []string
		for _, e := range slices.Backward(audit.Entries) {
			did = append(did, e.Action+" "+e.Target)
		}
		want := []string{
			"pause schedule minutely", "resume schedule minutely", "set schedule minutely", "reset schedule minutely", "reset schedule minutely",
			"trigger schedule minutely", "trigger schedule minutely", "trigger schedule minutely", "set schedule extra", "reset schedule extra", "set schedule extra",
		}
		if !slices.Equal(did, want) {
			t.Errorf("audit: %q\nwant %q", did, want)
		}
	})
}

func TestJ16_OperatorsAreToldWhatIsWrong(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		w := at.work(pawl.Config{Schedules: []pawl.Schedule{minutely("minutely", "* * * * *")}}, func(*pawl.Engine) {})
		ctx := t.Context()
		for part, err := range map[string]error{
			`hour "25"`:                    w.Schedule("minutely").Set(ctx, pawl.ScheduleSettings{Cron: "0 25 * * *"}),
			`zone "Mars"`:                  w.Schedule("minutely").Set(ctx, pawl.ScheduleSettings{Zone: "Mars"}),
			"priority 12":                  w.Schedule("minutely").Set(ctx, pawl.ScheduleSettings{Priority: 12}),
			`CatchUp "some"`:               w.Schedule("minutely").Set(ctx, pawl.ScheduleSettings{CatchUp: "some"}),
			"nothing":                      w.Schedule("minutely").Set(ctx, pawl.ScheduleSettings{}),
			`field "crons"`:                w.Schedule("minutely").Reset(ctx, "crons"),
			"Pause stops it":               w.Schedule("minutely").Delete(ctx),
			"Set changes it":               w.Schedule("minutely").Create(ctx, minutely("minutely", "@daily")),
			`must be "a", as the handle's`: w.Schedule("a").Create(ctx, minutely("b", "@daily")),
			`schedule "a b"`:               w.Schedule("a b").Pause(ctx),
			"must be a struct value":       w.Schedule("a").Create(ctx, pawl.Schedule{Cron: "@daily"}),
			"At, In, Deadline or WithID":   w.Schedule("a").Create(ctx, pawl.Schedule{Cron: "@daily", Job: Welcome{}, Options: []pawl.EnqueueOption{pawl.In(1)}}),
		} {
			if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), part) {
				t.Errorf("%v does not name %s", err, part)
			}
		}
		_, triggered := w.Schedule("typo").Trigger(ctx)
		for _, err := range []error{w.Schedule("typo").Pause(ctx), w.Schedule("typo").Delete(ctx), triggered} {
			if !errors.Is(err, pawl.ErrNotFound) || err.Error() != "pawl: no such schedule: typo" {
				t.Errorf("typo: %v", err)
			}
		}
	})
}

// What code declares follows the code: a deploy takes over, a rollback restores
// itself, and what nobody declares any more is not fired.
func TestJ16_SchedulesFollowTheCode(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		deploy := func(version string, list ...pawl.Schedule) *resident {
			return at.work(pawl.Config{Owner: "billing", Version: version, Schedules: list}, func(*pawl.Engine) {})
		}
		old := deploy("1", minutely("a", "0 1 * * *"), minutely("b", "* * * * *"))
		next := deploy("2", minutely("a", "0 2 * * *"))
		soon()
		if s := old.schedule("a"); s.Version != "2" || s.Next.Format("15:04") != "02:00" {
			t.Errorf("deployed: %+v", s)
		}
		next.leave()
		soon()
		if s := old.schedule("a"); s.Version != "1" || s.Next.Format("15:04") != "01:00" {
			t.Errorf("rolled back: %+v", s)
		}
		third := deploy("3", minutely("a", "0 3 * * *"))
		old.leave()
		pass(10 * time.Second)
		before := len(third.fires("b"))
		pass(3 * time.Minute)
		if list, err := third.Schedules(t.Context()); err != nil || len(list) != 1 || len(third.fires("b")) != before {
			t.Errorf("left: %+v, %v; b fired %v", list, err, third.fires("b"))
		}
		at.open = slices.DeleteFunc(at.open, func(r *resident) bool { return r == old || r == next })
	})
}

func TestJ16_AProcessMayOnlySchedule(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		w := at.settle(pawl.Config{Schedules: []pawl.Schedule{minutely("minutely", "* * * * *")}})
		if err := w.Ready(t.Context()); !errors.Is(err, pawl.ErrNotReady) {
			t.Errorf("ready before Run: %v", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		pass(2 * time.Minute)
		if err := w.Ready(t.Context()); err != nil {
			t.Errorf("ready: %v", err)
		}
		if n := len(w.fires("minutely")); n != 2 {
			t.Errorf("fired %d times", n)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

func TestJ16_AConfigurationIsChecked(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		for part, s := range map[string]pawl.Schedule{
			`Config.Schedules[0].Name "a b"`: {Name: "a b", Cron: "@daily", Job: Welcome{}},
			"must be a struct value":         {Name: "a", Cron: "@daily"},
			"Attempts -1":                    {Name: "a", Cron: "@daily", Job: Welcome{}, Options: []pawl.EnqueueOption{pawl.Attempts(-1)}},
			"is a unique key":                {Name: "a", Cron: "@daily", Job: Welcome{}, SkipIfActive: true, Options: []pawl.EnqueueOption{pawl.Unique()}},
			"65536 bytes":                    {Name: "a", Cron: "@daily", Job: pawl.RawArgs("big", []byte(strings.Repeat("x", 50_000)))},
			`CatchUp "x"`:                    {Name: "a", Cron: "@daily", Job: Welcome{}, CatchUp: "x"},
		} {
			_, err := pawl.New(at.file, pawl.Config{Schedules: []pawl.Schedule{s}})
			if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), part) {
				t.Errorf("%v does not name %s", err, part)
			}
		}
		_, err := pawl.New(at.file, pawl.Config{Schedules: []pawl.Schedule{minutely("a", "@daily"), minutely("a", "@hourly")}})
		if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "declared twice") {
			t.Error(err)
		}
	})
}

// Everything that options say comes with the job.
func TestJ16_TheJobIsAsItsOptionsSay(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		w := at.work(pawl.Config{
			Queues: pawl.Queues{"mail": {Workers: 1, Attempts: 4}},
			Routes: []pawl.Route{{Kind: "welcome", Queue: "mail"}},
			Schedules: []pawl.Schedule{
				{Name: "a", Cron: "* * * * *", Job: Welcome{UserID: 3}, Options: []pawl.EnqueueOption{
					pawl.Priority(2), pawl.Timeout(90 * time.Second), pawl.Key("k"), pawl.Tags("x", "y"), pawl.Needs("gpu"),
					pawl.Headers(map[string]string{"trace": "1"}), pawl.Unique(pawl.ByKey("u"), pawl.HeldFor(time.Hour)),
				}},
				{Name: "b", Cron: "* * * * *", Job: pawl.RawArgs("raw", []byte{0, 255}), Options: []pawl.EnqueueOption{pawl.Attempts(9), pawl.Queue("bytes")}},
			},
		}, ignoring)
		pass(time.Minute)
		a, err := w.Get(t.Context(), w.schedule("a").LastJob)
		w.must(err)
		got := fmt.Sprint(a.Kind, a.Queue, string(a.Args), a.Priority, a.Timeout, a.Key, a.Tags, a.Capabilities, a.Headers(), a.MaxAttempts)
		if want := fmt.Sprint("welcome", "mail", `{"user_id":3}`, 2, 90*time.Second, "k", []string{"x", "y"}, []string{"gpu"},
			map[string]string{"trace": "1", "pawl-schedule": "a", "pawl-due": "2000-01-01T00:01:00Z"}, 4); got != want {
			t.Errorf("a is\n%s, want\n%s", got, want)
		}
		b, err := w.Get(t.Context(), w.schedule("b").LastJob)
		w.must(err)
		if string(b.Args) != "\x00\xff" || b.Queue != "bytes" || b.MaxAttempts != 9 {
			t.Errorf("b is %+v", b)
		}
	})
}
