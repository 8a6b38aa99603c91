package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

// lately is a range with everything of a short test in it.
func lately() (from, to time.Time) {
	return time.Now().Add(-24 * time.Hour), time.Now().Add(time.Minute)
}

func measured(t *testing.T, e interface {
	Metrics(context.Context, pawl.MetricQuery) (pawl.Metrics, error)
}, q pawl.MetricQuery) pawl.Metrics {
	t.Helper()
	if q.To.IsZero() {
		q.From, q.To = lately()
	}
	m, err := e.Metrics(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// wants compares what was counted, and only that.
func wants(t *testing.T, got pawl.JobMetrics, want map[pawl.MetricCount]uint64) {
	t.Helper()
	for c := pawl.MetricBegan; c <= pawl.MetricParked; c++ {
		if got.Count(c) != want[c] {
			t.Errorf("%d %s, want %d", got.Count(c), c, want[c])
		}
	}
}

func TestJ20_EveryOutcomeIsCounted(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			time.Sleep(time.Second) // virtual: what it takes
			switch {
			case j.Args.UserID == 1:
				return nil
			case j.Args.UserID == 2 && j.Run < 3:
				return errors.New("no luck yet")
			case j.Args.UserID == 2:
				return nil
			case j.Args.UserID == 3:
				return pawl.Dead(errors.New("no such user"))
			case j.Args.UserID == 4 && j.Run == 1:
				return pawl.Snooze(time.Minute)
			case j.Args.UserID == 5:
				return e5(ctx, j)
			}
			return nil
		}, pawl.Backoff(pawl.Constant(time.Minute)))
	}, func(t *testing.T, e *pawltest.Engine) {
		for user := range int64(5) {
			e.Enqueue(Welcome{user + 1})
		}
		e.Advance(10 * time.Minute)
		m := measured(t, e, pawl.MetricQuery{})
		if len(m.Series) != 1 || m.Series[0].Queue != "default" || m.Series[0].Kind != "welcome" || m.Unreadable != 0 {
			t.Fatalf("%+v", m)
		}
		total := m.Total()
		wants(t, total, map[pawl.MetricCount]uint64{
			pawl.MetricBegan: 8, pawl.MetricDone: 4, pawl.MetricFailed: 2, pawl.MetricDead: 1, pawl.MetricSnoozed: 1,
		})
		if n := total.RunTime.Count(); n != 8 || total.Runs() != 8 {
			t.Errorf("%d run times, want one for each run", n)
		}
		if n := total.TotalTime.Count(); n != 5 {
			t.Errorf("%d total times, want one for each job that ended", n)
		}
		if p := total.RunTime.Quantile(0.5); p < 950*time.Millisecond || p > 1050*time.Millisecond {
			t.Errorf("the median took %v, want 1s", p)
		}
		if p := total.TotalTime.Quantile(1); p < 2*time.Minute || p > 3*time.Minute {
			t.Errorf("the longest total is %v, want the two minutes of the retries", p)
		}
		if p := total.QueueTime.Quantile(1); p > 5*time.Second {
			t.Errorf("a job waited %v after it was due", p)
		}
	})
}

// e5 ends its job in a transaction of its own: that counts as any other end.
func e5(ctx context.Context, j *pawl.Job[Welcome]) error {
	return pawl.EngineFrom(ctx).Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error { return tx.Finish(j) })
}

