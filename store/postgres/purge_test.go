package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Retention runs beside whoever reads the archive: an open cursor and a
// snapshot of last week hold up neither the removal nor any finish, and both
// still see what was there when they began.
func TestJ15_PurgeAndFinishPassAnOpenReader(t *testing.T) {
	s := openInternal(t)
	c := hire(t, s)
	const old, fresh = 50, 5
	c.enqueue(many(old)...)
	c.drain(old)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // of a purge that waits, not of a slow one
	defer cancel()

	users := newPool(t, s.users.Config().ConnString())
	reader, err := users.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Rollback(context.Background()) }()
	for _, text := range []string{"DECLARE archive CURSOR FOR SELECT id FROM pawl.job_archive", "FETCH 1 FROM archive"} {
		if _, err := reader.Exec(ctx, s.sql(text)); err != nil {
			t.Fatal(err)
		}
	}

	s.SetClockOffset(1000 * 24 * time.Hour)
	c.enqueue(many(fresh)...)
	jobs := c.claim(fresh)
	// A finish while the removal is not committed, and one after it.
	removal, err := users.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := removal.Exec(ctx, s.sql(purgeArchive), s.namespace, old/2, start.due); err != nil {
		t.Fatal(err)
	}
	c.finish(jobs[:2])
	if err := removal.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Purge(ctx, 1000); err != nil || n != old-old/2 {
		t.Errorf("%d were removed, %v, want %d", n, err, old-old/2)
	}
	c.finish(jobs[2:])

	var left, seen int
	if err := users.QueryRow(ctx, s.sql("SELECT count(*) FROM pawl.job_archive")).Scan(&left); err != nil || left != fresh {
		t.Errorf("%d are left, %v, want the %d that are kept", left, err, fresh)
	}
	tag, err := reader.Exec(ctx, "FETCH ALL FROM archive")
	if seen = int(tag.RowsAffected()) + 1; err != nil || seen != old {
		t.Errorf("the reader saw %d, %v, want all %d of its snapshot", seen, err, old)
	}
}
