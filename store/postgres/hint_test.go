package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
)

// hintless counts the jobs of a user's transaction that no hint of it covers:
// what commits late is found through hints alone, or by a sweep seconds later.
func hintless(t *testing.T, s *Store, edit func(t *testing.T, tx pgx.Tx, w store.Tx)) (count int) {
	t.Helper()
	tx, err := s.pg.Users.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	edit(t, tx, s.Within(tx))
	err = tx.QueryRow(t.Context(), s.pg.SQL(`SELECT count(*) FROM pawl.job AS j WHERE NOT EXISTS (SELECT FROM pawl.hint AS h
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
	if _, err := s.pg.Users.Exec(ctx, s.pg.SQL("INSERT INTO pawl.hint (namespace, transaction, priority, due, queue) VALUES ($1, '9000000000000', 5, now(), 'q')"), s.pg.Namespace); err != nil {
		t.Fatal(err)
	}
	if err := s.hints.Remover.Round(ctx, 0); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := s.pg.Users.QueryRow(ctx, s.pg.SQL("SELECT count(*) FROM pawl.hint")).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d hints are left, %v", left, err)
	}
}

// leaveHints commits hint rows, each as if of a transaction of its own.
func leaveHints(t *testing.T, s *Store, n int) {
	t.Helper()
	_, err := s.pg.Users.Exec(t.Context(), s.pg.SQL(`INSERT INTO pawl.hint (namespace, transaction, priority, due, queue)
		SELECT $1, (n % 700 + 3)::text::xid8, 5, now(), 'q' FROM generate_series(1, $2::int) AS n`), s.pg.Namespace, n)
	if err != nil {
		t.Fatal(err)
	}
}

func countHints(t *testing.T, s *Store) (n int) {
	t.Helper()
	if err := s.pg.Users.QueryRow(t.Context(), s.pg.SQL("SELECT count(*) FROM pawl.hint")).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// While workers were down hints gathered. A round removes all that were committed
// when it began, whoever left them, and two processes at it do not wait for each
// other. What an open transaction has left stays for its commit.
func TestP10_HintsAreRemovedUntilThereAreNone(t *testing.T) {
	s := openInternal(t)
	leaveHints(t, s, 5*hints.RemovedAtOnce+10)
	tx, err := s.pg.Users.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := s.Within(tx).Enqueue(t.Context(), []job.Draft{someDraft()}); err != nil {
		t.Fatal(err)
	}
	other := s.hints.NewRemover()
	ended := make(chan error)
	go func() { ended <- other.Round(t.Context(), 0) }()
	if err := errors.Join(s.hints.Remover.Round(t.Context(), 0), <-ended); err != nil {
		t.Fatal(err)
	}
	if n := countHints(t, s); n != 0 {
		t.Errorf("%d hints are left", n)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := countHints(t, s); n != 1 {
		t.Errorf("%d hints of the transaction that committed late, want 1", n)
	}
	if err := s.hints.Remover.Round(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if n := countHints(t, s); n != 0 {
		t.Errorf("the next round has left %d hints", n)
	}
}

// A process that runs no jobs removes what its own transactions leave: without
// workers nobody else does.
func TestP10_WhoLeavesHintsRemovesThem(t *testing.T) {
	s := openInternal(t)
	s.pg.End() // the remover would take its token
	<-s.hints.Remover.Stopped
	if len(s.hints.Remover.Wake) != 0 {
		t.Fatal("there are hints before anybody has left one")
	}
	tx, err := s.pg.Users.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := s.Within(tx).Enqueue(t.Context(), []job.Draft{someDraft()}); err != nil {
		t.Fatal(err)
	}
	if len(s.hints.Remover.Wake) != 1 {
		t.Error("nobody is told that there are hints to remove")
	}
}

// A process that claims removes what was left before it began.
func TestP10_WhoClaimsRemovesHintsOfOthers(t *testing.T) {
	s := openInternal(t)
	s.pg.End() // the remover would take its token
	<-s.hints.Remover.Stopped
	hire(t, s).claim(1)
	if len(s.hints.Remover.Wake) != 1 {
		t.Error("nobody is told that there may be hints to remove")
	}
}

// A process that starts looks at no hint that was there before it, however many:
// its first claim begins in front of everything. Hints that come after are seen.
func TestP10_TheFirstLookReadsNoHints(t *testing.T) {
	s := openInternal(t)
	c := hire(t, s)
	leaveHints(t, s, 3*hints.MaxRows)
	c.enqueue(someDraft())
	look := s.hints.Rows.Look(s.pg.Namespace)
	if err := s.pg.Send(t.Context(), s.pg.Work, nil, &look.Statement); err != nil {
		t.Fatal(err)
	}
	if look.Rows != 0 || look.TooMany() || look.Seen.Text == "" {
		t.Errorf("the first look has read %d rows and seen %q", look.Rows, look.Seen.Text)
	}
	tx, err := s.pg.Users.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	late := someDraft()
	if _, err := s.Within(tx).Enqueue(t.Context(), []job.Draft{late}); err != nil {
		t.Fatal(err)
	}
	if jobs := c.claim(10); len(jobs) != 1 {
		t.Fatalf("the first claim took %d jobs, want 1", len(jobs))
	}
	if s.hints.Rows.First() {
		t.Fatal("the first claim has not noted what it could see: what commits now is passed over")
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.SetClockOffset(2 * hints.HintsEvery)
	if jobs := c.claim(10); len(jobs) != 1 || jobs[0].ID != late.ID {
		t.Errorf("after a late commit %d jobs were claimed, want it", len(jobs))
	}
}

// A look reads so many hints at most. Where there are more it does without:
// everything is looked at from the start, and nothing is missed.
func TestP10_ALookReadsABoundedNumberOfHints(t *testing.T) {
	s := openInternal(t)
	c := hire(t, s)
	c.claim(1)
	if s.hints.Rows.First() {
		t.Fatal("no look has been answered")
	}
	dropped := s.claims.Frontiers.Dropped
	tx, err := s.pg.Users.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	late := someDraft(func(d *job.Draft) { d.Queue = "q" })
	if _, err := s.Within(tx).Enqueue(t.Context(), []job.Draft{late}); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), s.pg.SQL("DELETE FROM pawl.hint")); err != nil { // as if it came behind the others
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), s.pg.SQL(`INSERT INTO pawl.hint (namespace, transaction, priority, due, queue)
		SELECT $1, pg_current_xact_id(), 5, now(), 'other' FROM generate_series(1, $2::int)`), s.pg.Namespace, 3*hints.MaxRows); err != nil {
		t.Fatal(err)
	}
	s.SetClockOffset(time.Second) // the frontier passes what is not committed
	c.enqueue(someDraft())
	if jobs := c.claim(10); len(jobs) != 1 {
		t.Fatalf("%d jobs were claimed before the commit, want 1", len(jobs))
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.SetClockOffset(time.Second + 2*hints.HintsEvery)
	look := s.hints.Rows.Look(s.pg.Namespace)
	if err := s.pg.Send(t.Context(), s.pg.Work, nil, &look.Statement); err != nil {
		t.Fatal(err)
	}
	if look.Rows > 2*hints.MaxRows || !look.TooMany() {
		t.Errorf("a look has read %d of %d rows, at most %d may be read of each part", look.Rows, 3*hints.MaxRows, hints.MaxRows)
	}
	if jobs := c.claim(10); len(jobs) != 1 || jobs[0].ID != late.ID {
		t.Errorf("%d jobs were claimed, want the one that committed late", len(jobs))
	}
	if s.claims.Frontiers.Dropped == dropped {
		t.Error("the frontiers were kept although hints were not read")
	}
}
