package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

func TestJ30_AChangeIsFollowedAndTakenBack(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		w := at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 10}}}, waiting)
		ops := at.settle(pawl.Config{})
		ctx := pawl.As(t.Context(), "ann", "too much at once")
		ops.must(ops.Queue("default").Set(ctx, pawl.QueueSettings{Total: 3}))
		soon()
		w.add(30)
		soon()
		if n := w.Stats().Running; n != 3 {
			t.Errorf("%d jobs run, want the total of 3", n)
		}
		ops.must(ops.Queue("default").Set(ctx, pawl.QueueSettings{Total: 8, KeepDone: time.Hour}))
		soon()
		if n := w.Stats().Running; n != 8 {
			t.Errorf("%d jobs run, want the total of 8", n)
		}
		ops.must(ops.Queue("default").Reset(ctx, "total"))
		soon()
		if n := w.Stats().Running; n != 10 {
			t.Errorf("%d jobs run, want all 10 workers again", n)
		}
		shown, err := ops.Settings(ctx)
		ops.must(err)
		q := shown.Queues[0]
		if len(shown.Queues) != 1 || q.Name != "default" || q.Holds.Total != 0 || q.Holds.KeepDone != time.Hour || q.Owner != "pawl.test" ||
			!slices.Equal(q.Overridden, []string{"keep_done"}) || q.By != "ann" || q.Note != "too much at once" || q.Declared.KeepDone != 0 {
			t.Errorf("shown: %+v", shown.Queues)
		}
		if len(shown.Versions) != 1 || !shown.Versions[0].Live || shown.Versions[0].Seen.IsZero() {
			t.Errorf("versions: %+v", shown.Versions)
		}
	})
}

func TestJ30_SettingsAreChecked(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		ops := at.settle(pawl.Config{})
		ctx := t.Context()
		for part, err := range map[string]error{
			`QueueSettings "nothing"`: ops.Queue("q").Set(ctx, pawl.QueueSettings{}),
			"QueueSettings.Total -7":  ops.Queue("q").Set(ctx, pawl.QueueSettings{Total: -7}),
			`queue "a b"`:             ops.Queue("a b").Set(ctx, pawl.QueueSettings{Total: 1}),
			`queue "a[*"`:             ops.Queue("a[*").Set(ctx, pawl.QueueSettings{Total: 1}),
			`queue "mail.*"`:          ops.Queue("mail.*").Pause(ctx),
			`queue ""`:                ops.Queue("").Reset(ctx),
			`field "totals"`:          ops.Queue("q").Reset(ctx, "totals"),
			`kind "a,b"`:              ops.Kind("a,b").Pause(ctx),
			`round "tidy"`:            ops.SetUpkeep(ctx, "tidy", time.Second),
			"every 1ms":               ops.SetUpkeep(ctx, "purge", time.Millisecond),
		} {
			if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), part) {
				t.Errorf("%v does not name %s", err, part)
			}
		}
	})
}

// A deploy takes over with its first worker, a rollback brings back what was, and
// with the last worker the code's own holds again. Who only enqueues learns of it.
func TestJ30_ARollbackRestoresItself(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		web := at.settle(pawl.Config{Attempts: 11})
		attempts := func(want int) {
			t.Helper()
			web.add(1, pawl.Queue("elsewhere")) // it may be an old value that this one has: it looks beside the call
			synctest.Wait()
			j, err := web.Get(t.Context(), web.add(1)[0])
			if err != nil || j.MaxAttempts != want {
				t.Errorf("%d attempts, %v; want %d", j.MaxAttempts, err, want)
			}
			pass(2 * time.Second)
		}
		attempts(11)
		version := func(v string, attempts int) pawl.Config {
			return pawl.Config{Owner: "shop", Version: v, Queues: pawl.Queues{"default": {Workers: 1, Attempts: attempts}}}
		}
		old := at.work(version("v1", 3), ignoring)
		attempts(3)
		next := at.work(version("v2", 7), ignoring)
		attempts(7)
		next.leave()
		soon()
		attempts(3)
		old.leave()
		soon()
		attempts(11)
	})
}

