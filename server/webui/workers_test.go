package webui_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
)

// loud has everything in it that must stay text, and is long.
const loud = `<img src=x onerror=alert(1)><b>x</b>` + "\u202Etxt.exe\u202C\u200B" + `"'&lt;` + "\x1b[31m" + ` a_very_long_word_without_any_break_that_would_push_a_page_apart_if_it_were_let`

// remote registers a worker of another language.
func (c *control) remote(w pawl.RemoteWorker) pawl.WorkerID {
	c.t.Helper()
	id, err := c.e.Remote().Register(c.t.Context(), w)
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

// bring enqueues jobs, and lets a worker claim them.
func (c *control) bring(id pawl.WorkerID, n int) []pawl.JobRecord {
	c.t.Helper()
	items := make([]pawl.Item, n)
	for i := range items {
		items[i] = pawl.NewItem(pawl.RawArgs("py.render", []byte(`{}`)), pawl.Queue("py"))
	}
	if _, err := c.e.EnqueueMany(c.t.Context(), items...); err != nil {
		c.t.Fatal(err)
	}
	var all []pawl.JobRecord
	for len(all) < n {
		got, err := c.e.Remote().Claim(c.t.Context(), pawl.RemoteClaim{Worker: id, Limit: n - len(all), Wait: patience})
		if err != nil {
			c.t.Fatal(err)
		}
		all = append(all, got.Jobs...)
	}
	return all
}

// loads is what a process took in the last minutes, as it would have handed that over.
func (c *control) loads(label string) {
	c.t.Helper()
	now, err := c.e.Store().Now(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	flush := store.MetricFlush{Source: job.NewID(), Number: 1}
	for minute := 30; minute >= 1; minute-- {
		m := &metric.Load{Span: time.Minute, CPU: 24 * time.Second, Memory: 48_000_000, Goroutines: 40}
		if minute > 6 {
			m.CPU += time.Duration(minute%7) * time.Second
		}
		for i := range 100 {
			m.Calls.Add(time.Duration(i) * 50 * time.Microsecond)
		}
		flush.Rows = append(flush.Rows, store.MetricRow{Class: metric.OfWorkers, Start: now.Add(-time.Duration(minute) * time.Minute).Truncate(time.Minute), Name: label, Data: m.Append(nil)})
	}
	if err := c.e.Store().(store.Metrics).AddMetrics(c.t.Context(), flush); err != nil {
		c.t.Fatal(err)
	}
}

// end ends runs, some of them as dead.
func (c *control) end(id pawl.WorkerID, jobs []pawl.JobRecord, dead int) {
	c.t.Helper()
	for i := range jobs {
		e := pawl.RemoteEnd{RunRef: pawl.RunRef{ID: jobs[i].ID, Run: jobs[i].Run}, Outcome: pawl.RemoteDone}
		if i < dead {
			e.Outcome, e.Message = pawl.RemoteDead, "broken"
		}
		if _, err := c.e.Remote().Finish(c.t.Context(), id, []pawl.RemoteEnd{e}); err != nil {
			c.t.Fatal(err)
		}
	}
}

func worker(label, version string) pawl.RemoteWorker {
	return pawl.RemoteWorker{Label: label, Version: version, Host: "box-7", Queues: []string{"py"}, Kinds: []string{"py.render", "py.thumb"}, Capabilities: []string{"gpu"}, Slots: 200}
}

func TestU7_WorkersShowWhatTheyRun(t *testing.T) {
	c := serve(t, scheduled)
	c.run()
	until(t, func() bool { return c.e.Stats().Worker != 0 })
	py := c.remote(worker("py-1", "2.0"))
	c.loads("py-1")
	b := open(t, c, "/workers")
	b.has(".lead", "2 workers run")
	b.has(b.rowWith("py-1"), "40 %")
	b.has(b.rowWith("py-1"), "48 MB")
	b.has(b.rowWith("py-1"), "ms")
	b.has(b.rowWith("py-1"), "box-7")
	b.has(b.rowWith("worker-1.8.2"), "leads")
	b.accessible()

	b.click(b.rowWith("py-1") + " a.kind")
	b.wait(fmt.Sprintf(`location.pathname === "/workers/%d"`, py))
	b.settled()
	b.has(".opened", "py.thumb")
	b.has(".opened", "gpu")
	b.has(".opened", "100 %") // of the slots of its queue
	b.has(".opened", "Nothing.")
	// What it begins appears by itself, with how far it is.
	jobs := c.bring(py, 3)
	b.has(".opened", "py.render")
	_, err := c.e.Remote().Note(t.Context(), py, []pawl.RemoteNote{{
		RunRef: pawl.RunRef{ID: jobs[0].ID, Run: jobs[0].Run}, Progress: &pawl.Progress{Done: 3, Total: 4, Note: "halfway and more"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	b.has(".opened", "3 of 4")
	b.has(".opened", "halfway and more")
	b.has(b.rowWith("py-1"), "3 of 200")
	b.accessible()
	b.shots("workers")
	b.fitsAPhone()
	b.leave("location.reload()")
	b.has(".opened", "py.render")
	b.settled()
	b.leave("history.back()")
	b.wait(`location.pathname === "/workers" && !document.querySelector(".opened")`)
	b.settled()
	c.end(py, jobs, 0)
	if err := c.e.Remote().Leave(t.Context(), py); err != nil {
		t.Fatal(err)
	}
	b.has(".lead", "1 worker runs")
	b.visit(fmt.Sprintf("/workers/%d", py))
	b.has("main", "is not here any more")
}

func TestU7_VersionsAreComparedSideBySide(t *testing.T) {
	c := serve(t)
	old, young := c.remote(worker("py-1", "1.8.1")), c.remote(worker("py-2", "1.8.2"))
	c.end(old, c.bring(old, 100), 10)
	c.end(young, c.bring(young, 100), 30)
	b := open(t, c, "/workers")
	b.has(".versions", "1.8.2 fails 3 × as often as 1.8.1.")
	b.has(".versions", "10 %")
	b.has(".versions", "30 %")
	b.accessible()
	b.shots("versions")

	few := serve(t)
	few.remote(worker("py-1", "1.8.1"))
	few.remote(worker("py-2", "1.8.2"))
	b = open(t, few, "/workers")
	b.has(".versions", "100 are needed to compare")
}

func TestU7_HostileWorkersAreText(t *testing.T) {
	c := serve(t, as(auth.Viewer))
	id := c.remote(pawl.RemoteWorker{Label: "<b>bold</b> <img src=x onerror=alert(1)> \"quoted\" a_very_long_label_without_any_break_that_would_push_a_page_apart",
		Version: "<script>alert(1)</script>", Host: "<i>host</i>", Queues: []string{"py"}, Kinds: []string{"py.render"}})
	jobs := c.bring(id, 1)
	if _, err := c.e.Remote().Note(t.Context(), id, []pawl.RemoteNote{{
		RunRef: pawl.RunRef{ID: jobs[0].ID, Run: jobs[0].Run}, Progress: &pawl.Progress{Done: 1, Total: 2, Note: loud},
	}}); err != nil {
		t.Fatal(err)
	}
	b := open(t, c, fmt.Sprintf("/workers/%d", id))
	b.has("main", "<b>bold</b>")
	b.has("main", "<script>alert(1)</script>")
	b.has(".opened", "⟨RLO⟩")
	noButtons(b)
	b.unharmed()
}

// unharmed wants that nothing that users wrote became part of the page, and that it holds together.
func (b *tab) unharmed() {
	b.t.Helper()
	if got := eval[[]string](b, `[...document.querySelectorAll("main img, main b > b, main [onerror], main script, main td i, main p i, main li i")].map((e) => e.outerHTML)`); len(got) > 0 {
		b.t.Errorf("became markup: %q", got)
	}
	if eval[int](b, "document.documentElement.scrollWidth") > 1440 {
		b.t.Error("the page scrolls sideways")
	}
	b.accessible()
	b.fitsAPhone()
}

// operator does things under the name of somebody, with a note.
func operating(ctx context.Context, note string) context.Context { return pawl.As(ctx, "ann", note) }