// Not: only the leader's samples. Two processes on one file each hand over their own,
// and one that stops hands over what it has not yet.
func TestJ20_EveryProcessHandsOverItsOwn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "work.db")
	ran := make(chan string, 10)
	var engines []*pawl.Engine
	for _, name := range []string{"first", "second"} {
		e, err := pawl.New(sqlite.File(file), pawl.Config{Queues: pawl.Queues{name: {Workers: 1}}, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			ran <- name
			return nil
		})
		engines = append(engines, e)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for i, e := range engines {
		for range i + 1 {
			if _, err := e.Enqueue(ctx, Welcome{1}, pawl.Queue([]string{"first", "second"}[i])); err != nil {
				t.Fatal(err)
			}
		}
		go func() { ended <- e.Run(ctx) }()
	}
	for range 3 {
		<-ran
	}
	stop()
	for range engines {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	m := measured(t, engines[0], pawl.MetricQuery{})
	total := m.Total()
	if len(m.Series) != 2 || total.Count(pawl.MetricDone) != 3 {
		t.Errorf("%d series, %d done, want those of both", len(m.Series), total.Count(pawl.MetricDone))
	}
	// The total of everything is that of all series, and is counted apart from them.
	whole := measured(t, engines[0], pawl.MetricQuery{Total: true})
	if len(whole.Series) != 1 || whole.Series[0].Queue != "" || !reflect.DeepEqual(whole.Total(), m.Total()) {
		t.Errorf("the total is %+v, want %+v", whole.Total(), m.Total())
	}
	if some := measured(t, engines[0], pawl.MetricQuery{Queue: "f*", Total: true}); len(some.Series) != 1 || some.Series[0].Queue != "" {
		t.Errorf("the total of some queues has %d series", len(some.Series))
	}
	if m := measured(t, engines[1], pawl.MetricQuery{Queue: "f*"}); len(m.Series) != 1 || m.Series[0].Queue != "first" {
		t.Errorf("by a pattern: %+v", m.Series)
	}
	from, to := lately()
	loads, err := engines[0].WorkerLoads(t.Context(), pawl.LoadQuery{From: from, To: to})
	if err != nil || len(loads) != 2 || loads[0].Worker == loads[1].Worker || loads[0].Calls.Count() == 0 || loads[0].Memory == 0 {
		t.Errorf("%+v, %v", loads, err)
	}
}

func TestJ20_FailuresThatAreAlikeAreOneGroup(t *testing.T) {
	pawltest.Run(t, func(to *pawl.Engine) {
		pawl.Handle(to, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			if j.Args.UserID == 9 {
				panic("out of stamps")
			}
			return fmt.Errorf("user %d: mailbox full", j.Args.UserID)
		}, pawl.Backoff(pawl.Constant(time.Second)))
	}, func(t *testing.T, e *pawltest.Engine) {
		first := e.Enqueue(Welcome{1}, pawl.Attempts(2), pawl.Key("acme"))
		e.Advance(time.Minute)
		last := e.Enqueue(Welcome{2}, pawl.Attempts(1), pawl.Key("brick"))
		e.Enqueue(Welcome{9}, pawl.Attempts(1))
		e.Advance(time.Minute)
		from, to := lately()
		groups, err := e.FailureGroups(t.Context(), pawl.FailureQuery{From: from, To: to})
		if err != nil || len(groups) != 2 {
			t.Fatalf("%+v, %v", groups, err)
		}
		g := groups[0]
		if g.Failed != 3 || g.Dead != 2 || g.First.Job != first.ID || g.Last.Job != last.ID || g.Message != "user 2: mailbox full" || g.Kind != "welcome" {
			t.Errorf("%+v", g)
		}
		if fmt.Sprint(g.Keys) != "[acme brick]" || len(g.Versions) != 1 || !g.First.Time.Before(g.Last.Time) {
			t.Errorf("%+v", g)
		}
		j, err := e.Get(t.Context(), last.ID)
		if err != nil {
			t.Fatal(err)
		}
		if list := j.Failures.List(); len(list) != 1 || list[0].Fingerprint != g.Fingerprint {
			t.Errorf("the job's own failure has another fingerprint: %+v", list)
		}
		if only, err := e.FailureGroups(t.Context(), pawl.FailureQuery{From: from, To: to, Fingerprint: g.Fingerprint}); err != nil || len(only) != 1 {
			t.Errorf("by fingerprint: %+v, %v", only, err)
		}
		if top, err := e.FailureGroups(t.Context(), pawl.FailureQuery{From: from, To: to, Limit: 1}); err != nil || len(top) != 1 || top[0].Fingerprint != g.Fingerprint {
			t.Errorf("the first: %+v, %v", top, err)
		}
		if !strings.Contains(groups[1].Message, "out of stamps") {
			t.Errorf("the other: %+v", groups[1])
		}
	})
}

// A stop hands over what is measured while it waits: a failure is counted after its end
// is stored, here a second after.
func TestJ20_AStopWaitsForTheLastFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		e, err := pawl.New(sqlite.Memory(), pawl.Config{
			Queues: pawl.Queues{"default": {Workers: 2}, "mail": {Workers: 2}},
			Logger: quiet,
			Hooks:  pawl.Hooks{Finish: func(pawl.Finished) { time.Sleep(time.Second) }}, // virtual: the stimulus
		})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		begun := make(chan struct{}, 2)
		pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Welcome]) error {
			begun <- struct{}{}
			time.Sleep(time.Second) // virtual: both end in one batch
			return errors.New("mailbox full")
		})
		for user := range int64(2) {
			if _, err := e.Enqueue(ctx, Welcome{user}, pawl.Attempts(1)); err != nil {
				t.Fatal(err)
			}
		}
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		<-begun
		<-begun
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		from, to := lately()
		groups, err := e.FailureGroups(t.Context(), pawl.FailureQuery{From: from, To: to})
		if err != nil || len(groups) != 1 || groups[0].Failed != 2 {
			t.Errorf("%+v, %v", groups, err)
		}
	})
}

