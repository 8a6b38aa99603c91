package postgres

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// follower is one of the tests' own: it locks the one row of a table, and writes the
// moves down in another. The jobs whose moves are published are its own.
type follower struct {
	locked [][]job.ID
	fails  error
}

func follow(t *testing.T, s *Store) *follower {
	t.Helper()
	f := &follower{}
	execAll(t, s, "CREATE TABLE "+s.options.Schema+".shared (n int)", "INSERT INTO "+s.options.Schema+".shared VALUES (0)",
		"CREATE TABLE "+s.options.Schema+".followed (id uuid, left_over boolean)")
	write := func(left bool) func(context.Context, pg.Session, []job.Move) error {
		return func(ctx context.Context, session pg.Session, moves []job.Move) error {
			if f.fails != nil {
				return f.fails
			}
			for _, m := range moves {
				err := session.Run(ctx, &pg.Statement{Text: "INSERT INTO pawl.followed VALUES ($1, $2)", Args: []any{[16]byte(m.ID), left}})
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	s.jobs.Follow(jobs.Follower{
		Tie: job.TieEvents,
		Lock: func(ctx context.Context, session pg.Session, ids []job.ID) error {
			f.locked = append(f.locked, ids)
			return session.Run(ctx, &pg.Statement{Text: "SELECT n FROM pawl.shared FOR UPDATE", Each: func(scan pg.Scan) error { var n int; return scan(&n) }})
		},
		Apply: write(false), Leave: write(true),
	})
	return f
}

func execAll(t *testing.T, s *Store, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if _, err := s.DB().ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
}

// tie makes the moves of jobs published.
func tie(t *testing.T, s *Store, list []store.LeasedJob) {
	t.Helper()
	for _, j := range list {
		if _, err := s.DB().ExecContext(t.Context(), "UPDATE "+s.options.Schema+".job SET ties = ties | 128 WHERE id = $1", j.ID.String()); err != nil {
			t.Fatal(err)
		}
	}
}

func (f *follower) followed(t *testing.T, s *Store) (applied, left int) {
	t.Helper()
	row := s.DB().QueryRowContext(t.Context(), "SELECT count(*) FILTER (WHERE NOT left_over), count(*) FILTER (WHERE left_over) FROM "+s.options.Schema+".followed")
	if err := row.Scan(&applied, &left); err != nil {
		t.Fatal(err)
	}
	return applied, left
}

// Those of a commit that are tied take the longer way, with what follows them, in
// the same transaction. The others are not shown to the follower.
func TestP3_AFollowerActsInTheCommitOfTheMove(t *testing.T) {
	for _, known := range []bool{true, false} {
		s := openInternal(t)
		f := follow(t, s)
		c := hire(t, s)
		c.enqueue(many(50)...)
		held := c.claim(50)
		tie(t, s, held[10:12])
		if known { // the worker says so; otherwise the store finds out
			held[10].Ties, held[11].Ties = job.TieEvents, job.TieEvents
		}
		ends := make([]job.End, len(held))
		for i, j := range held {
			ends[i] = job.End{ID: j.ID, Run: j.Run, To: job.Done, Ties: j.Ties}
		}
		f.fails = errors.New("no luck")
		if _, err := s.Finish(t.Context(), c.worker, ends); !errors.Is(err, f.fails) {
			t.Fatalf("finish: %v, want that its follower failed", err)
		}
		if n, err := s.Count(t.Context(), store.Filter{States: []job.State{job.Running}}, 0); err != nil || n.Jobs != 2 && n.Jobs != 50 {
			t.Errorf("%d jobs run, %v: a tied job ended without what follows it", n.Jobs, err)
		}
		f.fails, f.locked = nil, nil
		verdicts, err := s.Finish(t.Context(), c.worker, ends)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range verdicts {
			if v != job.Applied && v != job.Stale {
				t.Errorf("end %d is %v", i, v)
			}
		}
		if verdicts[10] != job.Applied || verdicts[11] != job.Applied {
			t.Errorf("the tied ends are %v and %v", verdicts[10], verdicts[11])
		}
		if applied, left := f.followed(t, s); applied != 2 || left != 0 {
			t.Errorf("%d moves were followed and %d left, want 2 and none", applied, left)
		}
		for _, ids := range f.locked {
			if len(ids) != 2 || !slices.IsSortedFunc(ids, func(a, b job.ID) int { return slices.Compare(a[:], b[:]) }) {
				t.Errorf("it locked for %v", ids)
			}
		}
	}
}

// What follows is locked before the jobs: who waits for it holds no job meanwhile.
func TestP8_AFollowerLocksBeforeTheJobIsLocked(t *testing.T) {
	s := openInternal(t)
	follow(t, s)
	c := hire(t, s)
	c.enqueue(many(1)...)
	held := c.claim(1)
	tie(t, s, held)
	tx, err := s.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if err := tx.QueryRowContext(t.Context(), "SELECT pg_backend_pid() FROM "+s.options.Schema+".shared FOR UPDATE").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.Finish(t.Context(), c.worker, []job.End{{ID: held[0].ID, Run: held[0].Run, To: job.Done}})
		done <- err
	}()
	for waiting := 0; waiting == 0; { // until it stands before the shared row
		row := s.DB().QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))", pid)
		if err := row.Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tx.ExecContext(t.Context(), "SELECT FROM "+s.options.Schema+".job FOR UPDATE NOWAIT"); err != nil {
		t.Errorf("the job is locked while its end waits for what comes before it: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The store's own transitions are followed, too, and in a user's transaction what
// follows is only written down.
func TestP3_EveryMoveIsFollowed(t *testing.T) {
	s := openInternal(t)
	f := follow(t, s)
	c := hire(t, s)
	want := 0
	check := func(what string, n, left int) {
		t.Helper()
		want += n
		if applied, l := f.followed(t, s); applied != want || l != left {
			t.Errorf("after %s: %d followed and %d left, want %d and %d", what, applied, l, want, left)
		}
	}
	c.enqueue(many(3)...)
	held := c.claim(3)
	tie(t, s, held)
	if _, err := s.ReportRuns(t.Context(), c.worker, []store.RunRef{{ID: held[0].ID, Run: held[0].Run}, {ID: held[1].ID, Run: held[1].Run}}); err != nil {
		t.Fatal(err)
	}
	check("a report that gives a job back", 1, 0)
	if _, err := s.Cancel(t.Context(), []job.ID{held[2].ID}, store.Operator{}); err != nil {
		t.Fatal(err)
	}
	check("a cancel", 1, 0)
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Finish(t.Context(), c.worker, []job.End{{ID: held[0].ID, Run: held[0].Run, To: job.Done}}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("an end in a user's transaction", 0, 1)
	if err := s.Deregister(t.Context(), c.worker); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rescue(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	check("a rescue", 1, 1)
	execAll(t, s, "UPDATE "+s.options.Schema+".job SET deadline = now() - interval '1 hour'")
	if _, err := s.Expire(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	check("a deadline", 1, 1)
}