func TestJ30_PausesOfAKindAndOfEverything(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		w := at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 4}}}, func(e *pawl.Engine) { ignoring(e); ignore[Ship](e) })
		ops := at.settle(pawl.Config{})
		ctx := t.Context()
		ship := func() pawl.ID {
			r, err := w.Enqueue(ctx, Ship{1})
			w.must(err)
			return r.ID
		}
		ops.must(ops.Kind("welcome").Pause(pawl.As(ctx, "ann", "wrong text")))
		soon()
		paused, shipped := w.add(1)[0], ship()
		soon()
		if w.state(paused) != pawl.StateWaiting || w.state(shipped) != pawl.StateDone {
			t.Errorf("the paused kind is %v, the other %v", w.state(paused), w.state(shipped))
		}
		if why, err := w.Why(ctx, paused); err != nil || why.Code != pawl.WhyKindPaused || !strings.Contains(why.String(), "ann") {
			t.Errorf("why: %v, %v", why, err)
		}
		fresh := at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 4}}}, ignoring) // it must not begin one before it has heard
		pass(time.Minute)
		if fresh.state(paused) != pawl.StateWaiting {
			t.Errorf("a process that came later took the paused kind: %v", fresh.state(paused))
		}
		ops.must(ops.Freeze(ctx))
		ops.must(ops.Kind("welcome").Resume(ctx))
		soon()
		frozen := ship()
		soon()
		if w.state(paused) != pawl.StateWaiting || w.state(frozen) != pawl.StateWaiting {
			t.Errorf("frozen: %v and %v", w.state(paused), w.state(frozen))
		}
		ops.must(ops.Unfreeze(ctx))
		soon()
		if w.state(paused) != pawl.StateDone || w.state(frozen) != pawl.StateDone {
			t.Errorf("after: %v and %v", w.state(paused), w.state(frozen))
		}
	})
}

// A process that cannot read what is paused claims nothing.
func TestJ30_NothingIsClaimedBeforePausesAreKnown(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		ops := at.settle(pawl.Config{})
		ops.must(ops.Kind("welcome").Pause(t.Context()))
		id := ops.add(1)[0]
		w := at.settle(pawl.Config{Queues: pawl.Queues{"default": {Workers: 4}}, Grace: time.Second})
		down := error(store.ErrUnavailable)
		w.way.refused.Store(&down)
		ignore[Welcome](w.Engine)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		pass(20 * time.Second)
		w.way.refused.Store(nil)
		pass(20 * time.Second)
		if s := w.state(id); s != pawl.StateWaiting {
			t.Errorf("the job of a paused kind is %v", s)
		}
		ops.must(ops.Kind("welcome").Resume(t.Context()))
		pass(5 * time.Second)
		if s := w.state(id); s != pawl.StateDone {
			t.Errorf("after: %v", s)
		}
		cancel()
		w.must(<-ended)
	})
}

func TestJ30_PatternsServeQueuesThatCome(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var running sync.Map
		w := at.work(pawl.Config{Queues: pawl.Queues{"*": {Workers: 1}, "mail.*": {Workers: 2}, "mail.slow": {Workers: 3}}}, func(e *pawl.Engine) {
			pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
				n, _ := running.LoadOrStore(j.Queue, new(atomic.Int64))
				n.(*atomic.Int64).Add(1)
				<-ctx.Done()
				return ctx.Err()
			})
		})
		web := at.settle(pawl.Config{})
		for _, queue := range []string{"mail.eu", "mail.slow", "video", "mail.us"} {
			web.add(5, pawl.Queue(queue))
		}
		pass(6 * time.Second) // a poll: the other process has told no names
		w.add(5, pawl.Queue("own"))
		soon()
		for queue, want := range map[string]int64{"mail.eu": 2, "mail.us": 2, "mail.slow": 3, "video": 1, "own": 1} {
			n, ok := running.Load(queue)
			if !ok || n.(*atomic.Int64).Load() != want {
				t.Errorf("%s: %v run, want %d", queue, n, want)
			}
		}
		workers, err := w.Workers(t.Context())
		w.must(err)
		if got, want := workers[0].Worker.Queues, []string{"*", "mail.*", "mail.slow"}; !sameNames(got, want) {
			t.Errorf("registered for %v, want %v", got, want)
		}
		web.must(web.Queue("video").Set(t.Context(), pawl.QueueSettings{Attempts: 4})) // an operator's word for a pattern's queue
		soon()
		if j, err := w.Get(t.Context(), w.add(1, pawl.Queue("video"))[0]); err != nil || j.MaxAttempts != 4 {
			t.Errorf("%d attempts, %v", j.MaxAttempts, err)
		}
	})
}

