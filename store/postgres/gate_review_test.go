package postgres

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
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
func TestJ19_ALeaseTakesFromTheGateThatWasLookedAt(t *testing.T) {
	s := openInternal(t)
	c := hire(t, s)
	d := someDraft(func(d *job.Draft) { d.Gate = 7 })
	c.enqueue(d)
	at := slices.IndexFunc(plans, func(p pg.Plan) bool { return p.Name == "leaseChosen" })
	lease := func(gates ...int64) int {
		t.Helper()
		rows, err := s.pg.Users.Query(t.Context(), s.pg.SQL(plans[at].Text), s.pg.Namespace, c.worker, 1, [][16]byte{d.ID}, gates)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for rows.Next() {
			n++
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, l := range []struct {
		what  string
		gates []int64
		want  int
	}{{"in front of gates", nil, 0}, {"behind another", []int64{8}, 0}, {"behind its own", []int64{7}, 1}} {
		if got := lease(l.gates...); got != l.want {
			t.Errorf("%s: %d were leased, want %d", l.what, got, l.want)
		}
	}
}
