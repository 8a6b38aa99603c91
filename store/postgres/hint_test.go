package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// hintless counts the jobs of a user's transaction that no hint of it covers:
// what commits late is found through hints alone, or by a sweep seconds later.
func hintless(t *testing.T, s *Store, edit func(t *testing.T, tx pgx.Tx, w store.Tx)) (count int) {
	t.Helper()
	tx, err := s.users.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	edit(t, tx, s.Within(tx))
	err = tx.QueryRow(t.Context(), s.sql(`SELECT count(*) FROM pawl.job AS j WHERE NOT EXISTS (SELECT FROM pawl.hint AS h
		WHERE h.namespace = j.namespace AND h.transaction = pg_current_xact_id() AND h.queue = j.queue AND h.priority = j.priority AND h.due <= j.due)`)).Scan(&count)
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func TestP3_AHintIsAsEarlyAsTheEarliestJob(t *testing.T) {
	s := openInternal(t)
	n := hintless(t, s, func(t *testing.T, _ pgx.Tx, w store.Tx) {
		for _, in := range []time.Duration{time.Hour, 0, time.Minute} {
			if _, err := w.Enqueue(t.Context(), []job.Draft{someDraft(func(d *job.Draft) { d.In = in })}); err != nil {
				t.Fatal(err)
			}
		}
	})
	if n != 0 {
		t.Errorf("%d jobs are due before every hint of them", n)
	}
}

func TestP3_AHintThatASavepointTookBackIsWrittenAgain(t *testing.T) {
	s := openInternal(t)
	n := hintless(t, s, func(t *testing.T, tx pgx.Tx, w store.Tx) {
		for _, text := range []string{"SAVEPOINT here", "ROLLBACK TO here"} {
			if _, err := tx.Exec(t.Context(), text); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Enqueue(t.Context(), []job.Draft{someDraft()}); err != nil {
				t.Fatal(err)
			}
		}
	})
	if n != 0 {
		t.Errorf("%d jobs have no hint", n)
	}
}

// A dump that is restored on a server whose transactions have lower numbers
// brings hints along that no look of that server would ever leave behind it.
func TestP10_HintsOfAnotherServerGoAway(t *testing.T) {
	s := openInternal(t)
	ctx := t.Context()
	if _, err := s.users.Exec(ctx, s.sql("INSERT INTO pawl.hint (namespace, transaction, priority, due, queue) VALUES ($1, '9000000000000', 5, now(), 'q')"), s.namespace); err != nil {
		t.Fatal(err)
	}
	offer := job.Offer{Kinds: map[string]int{"k": 0}}
	w, err := s.Register(ctx, store.Worker{Label: "w", Queues: []string{"q"}, LostAfter: time.Minute, Offer: offer})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(ctx, store.Claim{Worker: w, Seq: 1, Offer: offer, Queues: []store.QueueClaim{{Queue: "q", Limit: 1, Start: 1}}}); err != nil {
		t.Fatal(err)
	}
	s.hints.mu.Lock()
	s.hints.mark.at = s.hints.mark.at.Add(-hintsKept)
	s.hints.mu.Unlock()
	if _, err := s.Purge(ctx, 10); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := s.users.QueryRow(ctx, s.sql("SELECT count(*) FROM pawl.hint")).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d hints are left, %v", left, err)
	}
}
