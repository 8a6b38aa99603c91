//go:build fault

package fault

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
)

// TestFault_J29_AKilledErasureIsFinishedByTheNextCall kills processes that erase a namespace, in the middle of it. The next
// one goes on where that one was, the last call finds the rest, and another namespace of the database has lost nothing.
func TestFault_J29_AKilledErasureIsFinishedByTheNextCall(t *testing.T) {
	for name, on := range map[string]func(*testing.T) *ground{"sqlite": onSQLite, "postgres": onPostgres} {
		t.Run(name, func(t *testing.T) {
			g := on(t)
			chance := seeded(t)
			ctx := pawl.As(t.Context(), "ann", "the customer left")
			const jobs = 600
			g.fill(ctx, g.Engine, jobs)
			other := config()
			other.Namespace = "other"
			neighbour, err := pawl.Open(ctx, g.address, other)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := neighbour.Close(); err != nil {
					t.Error(err)
				}
			}()
			g.fill(ctx, neighbour, jobs)

			f := newFleet(t, g.address)
			steps, kills := 0, 0
			for kills < 6 {
				p := f.start("eraser")
				for until := steps + 1 + chance.IntN(12); steps < until; {
					f.hear(p, "erased") // it fails the test when there is nothing left to be killed at
					steps++
				}
				f.kill(p)
				kills++
			}
			rows, err := g.EraseNamespace(ctx, "default")
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d steps of %d rows were heard of before %d kills, %d rows were left", steps, eraseStep, kills, rows)
			if rows == 0 {
				t.Error("the killed ones left nothing: nothing is proven")
			}
			if n := g.kept(ctx, g.Engine); n != (contents{}) {
				t.Errorf("left: %+v", n)
			}
			if again, err := g.EraseNamespace(ctx, "default"); err != nil || again != 0 {
				t.Errorf("erased again: %d rows, %v", again, err)
			}
			if n := g.kept(ctx, neighbour); n.jobs != jobs || n.lines != jobs/2 || n.audit == 0 || n.settings != 2 {
				t.Errorf("the other namespace has %+v, want %d jobs", n, jobs)
			}
			if report, err := neighbour.Check(ctx, pawl.CheckOptions{}); err != nil || len(report.Faults) > 0 {
				t.Errorf("check of the other: %+v, %v", report.Faults, err)
			}
		})
	}
}

// fill leaves jobs in a namespace: half of them has ended with a log line, half waits with a unique key or is cancelled;
// and settings of operators. No worker lives afterwards.
func (g *ground) fill(ctx context.Context, e *pawl.Engine, jobs int) {
	g.t.Helper()
	pawl.Handle(e, func(_ context.Context, j *pawl.Job[Effect]) error {
		j.Log().Info("a line")
		return nil
	})
	pawl.Handle(e, func(context.Context, *pawl.Job[Hold]) error { return nil })
	var items []pawl.Item
	for n := range jobs / 2 {
		items = append(items, pawl.NewItem(Effect{n}), pawl.NewItem(Hold{N: n}, pawl.Queue("elsewhere"), pawl.Unique()))
	}
	receipts, err := e.EnqueueMany(ctx, items...)
	if err != nil {
		g.t.Fatal(err)
	}
	for n := range 5 {
		if _, err := e.Cancel(ctx, receipts[2*n+1].ID); err != nil {
			g.t.Fatal(err)
		}
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- e.Run(running) }()
	look := time.NewTicker(50 * time.Millisecond) // nobody tells when all have ended
	defer look.Stop()
	for {
		n, err := e.Count(ctx, pawl.Filter{States: []pawl.State{pawl.StateDone}}, 0)
		if err != nil {
			g.t.Fatal(err)
		}
		if n.Jobs == jobs/2 {
			break
		}
		<-look.C
	}
	stop()
	if err := errors.Join(<-ended, e.Queue("elsewhere").Set(ctx, pawl.QueueSettings{Total: 3}), e.Queue("else*").Set(ctx, pawl.QueueSettings{Attempts: 3})); err != nil {
		g.t.Fatal(err)
	}
}

// contents is what a namespace has.
type contents struct{ jobs, lines, audit, settings, workers int }

func (g *ground) kept(ctx context.Context, e *pawl.Engine) (c contents) {
	g.t.Helper()
	fail := func(err error) {
		if err != nil {
			g.t.Fatal(err)
		}
	}
	for p := (pawl.Page{Limit: 1000}); ; {
		listed, err := e.List(ctx, pawl.Filter{}, p)
		fail(err)
		for _, j := range listed.Jobs {
			lines, err := e.Logs(ctx, j.ID, 0, 10)
			fail(err)
			c.jobs, c.lines = c.jobs+1, c.lines+len(lines)
		}
		if p.After = listed.Next; !listed.More {
			break
		}
	}
	audit, err := e.Audit(ctx, pawl.AuditFilter{}, pawl.AuditPage{Limit: 1000})
	fail(err)
	settings, err := e.Settings(ctx)
	fail(err)
	workers, err := e.Workers(ctx)
	fail(err)
	c.audit, c.settings, c.workers = len(audit.Entries), len(settings.Queues), len(workers)
	return c
}
