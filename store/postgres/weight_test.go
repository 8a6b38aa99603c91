package postgres

import (
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/commit"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
)

// Each job may be large, each call may have many, and calls share a commit: the
// product fits into no message. So it is not one message.
func TestP10_ACommitIsBoundedInBytes(t *testing.T) {
	s := openInternal(t)
	ctx := t.Context()
	large := make([]byte, jobs.MaxGathered*jobs.BytesOfRow/3)
	drafts := func(n int, edit ...func(*job.Draft)) (list []job.Draft) {
		for range n {
			list = append(list, someDraft(append(edit, func(d *job.Draft) { d.Args = large })...))
		}
		return list
	}
	count := func(text string) (n int) {
		t.Helper()
		if err := s.pg.Users.QueryRow(ctx, s.pg.SQL(text)).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}

	// Calls that come at once.
	var calls []*jobs.EnqueueCall
	for range 5 {
		list := drafts(1)
		calls = append(calls, jobs.NewEnqueueCall(list, jobs.WeightOf(&list[0])))
	}
	if n := commit.Fit(calls, jobs.MaxGathered); n != 2 {
		t.Errorf("%d calls of a third of a commit share one", n)
	}
	// A call with ids that were chosen: several statements of one transaction.
	if _, err := s.Enqueue(ctx, drafts(5, func(d *job.Draft) { d.Resend = true })); err != nil {
		t.Fatal(err)
	}
	if n := count("SELECT count(DISTINCT cmin::text::int) FROM pawl.job"); n != 3 {
		t.Errorf("5 jobs of a third of a commit went in by %d statements", n)
	}
	// One without: it is streamed.
	if _, err := s.Enqueue(ctx, drafts(5)); err != nil {
		t.Fatal(err)
	}
	if n := count("SELECT count(*) FROM pawl.job"); n != 10 {
		t.Errorf("%d jobs, want 10", n)
	}
	// Ends with large results: several transactions, each end is fenced by itself.
	offer := job.Offer{Kinds: map[string]int{"k": 0}}
	w, err := s.Register(ctx, store.Worker{Label: "w", Queues: []string{"q"}, LostAfter: time.Minute, Offer: offer})
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := s.Claim(ctx, store.Claim{Worker: w, Seq: 1, Offer: offer, Bytes: 1 << 40, Queues: []store.QueueClaim{{Queue: "q", Limit: 10, Start: 10}}})
	if err != nil || len(claimed.Jobs) != 10 {
		t.Fatalf("claimed %d jobs, %v", len(claimed.Jobs), err)
	}
	var ends []job.End
	for i, j := range claimed.Jobs[:5] {
		ends = append(ends, job.End{ID: j.ID, Run: j.Run + int64(i%2), To: job.Done, Result: large}) // every other one is stale
	}
	verdicts, err := s.Finish(ctx, w, ends)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range verdicts {
		if (v == job.Applied) != (i%2 == 0) {
			t.Errorf("verdict %d of %d is %v", i, len(verdicts), v)
		}
	}
	if n := count("SELECT count(DISTINCT xmin::text) FROM pawl.job_archive"); n != 3 {
		t.Errorf("5 ends of a third of a commit went in by %d transactions", n)
	}
}

// A load takes the time it takes: what bounds one try of a small call does not
// bound it.
func TestP10_ALoadHasTimeForItsSize(t *testing.T) {
	s := openInternal(t)
	s.pg.TryTimeout = time.Nanosecond
	many := make([]job.Draft, 20_000)
	for i := range many {
		many[i] = someDraft()
	}
	if _, err := s.Enqueue(t.Context(), many); err != nil {
		t.Errorf("plain: %v", err)
	}
	for i := range many {
		many[i] = someDraft(func(d *job.Draft) { d.Resend = true })
	}
	if _, err := s.Enqueue(t.Context(), many); err != nil {
		t.Errorf("with chosen ids: %v", err)
	}
	if _, err := s.Enqueue(t.Context(), []job.Draft{someDraft()}); err == nil {
		t.Error("a small call has as much")
	}
}
