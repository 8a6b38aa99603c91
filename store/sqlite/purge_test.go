package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Retention runs beside whoever reads the archive: rows that are being read hold
// up neither the removal nor any finish, and the reader still sees what was
// there when it began.
func TestJ15_PurgeAndFinishPassAnOpenReader(t *testing.T) {
	s := open(t, newFile(t))
	w := s.mustRegister(t)
	finish := func(seq int64, n int) {
		t.Helper()
		claimed := s.mustClaim(t, claimOf(w, seq, n))
		ends := make([]job.End, len(claimed.Jobs))
		for i, l := range claimed.Jobs {
			ends[i] = job.End{ID: l.ID, Run: l.Run, To: job.Done, Keep: job.Keep{}.WithDefaults()}
		}
		verdicts, err := s.Finish(t.Context(), w, ends)
		if err != nil || len(verdicts) != n {
			t.Fatalf("%d of %d were finished, %v", len(verdicts), n, err)
		}
	}
	const old, fresh = 50, 5
	s.mustEnqueue(t, drafts(old)...)
	finish(1, old)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of a purge that waits, not of a slow one
	defer cancel()
	reader, err := s.DB().BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Rollback() }()
	rows, err := reader.QueryContext(ctx, "SELECT id FROM pawl_job_archive")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	seen := 0
	if rows.Next() {
		seen++
	}

	s.SetClockOffset(1000 * 24 * time.Hour)
	if n, err := s.Purge(ctx, 1000); err != nil || n != old {
		t.Errorf("%d were removed, %v, want %d", n, err, old)
	}
	s.mustEnqueue(t, drafts(fresh)...)
	finish(2, fresh)
	if n := s.mustCount(t, job.Done); n != fresh {
		t.Errorf("%d are left, want the %d that are kept", n, fresh)
	}
	for rows.Next() {
		seen++
	}
	if err := rows.Err(); err != nil || seen != old {
		t.Errorf("the reader saw %d, %v, want all %d of its snapshot", seen, err, old)
	}
}

// say adds log lines to jobs, as if their runs had.
func (s *Store) say(t *testing.T, lines int, ids ...job.ID) {
	t.Helper()
	for _, id := range ids {
		for _, text := range []string{
			`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
				INSERT INTO pawl_job_log (namespace, job, line, time, run, level, text) SELECT ?2, ?3, i, 0, 1, 0, 'x' FROM n`,
			"UPDATE pawl_job SET ties = ties | 2, logs = ?1 WHERE namespace = ?2 AND id = ?3",
			"UPDATE pawl_job_archive SET logs = ?1 WHERE namespace = ?2 AND id = ?3",
		} {
			if _, err := s.DB().ExecContext(t.Context(), text, lines, s.namespace, id[:]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// However much a job has said, no transaction removes more of its lines than the
// bound: neither that of a delete nor that of an end that keeps nothing.
func TestP10_LinesOfAJobThatGoesAreRemovedInRounds(t *testing.T) {
	const said = 2*store.DropLines + 5000
	exec := func(s *Store, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if _, err := s.DB().ExecContext(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
	}
	count := func(s *Store, text string) (n int) {
		t.Helper()
		if err := s.DB().QueryRowContext(t.Context(), text).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	// Lines are counted up to the next change of a job, which is in the same transaction.
	counted := func(s *Store) {
		t.Helper()
		exec(s, "CREATE TABLE removed (n INTEGER)", "INSERT INTO removed VALUES (0)",
			"CREATE TRIGGER line AFTER DELETE ON pawl_job_log BEGIN UPDATE removed SET n = n + 1 WHERE rowid = (SELECT max(rowid) FROM removed); END",
			"CREATE TRIGGER live AFTER UPDATE OF logs ON pawl_job BEGIN INSERT INTO removed VALUES (0); END",
			"CREATE TRIGGER archived AFTER UPDATE OF logs ON pawl_job_archive BEGIN INSERT INTO removed VALUES (0); END")
	}
	looked := func(s *Store, all int) {
		t.Helper()
		if most, sum := count(s, "SELECT max(n) FROM removed"), count(s, "SELECT sum(n) FROM removed"); most > store.DropLines || sum != all {
			t.Errorf("%d lines went, up to %d at once; want %d, at most %d at once", sum, most, all, store.DropLines)
		}
		if n := count(s, "SELECT count(*) FROM pawl_job_log"); n != 0 {
			t.Errorf("%d lines are left", n)
		}
	}
	finish := func(s *Store, keep job.Keep) job.ID {
		t.Helper()
		d := draft()
		s.mustEnqueue(t, d)
		w := s.mustRegister(t)
		run := s.mustClaim(t, claimOf(w, 1, 1)).Jobs[0].Run
		s.say(t, said, d.ID)
		if v, err := s.Finish(t.Context(), w, []job.End{{ID: d.ID, Run: run, To: job.Done, Keep: keep}}); err != nil || v[0] != job.Applied {
			t.Fatal(v, err)
		}
		return d.ID
	}
	t.Run("delete", func(t *testing.T) {
		s := open(t, newFile(t))
		ended := finish(s, job.Keep{})
		waits := draft()
		s.mustEnqueue(t, waits)
		s.say(t, 3000, waits.ID)
		counted(s)
		changes, err := s.Delete(t.Context(), []job.ID{waits.ID, ended, waits.ID}, store.Operator{})
		if want := []store.Change{store.Changed, store.Changed, store.NotFound}; err != nil || !slices.Equal(changes, want) {
			t.Errorf("%v, %v; want %v", changes, err, want)
		}
		looked(s, said+3000)
	})
	t.Run("not kept", func(t *testing.T) {
		s := open(t, newFile(t))
		counted(s)
		id := finish(s, job.Keep{Done: -1})
		if n := count(s, "SELECT sum(n) FROM removed"); n > store.DropLines {
			t.Errorf("its end removed %d lines", n)
		}
		d := draft()
		d.ID, d.Resend = id, true
		for round := 0; ; round++ {
			if receipts, err := s.Enqueue(t.Context(), []job.Draft{d}); err != nil || !receipts[0].Duplicate {
				t.Fatalf("a resend was answered %v, %v", receipts, err)
			}
			if report, err := s.Check(t.Context(), store.Check{}); err != nil || len(report.Faults) > 0 {
				t.Fatalf("check: %+v, %v", report, err)
			}
			n, err := s.Purge(t.Context(), store.DropLines/store.PurgeLines)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				break
			}
			if round > 10 {
				t.Fatal("it does not go away")
			}
		}
		looked(s, said)
	})
}