func sameNames(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

func TestJ30_BadPatternsAreRefused(t *testing.T) {
	for _, name := range []string{"mail.[*", "a *", "*,b", "*>"} {
		_, err := pawl.New(sqlite.Memory(), pawl.Config{Queues: pawl.Queues{name: {Workers: 1}}})
		if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "Config.Queues") {
			t.Errorf("%q: %v", name, err)
		}
	}
	t.Setenv("PAWL_QUEUES", "mail.*=3,*")
	e, err := pawl.New(sqlite.Memory(), pawl.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Run(t.Context()); !errors.Is(err, pawl.ErrNoHandlers) {
		t.Errorf("run: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// While one process has heard of a lower total and another has not, the lower holds:
// they share by the lowest that one of them has.
func TestJ30_ATotalThatChangesIsNeverExceeded(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		var now, most atomic.Int64
		brief := func(e *pawl.Engine) {
			pawl.Handle(e, func(context.Context, *pawl.Job[Welcome]) error {
				n := now.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				time.Sleep(100 * time.Millisecond) // virtual
				now.Add(-1)
				return nil
			})
		}
		cfg := pawl.Config{Queues: pawl.Queues{"default": {Workers: 10, Total: 8}}}
		a, b := at.work(cfg, brief), at.work(cfg, brief)
		ops := at.settle(pawl.Config{})
		pass(15 * time.Second) // both share
		during := func(what string, least, want int64) {
			t.Helper()
			most.Store(0)
			pass(5 * time.Second)
			if n := most.Load(); n > want || n < least {
				t.Errorf("%s: up to %d run at once, want %d", what, n, want)
			}
		}
		ops.add(5_000)
		pass(2 * time.Second)
		during("at first", 8, 8)
		deaf := errors.New("cannot read")
		b.way.refused.Store(&deaf)
		ops.must(ops.Queue("default").Set(t.Context(), pawl.QueueSettings{Total: 4}))
		pass(2 * time.Second) // what began under the larger one ends
		during("one has heard of a lower one", 4, 4)
		b.way.refused.Store(nil)
		pass(10 * time.Second)
		during("both have", 4, 4)
		b.way.refused.Store(&deaf)
		ops.must(ops.Queue("default").Set(t.Context(), pawl.QueueSettings{Total: 12}))
		soon()
		during("one has heard of a higher one", 4, 4)
		b.way.refused.Store(nil)
		pass(10 * time.Second)
		during("both have heard of it", 12, 12)
		a.leave()
	})
}

// An idle engine reads the settings when something has changed, and never else.
func TestJ30_IdleProcessesDoNotAskForSettings(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		w := at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 4}}}, ignoring)
		web := at.settle(pawl.Config{})
		pass(time.Minute)
		reads, others := w.way.reads.Load(), web.way.reads.Load()
		pass(time.Hour)
		if n, m := w.way.reads.Load()-reads, web.way.reads.Load()-others; n != 0 || m != 0 {
			t.Errorf("%d and %d reads of settings in an idle hour, want none", n, m)
		}
		web.must(web.Queue("default").Set(t.Context(), pawl.QueueSettings{Attempts: 3}))
		pass(time.Hour)
		// A hint and an answer tell of it. Which comes first is open, and a hint after the look costs another.
		if n := w.way.reads.Load() - reads; n < 1 || n > 2 {
			t.Errorf("%d reads for one change, want 1 or 2", n)
		}
		for range 20 {
			web.add(1)
			pass(100 * time.Millisecond)
		}
		if m := web.way.reads.Load() - others; m < 1 || m > 4 {
			t.Errorf("%d reads for 2 s of enqueues, want about one a second", m)
		}
	})
}

