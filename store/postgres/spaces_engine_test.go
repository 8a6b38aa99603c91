package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store"
)

// tenantArgs is the job of the engines below.
type tenantArgs struct{ Tenant string }

func (tenantArgs) Kind() string { return "tenant" }

// tenants are engines of many namespaces in one process, at work.
type tenants struct {
	engines []*pawl.Engine
	ran     chan string // tenant of the args, and the engine's
	stop    func()
}

// startTenants runs n engines that share Spaces, and returns when all of them are
// ready.
func startTenants(t *testing.T, spaces store.Spaces, n int) *tenants {
	t.Helper()
	ts := &tenants{ran: make(chan string, n)}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		name := fmt.Sprintf("tenant-%03d", i)
		e, err := pawl.New(spaces, pawl.Config{Namespace: name, Queues: pawl.Queues{"default": {Workers: 2}}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		pawl.Handle(e, func(_ context.Context, j *pawl.Job[tenantArgs]) error {
			ts.ran <- j.Args.Tenant + " in " + name
			return nil
		})
		ts.engines = append(ts.engines, e)
		running.Go(func() { errs[i] = e.Run(ctx) })
	}
	ts.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(ts.stop)
	for _, e := range ts.engines {
		for e.Ready(t.Context()) != nil {
			time.Sleep(10 * time.Millisecond) // stimulus: the next look whether it is ready
		}
	}
	return ts
}

// A hundred engines in one process: what they send while nothing happens does not
// grow with them, and each runs its own jobs.
func TestF12_AHundredIdleNamespacesAskForLittle(t *testing.T) {
	t.Parallel()
	const n = 100
	spaces, p, sent := newSpaces(t)
	ts := startTenants(t, spaces, n)
	for i, e := range ts.engines {
		if i%25 == 7 {
			if _, err := e.Enqueue(t.Context(), tenantArgs{fmt.Sprintf("tenant-%03d", i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range n / 25 {
		var of, in string
		if _, err := fmt.Sscanf(<-ts.ran, "%s in %s", &of, &in); err != nil || of != in {
			t.Errorf("a job of %s ran in %s, %v", of, in, err)
		}
	}
	time.Sleep(3 * time.Second) // stimulus: the looks that follow a start are over
	sent.take()
	time.Sleep(5 * time.Second) // stimulus: one beat period passes
	got := sent.take()
	if len(got) > n {
		t.Errorf("%d namespaces sent %d statements in one beat period, want less than one each", n, len(got))
	}
	t.Logf("%d statements in one beat period", len(got))
	var connections int
	err := p.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = current_setting('application_name')").Scan(&connections)
	if err != nil || connections > 16 {
		t.Errorf("%d namespaces have %d connections, %v, want those of one store (10) and of the user's pool", n, connections, err)
	}
}
