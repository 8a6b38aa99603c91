package pawl_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/boot"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

// TestJ12_RestartRunsTheJobsOfTheDeadAtOnce has a process of this machine that died a moment ago with a job, and one that
// starts now. It neither waits for the lease nor for the turn of its keeper.
func TestJ12_RestartRunsTheJobsOfTheDeadAtOnce(t *testing.T) {
	here := boot.Self()
	// More than once: a keeper's turn may come early by chance.
	dead := []int{1 << 22, 1 << 22, 1 << 22, 1 << 22}
	for _, c := range []struct {
		name      string
		processes []int
		within    time.Duration
	}{
		{"no such process", dead, 150 * time.Millisecond},
		{"this very process", []int{here.Process}, 40 * time.Second},
	} {
		for _, process := range c.processes {
			synctest.Test(t, func(t *testing.T) {
				e, err := pawl.New(sqlite.Memory(), pawl.Config{Queues: pawl.Queues{"default": {Workers: 2, Total: 2}}})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				began := make(chan time.Time, 1)
				pawl.Handle(e, func(context.Context, *pawl.Job[Welcome]) error { began <- time.Now(); return nil })
				if _, err := e.Enqueue(t.Context(), Welcome{1}); err != nil {
					t.Fatal(err)
				}
				offer := job.Offer{Kinds: map[string]int{"welcome": 9}}
				w, err := e.Store().Register(t.Context(), store.Worker{
					Label: "died", Machine: here.Machine, Process: process, Start: here.Start, LostAfter: 30 * time.Second,
					Queues: []string{"default"}, Totals: []store.Total{{Queue: "default", Total: 2, Workers: 2}}, Offer: offer,
				})
				if err != nil {
					t.Fatal(err)
				}
				claimed, err := e.Store().Claim(t.Context(), store.Claim{Worker: w, Seq: 1, Offer: offer, Queues: []store.QueueClaim{{Queue: "default", Limit: 1, Start: 1}}})
				if err != nil || len(claimed.Jobs) != 1 {
					t.Fatalf("%d jobs claimed, %v", len(claimed.Jobs), err)
				}
				begin := time.Now()
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- e.Run(ctx) }()
				took := (<-began).Sub(begin)
				if took > c.within || process == here.Process && took < 25*time.Second {
					t.Errorf("%s: its job began after %v", c.name, took)
				}
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		}
	}
}
