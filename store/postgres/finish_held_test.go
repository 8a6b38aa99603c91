package postgres

import (
	"context"
	"testing"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// endAll ends runs as done, and checks that those are answered Locked, and no others.
// The busy limit is longer than the test may take: who waits for it is found out.
func (b *bystanders) endAll(held []store.LeasedJob, edit func(i int, e *job.End), locked ...int) {
	b.t.Helper()
	ends, want := make([]job.End, len(held)), make([]job.Verdict, len(held))
	for i, j := range held {
		ends[i], want[i] = job.End{ID: j.ID, Run: j.Run, To: job.Done, Ties: j.Ties}, job.Applied
		edit(i, &ends[i])
	}
	for _, i := range locked {
		want[i] = job.Locked
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), b.s.options.BusyLimit/2)
	defer cancel()
	verdicts, err := b.s.Finish(ctx, b.crew.worker, ends)
	b.must(err)
	for i, v := range verdicts {
		if v != want[i] {
			b.t.Errorf("end %d is %v, want %v", i, v, want[i])
		}
	}
}

// What a run hands to its end may want a key that an open transaction has taken. That
// end waits aside, with those that want the same key; the others of its commit go on.
func TestP8_AHeldKeyOfAFollowUpHoldsUpNoOtherEnd(t *testing.T) {
	b := bystand(t)
	b.enqueue(many(50)...)
	held := b.crew.claim(50)
	tx, err := b.s.Begin(t.Context())
	b.must(err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Enqueue(t.Context(), []job.Draft{other(b.key("held"))})
	b.must(err)
	keys := map[int]string{7: "held", 8: "free", 9: "held", 30: "other"}
	bring := func(at map[int]string) func(int, *job.End) {
		return func(i int, e *job.End) {
			if name := at[i]; name != "" {
				e.Then = &job.FollowUps{Drafts: []job.Draft{other(b.key(name))}}
			}
		}
	}
	b.endAll(held, bring(keys), 7, 9)
	b.must(tx.Rollback(t.Context()))
	b.endAll([]store.LeasedJob{held[7], held[9]}, bring(map[int]string{0: "held", 1: "held"}))
	n, err := b.s.Count(t.Context(), store.Filter{Queue: "other", States: []job.State{job.Waiting}}, 0)
	if err != nil || n.Jobs != 3 {
		t.Errorf("%d jobs were brought along, %v; want one for each key", n.Jobs, err)
	}
}

// A run whose job has a tie that its worker does not know of is looked at after the
// plain ones have ended. Its row may be held.
func TestP8_AHeldJobWithAnUnknownTieHoldsUpNoOtherEnd(t *testing.T) {
	b := bystand(t)
	b.enqueue(many(50)...)
	held := b.crew.claim(50)
	tie(t, b.s, held[7:8])
	tx, err := b.s.DB().BeginTx(t.Context(), nil)
	b.must(err)
	defer func() { _ = tx.Rollback() }()
	_, err = tx.ExecContext(t.Context(), "SELECT FROM "+b.s.options.Schema+".job WHERE id = $1 FOR UPDATE", held[7].ID.String())
	b.must(err)
	b.endAll(held, func(int, *job.End) {}, 7)
	b.must(tx.Rollback())
	b.endAll(held[7:8], func(int, *job.End) {})
}
