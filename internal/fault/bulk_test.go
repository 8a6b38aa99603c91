//go:build fault || soak

package fault

import (
	"context"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// bulkKind is a kind that nobody handles: what is retried stays where it is.
const bulkKind = "bulk"

// advance does the pages of every operation there is, and says so; its keeper does, too.
func advance(ctx context.Context, e *pawl.Engine) error {
	var none pawl.Handlers
	pawl.HandleRaw(&none, "none", func(context.Context, *pawl.Job[pawl.Raw]) error { return nil })
	e.Register(&none)
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	ops := e.Store().(store.Operations)
	for ctx.Err() == nil {
		list, err := ops.Operations(ctx, store.OperationPage{Open: true, Limit: 1})
		if err != nil || len(list) == 0 {
			say("idle")
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond): // stimulus: it is asked again and again, as by many processes
			}
			continue
		}
		r, err := ops.AdvanceOperation(ctx, list[0].ID)
		if err != nil && ctx.Err() == nil {
			say("failed", err)
		}
		if r.Did {
			say("page", r.Operation.Pages)
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(0, r.Operation.Next.Sub(r.Now))): // stimulus: its own pace
		}
	}
	return <-ended
}

// dead makes jobs that have died.
func (g *ground) dead(n int) {
	g.t.Helper()
	ctx, s := g.t.Context(), g.Store()
	offer := job.Offer{Kinds: map[string]int{bulkKind: 0}}
	w, err := s.Register(ctx, store.Worker{Label: "maker", Queues: []string{bulkKind}, Offer: offer, LostAfter: 10 * time.Minute})
	if err != nil {
		g.t.Fatal(err)
	}
	for seq := int64(1); n > 0; seq++ {
		part := min(n, 500)
		n -= part
		drafts := make([]job.Draft, part)
		for i := range drafts {
			drafts[i] = job.Draft{ID: job.NewID(), Kind: bulkKind, Queue: bulkKind, Priority: 5, Attempts: 1, Args: []byte("{}")}
		}
		if _, err := s.Enqueue(ctx, drafts); err != nil {
			g.t.Fatal(err)
		}
		taken, err := s.Claim(ctx, store.Claim{Worker: w, Seq: seq, Offer: offer, Queues: []store.QueueClaim{{Queue: bulkKind, Limit: part, Start: part}}})
		if err != nil || len(taken.Jobs) != part {
			g.t.Fatalf("claimed %d of %d: %v", len(taken.Jobs), part, err)
		}
		ends := make([]job.End, part)
		for i := range ends {
			ends[i] = job.End{ID: taken.Jobs[i].ID, Run: taken.Jobs[i].Run, To: job.Dead, Reason: "a bad deploy"}
		}
		if _, err := s.Finish(ctx, w, ends); err != nil {
			g.t.Fatal(err)
		}
	}
	if err := s.Deregister(ctx, w); err != nil {
		g.t.Fatal(err)
	}
}

// expectRetriedOnce demands that an operation has retried so many jobs, each once.
func (g *ground) expectRetriedOnce(o pawl.Operation, jobs int) {
	g.t.Helper()
	if want := (pawl.OperationCounts{Looked: int64(jobs), Changed: int64(jobs)}); o.Counts != want || o.State != pawl.OperationDone {
		g.t.Errorf("it is %s: %s, want %s", o.State, o.Counts, want)
	}
	entries := map[string]int{}
	for p := (pawl.AuditPage{Limit: 1000}); ; {
		list, err := g.Audit(g.t.Context(), pawl.AuditFilter{Action: "retry"}, p)
		if err != nil {
			g.t.Fatal(err)
		}
		for _, e := range list.Entries {
			entries[e.Target]++
		}
		if p.After = list.Next; !list.More {
			break
		}
	}
	for id, n := range entries {
		if n != 1 {
			g.t.Errorf("job %s was retried %d times", id, n)
		}
	}
	if len(entries) != jobs {
		g.t.Errorf("%d jobs were retried, want %d", len(entries), jobs)
	}
}

var deadOnes = pawl.Filter{Queue: bulkKind, Kind: bulkKind, States: []pawl.State{pawl.StateDead}}