// A job that dies without a run is counted by whoever ended it.
func TestJ20_DeathsByUpkeepAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		defer e.Close()
		ignore[Welcome](e)
		ctx, stop := context.WithCancel(t.Context())
		if _, err := e.Enqueue(ctx, Welcome{3}, pawl.Queue("elsewhere"), pawl.Deadline(time.Now().Add(time.Second))); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		time.Sleep(5 * time.Minute) // virtual: past the deadline, and a flush
		m := measured(t, e, pawl.MetricQuery{Queue: "elsewhere"})
		wants(t, m.Total(), map[pawl.MetricCount]uint64{pawl.MetricDead: 1})
		from, to := lately()
		groups, err := e.FailureGroups(t.Context(), pawl.FailureQuery{From: from, To: to})
		if err != nil || len(groups) != 1 || groups[0].Dead != 1 || !strings.Contains(groups[0].Message, "deadline") {
			t.Errorf("%+v, %v", groups, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A process that runs rolls up what was measured; a range over minutes and hours has
// everything once.
func TestJ20_ARunningProcessRollsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		defer e.Close()
		ignore[Welcome](e)
		start := time.Now().Add(-60 * time.Hour).Truncate(time.Hour)
		old := store.MetricFlush{Source: pawl.NewID(), Number: 1} // of a process that is gone
		var done pawl.JobMetrics
		done.Add(pawl.MetricDone)
		for at := start; at.Before(time.Now()); at = at.Add(37 * time.Minute) {
			old.Rows = append(old.Rows, store.MetricRow{Class: metric.OfJobs, Start: at, Name: "default", Kind: "welcome", Data: done.Append(nil)})
		}
		if err := e.Store().(store.Metrics).AddMetrics(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		for range 5 {
			if _, err := e.Enqueue(ctx, Welcome{1}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Minute) // virtual
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		m := measured(t, e, pawl.MetricQuery{From: start, To: time.Now(), Step: time.Minute})
		var hours int
		for _, p := range m.Series[0].Points {
			if p.Span == time.Hour {
				hours++
			}
		}
		total := m.Total()
		if want := uint64(len(old.Rows) + 5); total.Count(pawl.MetricDone) != want || hours < 8 || len(m.Series[0].Points) <= hours {
			t.Errorf("%d done of %d, %d of %d points are hours", total.Count(pawl.MetricDone), want, hours, len(m.Series[0].Points))
		}
		time.Sleep(time.Hour) // virtual: what the stop has handed over comes of age
		report, err := e.Upkeep(t.Context(), "rollup")
		if err != nil || report.Round != "rollup" || report.Total() == 0 || report.Did[0].What != "metrics rolled up" {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

// bare is a store without metrics: handlers run all the same.
type bare struct{ store.Store }

func (bare) Open(ctx context.Context, s store.Settings) (store.Store, error) {
	st, err := sqlite.Memory().Open(ctx, s)
	return bare{st}, err
}

func TestJ20_AStoreWithoutMetricsIsNoFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := pawl.New(bare{}, pawl.Config{Queues: pawl.Queues{"default": {Workers: 1}}, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		ctx, stop := context.WithCancel(t.Context())
		pawl.Handle(e, func(context.Context, *pawl.Job[Welcome]) error { stop(); return nil })
		if _, err := e.Enqueue(ctx, Welcome{1}); err != nil {
			t.Fatal(err)
		}
		if err := e.Run(ctx); err != nil {
			t.Error(err)
		}
		if _, err := e.Metrics(t.Context(), pawl.MetricQuery{}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v", err)
		}
		if report, err := e.Upkeep(t.Context(), "rollup"); err != nil || report.Total() != 0 {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

func TestJ20_QuestionsOutOfBoundsAreRefused(t *testing.T) {
	e := newEngine()
	defer e.Close()
	now := time.Now()
	for name, q := range map[string]pawl.MetricQuery{
		"backwards": {From: now, To: now.Add(-time.Hour)},
		"half":      {Step: 30 * time.Second},
		"endless":   {From: now.Add(-365 * 24 * time.Hour), To: now, Step: time.Minute},
	} {
		if _, err := e.Metrics(t.Context(), q); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