func TestJ30_ConflictsAreToldOnceAndInHealth(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		of := func(owner string, total int) pawl.Config {
			return pawl.Config{Owner: owner, Version: "v1", Queues: pawl.Queues{"default": {Workers: 2, Total: total}}}
		}
		first := at.work(of("billing", 4), ignoring)
		first.must(first.Health(t.Context()))
		second := at.work(of("shop", 9), ignoring)
		pass(time.Minute)
		err := first.Health(t.Context())
		if !errors.Is(err, pawl.ErrConflict) || !strings.Contains(err.Error(), "queue default") || !strings.Contains(err.Error(), "billing") || !strings.Contains(err.Error(), "shop v1") {
			t.Errorf("health: %v", err)
		}
		if n := strings.Count(at.log.String(), "declared differently"); n != 2 {
			t.Errorf("told %d times, want once by each process:\n%s", n, at.log)
		}
		shown, err := second.Settings(t.Context())
		if err != nil || shown.Queues[0].Holds.Total != 4 || len(shown.Queues[0].Conflicts) != 1 {
			t.Errorf("shown: %+v, %v", shown, err)
		}
		second.leave()
		soon()
		first.must(first.Health(t.Context()))
	})
}

// The file's name is the owner by default: one that holds the version makes each deploy
// another owner, which is told once.
func TestJ30_OwnersThatLookLikeVersionsAreTold(t *testing.T) {
	const told = "two owners look like versions of one program"
	for _, c := range []struct {
		first, second string
		times         int
	}{{"app-1.2", "app-1.3", 2}, {"app", "app_v2", 2}, {"app-2026.11.16-rc1", "app", 2}, {"billing", "shop", 0}, {"app1", "app2", 0}} {
		inTown(t, func(t *testing.T, at *town) {
			of := func(owner string, total int) pawl.Config {
				return pawl.Config{Owner: owner, Version: "v1", Queues: pawl.Queues{"default": {Workers: 2, Total: total}, "mail.*": {Workers: 2, Total: total}}}
			}
			at.work(of(c.first, 4), ignoring)
			at.work(of(c.second, 9), ignoring)
			pass(time.Minute)
			if n := strings.Count(at.log.String(), told); n != c.times {
				t.Errorf("%s and %s: told %d times, want %d: once by each process", c.first, c.second, n, c.times)
			}
		})
	}
}

// What nobody serves is in the numbers of one process of the cluster, for exporters
// to read, until somebody serves it.
func TestJ18_WhatNobodyServesIsInTheStats(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		w := at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}}, ignoring)
		second := at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}}, ignoring)
		w.add(3, pawl.Queue("orphans"))
		pass(7 * time.Minute)
		got := w.Stats().Unserved
		if len(got) != 1 || got[0].Queue != "orphans" || got[0].Jobs != 3 || got[0].Why != "no live worker serves queue orphans" {
			t.Errorf("unserved: %+v", got)
		}
		if got := second.Stats().Unserved; len(got) != 0 {
			t.Errorf("beside the first, unserved: %+v", got)
		}
		if why, err := w.Why(t.Context(), second.add(1, pawl.Queue("orphans"))[0]); err != nil || why.Code != pawl.WhyNoWorker {
			t.Errorf("why: %v, %v", why, err)
		}
		at.work(pawl.Config{Queues: pawl.Queues{"orphans": {Workers: 1}}}, ignoring)
		pass(2 * time.Minute)
		if got := w.Stats().Unserved; len(got) != 0 {
			t.Errorf("after somebody came, unserved: %+v", got)
		}
	})
}

func TestJ30_TwoProcessesOfOneVersionThatDifferAreTold(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		of := func(total int) pawl.Config {
			return pawl.Config{Owner: "billing", Version: "v1", Queues: pawl.Queues{"default": {Workers: 2, Total: total}}}
		}
		first := at.work(of(4), ignoring)
		first.must(first.Health(t.Context()))
		second := at.work(of(9), ignoring)
		pass(time.Minute)
		err := first.Health(t.Context())
		for _, want := range []string{"queue default", "billing v1", `{"total":4}`, `{"total":9}`} {
			if !errors.Is(err, pawl.ErrConflict) || !strings.Contains(err.Error(), want) {
				t.Errorf("health: %v, want %q", err, want)
			}
		}
		if n := strings.Count(at.log.String(), "declared differently"); n != 1 {
			t.Errorf("told %d times, want once, by the process that does not count:\n%s", n, at.log)
		}
		second.must(second.Health(t.Context()))
	})
}

