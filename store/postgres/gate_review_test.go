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
