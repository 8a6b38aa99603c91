package demo_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/demo"
	"github.com/pawlwork/pawl/store/sqlite"
)

// patience is how long something may take that only a fault keeps from happening.
const patience = 3 * time.Minute

// town is a company that lives, on a file.
type town struct {
	t       *testing.T
	ctx     context.Context
	e       *pawl.Engine // the served one
	file    string
	company *demo.Company
}

// found lets a company live until the test ends.
func found(t *testing.T) *town {
	t.Helper()
	w := &town{t: t, file: filepath.Join(t.TempDir(), "demo.db")}
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithTimeout(t.Context(), patience)
	var err error
	if w.e, err = pawl.New(sqlite.File(w.file), pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 2}}, Logger: slog.New(slog.DiscardHandler), MetricsEvery: time.Second,
	}); err != nil {
		t.Fatal(err)
	}
	pawl.Handle(w.e, func(context.Context, *pawl.Job[tick]) error { return nil })
	if w.company, err = demo.New(demo.Config{
		Front: w.e, Open: opener(w.file), Feeds: feeds(w.file), Orders: 10, Restart: time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	}); err != nil {
		t.Fatal(err)
	}
	run, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served, lived := make(chan error, 1), make(chan error, 1)
	go func() { served <- w.e.Run(run) }()
	go func() { lived <- w.company.Run(run) }()
	t.Cleanup(func() {
		cancel()
		stop()
		if err := errors.Join(<-lived, <-served); err != nil {
			t.Errorf("it did not stop cleanly: %v", err)
		}
		report, err := w.e.Check(context.Background(), pawl.CheckOptions{})
		if err != nil || len(report.Faults) > 0 {
			t.Errorf("check: %v, %v", report.Faults, err)
		}
		if err := w.e.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// tick is a job of the test's own: the store has moved on when it is done.
type tick struct{}

func (tick) Kind() string { return "tick" }

// until waits until all of these have been seen, each once.
func (w *town) until(things map[string]func() bool) {
	w.t.Helper()
	for len(things) > 0 {
		maps.DeleteFunc(things, func(_ string, seen func() bool) bool { return seen() })
		r, err := w.e.Enqueue(w.ctx, tick{})
		if err == nil {
			_, err = w.e.Wait(w.ctx, r.ID)
		}
		if err != nil {
			w.t.Fatalf("%v; never seen: %v", err, slices.Sorted(maps.Keys(things)))
		}
	}
}

// list is the jobs that a filter finds.
func (w *town) list(f pawl.Filter) []pawl.JobRecord {
	w.t.Helper()
	l, err := w.e.List(w.ctx, f, pawl.Page{Limit: 500})
	if err != nil {
		w.t.Fatal(err)
	}
	return l.Jobs
}

// any reports whether one of the jobs that a filter finds fits.
func (w *town) any(f pawl.Filter, fits func(*pawl.JobRecord) bool) bool {
	w.t.Helper()
	return slices.ContainsFunc(w.list(f), func(j pawl.JobRecord) bool { return fits(&j) })
}

// group is the first group of failures of a kind.
func (w *town) group(kind string) pawl.FailureGroup {
	w.t.Helper()
	list, err := w.e.FailureGroups(w.ctx, pawl.FailureQuery{Kind: kind})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(list) == 0 {
		return pawl.FailureGroup{}
	}
	return list[0]
}

// queue is how a queue stands.
func (w *town) queue(name string) pawl.QueueState {
	w.t.Helper()
	list, err := w.e.Queues(w.ctx, name)
	if err != nil || len(list) != 1 {
		w.t.Fatalf("%v, %v", list, err)
	}
	return list[0]
}

// why is what keeps one of the ready jobs of a kind from running.
func (w *town) why(kind, key string, codes ...pawl.WhyCode) bool {
	w.t.Helper()
	return w.any(pawl.Filter{Kind: kind, Key: key, States: []pawl.State{pawl.StateWaiting}}, func(j *pawl.JobRecord) bool {
		why, err := w.e.Why(w.ctx, j.ID)
		return err == nil && slices.Contains(codes, why.Code)
	})
}

// story is everything that the demo tells by itself.
func (w *town) story() map[string]func() bool {
	return map[string]func() bool{
		"a mail that was refused and then sent": func() bool {
			return w.any(pawl.Filter{Kind: "mail.receipt", States: []pawl.State{pawl.StateDone}}, func(j *pawl.JobRecord) bool { return j.Used > 0 })
		},
		"a queue that cools down":       func() bool { return w.queue("geo").CoolDown != nil },
		"a queue that nobody serves":    func() bool { q := w.queue(demo.QueueLegacy); return q.Ready.Jobs > 0 && q.Workers == 0 },
		"why that is":                   func() bool { return w.why("legacy.push", "", pawl.WhyNoWorker) },
		"invoices that died alike":      func() bool { g := w.group("invoice.render"); return g.Dead > 0 && g.Fingerprint != "" },
		"a panic":                       func() bool { return w.group("thumb.make").Failed > 0 },
		"a declined card":               func() bool { return w.group("order.charge").Dead > 0 },
		"a key at its bound":            func() bool { return w.why("tenant.sync", "acme", pawl.WhyLimit) },
		"a small tenant that is served": func() bool { return len(w.list(pawl.Filter{Key: "globex", States: []pawl.State{pawl.StateDone}})) > 0 },
		"a parcel that waits":           func() bool { return w.why("order.ship", "", pawl.WhyScheduled) },
		"a result": func() bool {
			return w.any(pawl.Filter{Kind: "geo.lookup"}, func(j *pawl.JobRecord) bool { return len(j.Result) > 0 })
		},
		"a schedule that fired in its zone":        w.fired,
		"a report with progress and lines":         w.reports,
		"a job that is suspected of its processes": w.suspected,
		"metrics of the minute that is not over": func() bool {
			m, err := w.e.Metrics(w.ctx, pawl.MetricQuery{})
			if err != nil {
				w.t.Fatal(err)
			}
			total := m.Total()
			return total.Count(pawl.MetricDone) > 0 && total.Count(pawl.MetricThrottled) > 0
		},
		"a review for what the projector read": func() bool {
			c, err := w.e.CursorNamed(w.ctx, "projector")
			return err == nil && !c.Moved.IsZero() && len(w.list(pawl.Filter{Kind: "mail.review"})) > 0
		},
		"orders as events": func() bool {
			topics, err := w.e.Topics(w.ctx, "orders.*", "", 10)
			return err == nil && len(topics) == 2
		},
		"an order that is parked": func() bool {
			list, err := w.e.Group("loyalty").Parked(w.ctx, pawl.ParkedAfter{}, 10)
			return err == nil && len(list) > 0 && list[0].Failures == 3 && strings.Contains(list[0].Reason, "voucher")
		},
		"a group that is behind": func() bool {
			g, err := w.e.Group("warehouse").Info(w.ctx)
			return err == nil && g.Behind > 0 && g.Members > 0
		},
		"settings of operators": func() bool {
			l, err := w.e.Audit(w.ctx, pawl.AuditFilter{By: "ops"}, pawl.AuditPage{})
			return err == nil && len(l.Entries) > 0
		},
	}
}

func (w *town) fired() bool {
	list, err := w.e.Schedules(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.ContainsFunc(list, func(s pawl.ScheduleStatus) bool {
		return s.Name == "nightly" && s.Holds.Zone == "Europe/Berlin" && s.Fires > 0 && s.Fault == ""
	})
}

func (w *town) reports() bool {
	return w.any(pawl.Filter{Kind: "report.nightly", States: []pawl.State{pawl.StateRunning}}, func(j *pawl.JobRecord) bool {
		lines, err := w.e.Logs(w.ctx, j.ID, 0, 10)
		return err == nil && len(lines) > 0 && j.Progress.Done > 0 && j.Progress.Total == 60
	})
}

// suspected wants the job to have run again after it became a suspect, and its bystanders to live.
func (w *town) suspected() bool {
	return w.any(pawl.Filter{Kind: "feed.import"}, func(j *pawl.JobRecord) bool { return j.Suspect() && j.Run > 2 }) &&
		len(w.list(pawl.Filter{Kind: "feed.import", States: []pawl.State{pawl.StateDone}})) > 0
}

func TestU7_TheDemoTellsItsStory(t *testing.T) {
	w := found(t)
	w.until(w.story())
	for key, most := range map[string]int{"acme": 2, "globex": 2} {
		if n := len(w.list(pawl.Filter{Kind: "tenant.sync", Key: key, States: []pawl.State{pawl.StateRunning}})); n > most {
			t.Errorf("%d of %s run at once", n, key)
		}
	}
	for i, try := range w.company.Tries(w.ctx) {
		if try.Done || try.Title == "" || try.Hint == "" {
			t.Errorf("%d: nobody has tried anything: %+v", i, try)
		}
	}
}

// tried waits until one more thing is ticked off.
func (w *town) tried(n int) {
	w.t.Helper()
	w.until(map[string]func() bool{"a tick": func() bool { return w.company.Tries(w.ctx)[n].Done }})
}

func TestU7_WhatIsTriedInTheDemoIsTickedOff(t *testing.T) {
	w := found(t)
	dead := pawl.Filter{Kind: "invoice.render", States: []pawl.State{pawl.StateDead}}
	w.until(map[string]func() bool{
		"a dead invoice": func() bool { return len(w.list(dead)) > 0 },
		"a report that runs": func() bool {
			return len(w.list(pawl.Filter{Kind: "report.nightly", States: []pawl.State{pawl.StateRunning}})) > 0
		},
	})
	ann := pawl.As(w.ctx, "ann", "")

	t.Run("invoices", func(t *testing.T) {
		died := w.list(dead)
		shipped, err := w.company.Ship(auth.With(w.ctx, auth.Identity{Name: "ann", Role: auth.Operator}))
		if err != nil || !shipped.Changed || shipped.Version != "1.8.3" {
			t.Fatalf("%+v, %v", shipped, err)
		}
		if again, err := w.company.Ship(w.ctx); err != nil || again.Changed {
			t.Errorf("shipped twice: %+v, %v", again, err)
		}
		l, err := w.e.Audit(w.ctx, pawl.AuditFilter{Target: "invoice.render", By: "ann"}, pawl.AuditPage{})
		if err != nil || len(l.Entries) != 1 {
			t.Errorf("the audit log has %+v, %v", l.Entries, err)
		}
		workers, err := w.e.Workers(w.ctx)
		if err != nil || slices.ContainsFunc(workers, func(i pawl.WorkerInfo) bool { return i.Worker.Owner == "shop" && i.Worker.Version != "1.8.3" }) {
			t.Errorf("%+v, %v", workers, err)
		}
		if _, err := w.e.RetryAll(ann, dead); err != nil {
			t.Fatal(err)
		}
		for _, j := range died {
			if j, err := w.e.Wait(w.ctx, j.ID); err != nil || j.State != pawl.StateDone {
				t.Fatalf("%s is %v, %v", j.ID, j.State, err)
			}
		}
		w.tried(2)
	})
	t.Run("mail", func(t *testing.T) {
		if err := w.e.Queue("mail").Pause(ann); err != nil {
			t.Fatal(err)
		}
		w.until(map[string]func() bool{"a backlog": func() bool { return w.queue("mail").Ready.Jobs > 3 }})
		if err := w.e.Queue("mail").Resume(ann); err != nil {
			t.Fatal(err)
		}
		w.tried(1)
	})
	t.Run("report", func(t *testing.T) {
		var id pawl.ID
		w.until(map[string]func() bool{"a report that runs": func() bool {
			return w.any(pawl.Filter{Kind: "report.nightly", States: []pawl.State{pawl.StateRunning}}, func(j *pawl.JobRecord) bool { id = j.ID; return true })
		}})
		if _, err := w.e.Cancel(ann, id); err != nil {
			t.Fatal(err)
		}
		if j, err := w.e.Wait(w.ctx, id); err != nil || j.State != pawl.StateCancelled {
			t.Errorf("%v, %v", j.State, err)
		}
		lines, err := w.e.Logs(w.ctx, id, 0, 100)
		if err != nil || !slices.ContainsFunc(lines, func(l pawl.LogLine) bool { return strings.HasPrefix(l.Text, "stopped") }) {
			t.Errorf("it does not say where it stopped: %+v, %v", lines, err)
		}
		w.tried(3)
	})
	t.Run("geo", func(t *testing.T) {
		if err := w.e.Limit("geo").Set(ann, pawl.LimitSettings{PerSecond: 5}); err != nil {
			t.Fatal(err)
		}
		w.tried(4)
	})
	t.Run("loyalty", func(t *testing.T) { // 1.8.3 was shipped above
		loyalty := w.e.Group("loyalty")
		w.until(map[string]func() bool{"a parked order, or one that was too late for 1.8.2": func() bool {
			g, err := loyalty.Info(w.ctx)
			return err == nil && g.Waiting == 0 && g.Behind == 0
		}})
		if _, err := loyalty.Replay(ann); err != nil {
			t.Fatal(err)
		}
		w.tried(6)
	})
	t.Run("legacy", func(t *testing.T) {
		ctx, stop := context.WithCancel(w.ctx)
		ended := make(chan error, 1)
		go func() { ended <- demo.Work(ctx, opener(w.file), demo.QueueLegacy, slog.New(slog.DiscardHandler)) }()
		w.tried(0)
		w.until(map[string]func() bool{"a drain": func() bool { return w.queue(demo.QueueLegacy).Ready.Jobs == 0 }})
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestU7_AVisitOfTheWorkersSaysWhyNobodyServesAQueue(t *testing.T) {
	w := found(t)
	for _, path := range []string{"/", "/queues/mail", "/workers"} {
		want := path == "/workers"
		if w.company.Visited(path); w.company.Tries(w.ctx)[0].Done != want {
			t.Errorf("%s: counts: %v", path, !want)
		}
	}
}

func TestU7_AVisitOfTheWarehouseSaysHowFarItIsBehind(t *testing.T) {
	w := found(t)
	for _, path := range []string{"/streams", "/groups/loyalty", "/groups/warehouse"} {
		want := path == "/groups/warehouse"
		if w.company.Visited(path); w.company.Tries(w.ctx)[5].Done != want {
			t.Errorf("%s: counts: %v", path, !want)
		}
	}
}

func TestU7_BadInputOfTheDemoIsNamed(t *testing.T) {
	if _, err := demo.New(demo.Config{}); err == nil {
		t.Error("a company without an engine")
	}
	err := demo.Work(t.Context(), opener(filepath.Join(t.TempDir(), "x.db")), "mail", slog.New(slog.DiscardHandler))
	if err == nil || err.Error() != `queue "mail": must be one of legacy-sync, feeds` {
		t.Errorf("%v", err)
	}
}