func TestJ30_PeriodsOfUpkeepAreSettings(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		w := at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}}, ignoring)
		cycles := func() uint64 {
			for _, s := range w.Services(t.Context()) {
				if s.Name == "keeper/purge" {
					return s.Cycles
				}
			}
			return 0
		}
		during := func(what string, least, most uint64) {
			t.Helper()
			before := cycles()
			pass(10 * time.Minute)
			if n := cycles() - before; n < least || n > most {
				t.Errorf("%s: %d rounds in 10 minutes, want %d to %d", what, n, least, most)
			}
		}
		during("by default", 9, 11)
		w.must(w.SetUpkeep(t.Context(), "purge", 10*time.Second))
		during("every 10 s", 55, 65)
		shown, err := w.Settings(t.Context())
		if err != nil || len(shown.Upkeep) != 1 || shown.Upkeep[0].Round != "purge" || shown.Upkeep[0].Every != 10*time.Second || shown.Upkeep[0].By != "code" {
			t.Errorf("shown: %+v, %v", shown.Upkeep, err)
		}
		w.must(w.SetUpkeep(t.Context(), "purge", 0))
		during("taken back", 9, 12)
	})
}

func TestJ30_BackoffIsDataUnlessAFunctionIsGiven(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		fails := func(e *pawl.Engine) {
			pawl.Handle(e, func(context.Context, *pawl.Job[Welcome]) error { return errors.New("no luck") })
		}
		w := at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 4}, "own": {Workers: 4, Backoff: pawl.Constant(time.Minute)}}}, fails)
		for _, queue := range []string{"default", "own"} {
			w.must(w.Queue(queue).Set(t.Context(), pawl.QueueSettings{Backoff: &pawl.BackoffSettings{Base: 5 * time.Hour, Max: 5 * time.Hour}}))
		}
		soon()
		due := func(queue string) time.Duration {
			id := w.add(1, pawl.Queue(queue))[0]
			soon()
			j, err := w.Get(t.Context(), id)
			w.must(err)
			return time.Until(j.Due)
		}
		if d := due("default"); d < 2*time.Hour {
			t.Errorf("due in %v, want what was set", d)
		}
		if d := due("own"); d > time.Minute {
			t.Errorf("due in %v, want what the function says", d)
		}
	})
}

func TestJ30_OwnerAndVersionHaveDefaults(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		w := at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 1, Total: 3}}, Worker: pawl.Worker{Prefix: "p", ID: "i"}}, ignoring)
		workers, err := w.Workers(t.Context())
		w.must(err)
		self := workers[0].Worker
		if self.Owner != "pawl.test" || self.Version == "" || self.Label != fmt.Sprintf("p-worker-%s-i", self.Version) {
			t.Errorf("registered as %+v", self)
		}
		w.leave()
		other := at.work(pawl.Config{Queues: pawl.Queues{"default": {Workers: 1, Total: 4}}}, ignoring)
		workers, err = other.Workers(t.Context())
		other.must(err)
		for _, o := range workers {
			if !o.Lost && o.Worker.Version == self.Version {
				t.Errorf("two that declare different things are of one version, %s", self.Version)
			}
		}
	})
}

// Before a process has registered nobody declares anything, but its own pattern holds for it:
// what operators have set stands over what the code says.
func TestJ30_WhatOperatorsSetStandsOverTheCodesOwn(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		ops := at.settle(pawl.Config{})
		ops.must(ops.Queue("video").Set(t.Context(), pawl.QueueSettings{KeepDone: time.Hour}))
		idle := at.settle(pawl.Config{Queues: pawl.Queues{"vid*": {Workers: 2, Attempts: 5}}}) // declares nothing: it does not run
		if j, err := idle.Get(t.Context(), idle.add(1, pawl.Queue("video"), pawl.In(time.Hour))[0]); err != nil || j.MaxAttempts != 5 {
			t.Errorf("before anybody declares it: %d attempts, %v", j.MaxAttempts, err)
		}
		w := at.work(pawl.Config{Queues: pawl.Queues{"vid*": {Workers: 2, Attempts: 6, KeepDone: pawl.KeepNone}}}, ignoring)
		id := w.add(1, pawl.Queue("video"))[0]
		soon()
		j, err := w.Get(t.Context(), id)
		if err != nil || j.State != pawl.StateDone || j.MaxAttempts != 6 || j.Expires.Sub(j.Finished) != time.Hour {
			t.Errorf("%s with %d attempts, kept for %v, %v", j.State, j.MaxAttempts, j.Expires.Sub(j.Finished), err)
		}
	})
}

