package sqlite

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
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
