package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// between is a session that lets others act right before a statement.
type between struct {
	pg.Session
	act func(text string)
}

func (b between) Run(ctx context.Context, steps ...*pg.Statement) error {
	for _, st := range steps {
		b.act(st.Text)
		if err := b.Session.Run(ctx, st); err != nil {
			return err
		}
	}
	return nil
}

// A resend finds that its job was accepted, then that it has ended. It must not
// clean up what an operator brings back at that moment.
func TestP2_AResendDoesNotUndoARetry(t *testing.T) {
	s := openInternal(t)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	offer := job.Offer{Kinds: map[string]int{"k": 0}}
	w, err := s.Register(ctx, store.Worker{Label: "w", Queues: []string{"q"}, LostAfter: time.Minute, Offer: offer})
	must(err)
	d := someDraft(func(d *job.Draft) { d.Resend = true })
	tx, err := s.pg.Users.Begin(ctx)
	must(err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	looks := 0
	a := &jobs.Acceptance{Room: s.jobs, Drafts: []job.Draft{d}, Session: between{s.pg.Inside(tx), func(text string) {
		switch {
		case strings.HasPrefix(text, "INSERT INTO pawl.job "):
			_, err := s.Enqueue(ctx, []job.Draft{d})
			must(err)
		case text == jobs.LookArchived:
			if looks++; looks != 2 {
				return
			}
			claimed, err := s.Claim(ctx, store.Claim{Worker: w, Seq: 1, Offer: offer, Queues: []store.QueueClaim{{Queue: "q", Limit: 1, Start: 1}}})
			must(err)
			_, err = s.Finish(ctx, w, []job.End{{ID: d.ID, Run: claimed.Jobs[0].Run, To: job.Dead}})
			must(err)
		case strings.HasPrefix(text, "DELETE FROM pawl.job "):
			_, err := s.Retry(ctx, []job.ID{d.ID}, store.Operator{})
			must(err)
		}
	}}}
	receipts, err := a.Run(ctx)
	must(err)
	must(tx.Commit(ctx))
	if looks < 2 || len(receipts) != 1 || receipts[0] != (job.Receipt{ID: d.ID, Duplicate: true}) {
		t.Errorf("%d looks, answered %v", looks, receipts)
	}
	jobs, err := s.Get(ctx, []job.ID{d.ID})
	must(err)
	if len(jobs) != 1 {
		t.Error("the job is lost")
	}
}