// What a pattern says is declared: who serves none of its queues learns of it, and
// what the store itself ends is kept as it says. Its total is each queue's own.
func TestJ30_WhatAPatternSaysHoldsForEverybody(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		web := at.settle(pawl.Config{Attempts: 11})
		w := at.work(pawl.Config{Owner: "shop", Version: "v1", Queues: pawl.Queues{
			"mail.*": {Workers: 5, Total: 2, Attempts: 3, KeepCancelled: time.Hour}, "mail.own": {Workers: 5, Attempts: 7},
		}}, waiting)
		send := func(queue string) pawl.JobRecord {
			t.Helper()
			pass(2 * time.Second)
			web.add(1, pawl.Queue("elsewhere")) // it looks beside the call
			synctest.Wait()
			id := web.add(1, pawl.Queue(queue), pawl.In(time.Hour))[0]
			_, err := web.Cancel(t.Context(), id)
			web.must(err)
			j, err := web.Get(t.Context(), id)
			web.must(err)
			return j
		}
		holds := func(what, queue string, attempts int, kept time.Duration) {
			t.Helper()
			if j := send(queue); j.MaxAttempts != attempts || j.Expires.Sub(j.Finished) != kept {
				t.Errorf("%s: %s has %d attempts and is kept for %v, want %d and %v", what, queue, j.MaxAttempts, j.Expires.Sub(j.Finished), attempts, kept)
			}
		}
		const week = 7 * 24 * time.Hour
		holds("declared", "mail.eu", 3, time.Hour)
		holds("its own", "mail.own", 7, week)
		holds("not named", "video", 11, week)
		for _, queue := range []string{"mail.eu", "mail.us"} {
			web.add(5, pawl.Queue(queue))
		}
		pass(10 * time.Second)
		if n := w.Stats().Running; n != 4 {
			t.Errorf("%d jobs run, want the total of 2 of each queue", n)
		}
		states, err := web.Queues(t.Context(), "mail.eu", "mail.new", "mail.own", "video")
		web.must(err)
		var totals []int
		for _, q := range states {
			totals = append(totals, q.Total)
		}
		if !slices.Equal(totals, []int{2, 2, 0, 0}) {
			t.Errorf("totals are %v, want those of the pattern for the first two", totals)
		}

		ctx := pawl.As(t.Context(), "ann", "too many")
		web.must(web.Queue("mail.*").Set(ctx, pawl.QueueSettings{Attempts: 9, Total: 3}))
		web.must(web.Queue("mail.us").Set(ctx, pawl.QueueSettings{Total: 1}))
		holds("set", "mail.eu", 9, time.Hour)
		holds("set over its own", "mail.own", 9, week)
		shown, err := web.Settings(t.Context())
		web.must(err)
		var names []string
		for _, q := range shown.Queues {
			names = append(names, q.Name)
		}
		if want := []string{"mail.*", "mail.own", "mail.us"}; !slices.Equal(names, want) {
			t.Errorf("shown are %v, want %v", names, want)
		}
		q := shown.Queue("mail.us")
		if q.Pattern != "mail.*" || q.Owner != "shop" || q.Declared.Total != 2 || q.Holds.Total != 1 || q.Holds.Attempts != 9 ||
			!slices.Equal(q.Overridden, []string{"attempts", "total"}) || q.By != "ann" {
			t.Errorf("mail.us: %+v", q)
		}
		web.must(web.Queue("mail.*").Reset(ctx))
		holds("taken back", "mail.eu", 3, time.Hour)
		w.leave()
		soon()
		holds("gone with its last worker", "mail.eu", 11, week)
	})
}
