package postgres

import (
	"encoding/binary"
	"hash/fnv"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// A claim that finds another one counting comes back in a moment, not with the poll.
func TestJ19_WhoFindsAnotherCountingComesBack(t *testing.T) {
	s := openInternal(t)
	c := hire(t, s)
	rules := job.NewGateRules(map[string]job.LimitSettings{
		"kinds": {Kind: "k", Concurrent: 5}, "tenants": {Queue: "q", PerKey: true, Concurrent: 2},
	})
	if !rules.Overlap() {
		t.Fatal("no overlap")
	}
	d := someDraft(func(d *job.Draft) { d.Key = "a"; d.Gate = rules.Gate(d.Queue, d.Kind, "a") })
	c.enqueue(d)
	h := fnv.New64a()
	h.Write([]byte(s.pg.SQL("pawl.gate")))
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(s.pg.Namespace)))
	tx, err := s.pg.Users.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT pg_advisory_xact_lock($1)", int64(h.Sum64())); err != nil {
		t.Fatal(err)
	}
	c.seq++
	r, err := s.Claim(t.Context(), store.Claim{
		Worker: c.worker, Seq: c.seq, Offer: knowsK, Gates: rules,
		Queues: []store.QueueClaim{{Queue: "q", Limit: 5, Start: 5}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(r.Jobs) != 0 || !r.More && (r.Next <= 0 || r.Next > time.Second) {
		t.Errorf("%d jobs, more %v, next %v", len(r.Jobs), r.More, r.Next)
	}
}

// A job that goes behind another gate between the look of a claim and its lease is left
// to who counts there: what runs from a gate went through it.
func TestJ19_AJobThatMovesWhileItIsClaimedIsLeft(t *testing.T) {
	s := openInternal(t)
	c := hire(t, s)
	rules := job.NewGateRules(map[string]job.LimitSettings{"kinds": {Kind: "k", Concurrent: 5}})
	gate := rules.Gate("q", "k", "")
	d := someDraft(func(d *job.Draft) { d.Gate = gate })
	c.enqueue(d)
	tx, err := s.pg.Users.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	execute := func(text string, args ...any) {
		t.Helper()
		if _, err := tx.Exec(t.Context(), s.pg.SQL(text), args...); err != nil {
			t.Fatal(err)
		}
	}
	// A lease shares the worker's row: it waits here, and its claim has looked.
	execute("SELECT FROM pawl.worker WHERE namespace = $1 AND id = $2 FOR UPDATE", s.pg.Namespace, c.worker)
	var pid int
	if err := tx.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	type answer struct {
		reply store.ClaimReply
		err   error
	}
	answers := make(chan answer, 1)
	c.seq++
	go func() {
		r, err := s.Claim(t.Context(), store.Claim{
			Worker: c.worker, Seq: c.seq, Offer: knowsK, Gates: rules, Queues: []store.QueueClaim{{Queue: "q", Limit: 5, Start: 5}},
		})
		answers <- answer{r, err}
	}()
	for waits := false; !waits; {
		row := s.DB().QueryRowContext(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))", pid)
		if err := row.Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	execute("UPDATE pawl.job SET gate = gate + 1 WHERE namespace = $1 AND id = $2", s.pg.Namespace, d.ID)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := <-answers; a.err != nil || len(a.reply.Jobs) != 0 {
		t.Errorf("%d jobs, error %v; want none, and no error", len(a.reply.Jobs), a.err)
	}
}
