package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// watchCommits writes down how each commit that touches a job is made durable,
// and how long it would have waited for a lock. The trigger is a deferred one:
// it runs as the last thing before the commit.
const watchCommits = `CREATE TABLE pawl.watched (what text, durable text, lock text);
CREATE FUNCTION pawl.see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO pawl.watched VALUES (TG_OP || ' ' || TG_TABLE_NAME, current_setting('synchronous_commit'), current_setting('lock_timeout'));
	RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER see AFTER INSERT OR UPDATE OR DELETE ON pawl.job DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pawl.see();
CREATE CONSTRAINT TRIGGER see AFTER INSERT ON pawl.job_archive DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pawl.see()`

// Every commit is on disk when it is answered, whatever the role's default, and
// whatever hooks around each use of a connection do to the session.
func TestP1_CommitsAreDurableWhateverTheRoleSays(t *testing.T) {
	reset := func(conn *pgx.Conn) { _, _ = conn.Exec(context.Background(), "RESET ALL") }
	for _, c := range []struct {
		name    string
		edit    func(*pgxpool.Config)
		options Options
		want    string
	}{
		{"role says off", func(*pgxpool.Config) {}, Options{}, "on"},
		{"poll-only", func(*pgxpool.Config) {}, Options{PollOnly: true}, "on"},
		{"only the pool", func(*pgxpool.Config) {}, Options{OnlyPool: true}, "on"},
		{"only the pool, through a pooler", func(*pgxpool.Config) {}, Options{OnlyPool: true, PollOnly: true}, "on"},
		{"reset on release", func(c *pgxpool.Config) {
			c.AfterRelease = func(conn *pgx.Conn) bool { reset(conn); return true }
		}, Options{}, "on"},
		{"reset on acquire", func(c *pgxpool.Config) {
			c.PrepareConn = func(_ context.Context, conn *pgx.Conn) (bool, error) { reset(conn); return true, nil }
		}, Options{}, "on"},
		{"off on connect", func(c *pgxpool.Config) {
			c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
				_, err := conn.Exec(ctx, "SET synchronous_commit = off")
				return err
			}
		}, Options{}, "on"},
		{"more than on", func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["synchronous_commit"] = "remote_apply" }, Options{}, "remote_apply"},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := need.Postgres(t)
			config, err := pgxpool.ParseConfig(db.URL)
			if err != nil {
				t.Fatal(err)
			}
			config.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
			c.edit(config)
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			c.options.Schema = db.Schema
			opened, err := Pool(pool, c.options).Open(t.Context(), store.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = opened.Close() })
			s, _ := of(opened)
			if _, err := pool.Exec(t.Context(), s.pg.SQL(watchCommits), pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
			lead(t, s)
			rows, err := pool.Query(t.Context(), s.pg.SQL("SELECT what, durable, lock, count(*) FROM pawl.watched GROUP BY 1, 2, 3"))
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			var what, durable, lock string
			var n int
			_, err = pgx.ForEachRow(rows, []any{&what, &durable, &lock, &n}, func() error {
				seen[what] = true
				if durable != c.want {
					t.Errorf("%d rows of %s were committed with synchronous_commit = %s, want %s", n, what, durable, c.want)
				}
				if (what == "UPDATE job" || what == "DELETE job") && lock != "30ms" {
					t.Errorf("%d rows of %s were committed with lock_timeout = %s, want 30ms", n, what, lock)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, what := range []string{"INSERT job", "UPDATE job", "DELETE job", "INSERT job_archive"} {
				if !seen[what] {
					t.Errorf("no %s was seen", what)
				}
			}
		})
	}
}

// lead takes jobs through their life: accepted alone, with a key and by COPY,
// claimed, finished.
func lead(t *testing.T, s *Store) {
	t.Helper()
	many := make([]job.Draft, jobs.Bulk)
	for i := range many {
		many[i] = someDraft()
	}
	for _, drafts := range [][]job.Draft{{someDraft()}, {someDraft(func(d *job.Draft) { d.Unique.Hash = []byte("key") })}, many} {
		if _, err := s.Enqueue(t.Context(), drafts); err != nil {
			t.Fatal(err)
		}
	}
	w, err := s.Register(t.Context(), store.Worker{Label: "w", Queues: []string{"q"}})
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := s.Claim(t.Context(), store.Claim{Worker: w, Seq: 1, Offer: job.Offer{Kinds: map[string]int{"k": 0}}, Queues: []store.QueueClaim{{Queue: "q", Start: 10, Limit: 10}}})
	if err != nil || len(claimed.Jobs) != 10 {
		t.Fatalf("claimed %d jobs: %v", len(claimed.Jobs), err)
	}
	ends := make([]job.End, len(claimed.Jobs))
	for i, j := range claimed.Jobs {
		ends[i] = job.End{ID: j.ID, Run: j.Run, To: job.Done}
	}
	verdicts, err := s.Finish(t.Context(), w, ends)
	if err != nil || verdicts[0] != job.Applied {
		t.Fatalf("finished: %v, %v", verdicts, err)
	}
}

// Lists and counts are planned as the server likes, not as claims are: they may
// read much, where an index is not the best.
func TestSession_ReadsArePlannedFreely(t *testing.T) {
	s := openInternal(t)
	var seqscan, lock string
	look := pg.Statement{Text: "SELECT current_setting('enable_seqscan'), current_setting('lock_timeout')", Each: func(scan pg.Scan) error { return scan(&seqscan, &lock) }}
	if err := s.pg.Read(t.Context(), func() []*pg.Statement { return []*pg.Statement{&look} }); err != nil {
		t.Fatal(err)
	}
	if seqscan != "on" || lock != "0" {
		t.Errorf("a read has enable_seqscan = %s and lock_timeout = %s, want on and 0", seqscan, lock)
	}
	if err := s.pg.Send(t.Context(), s.pg.Work, pg.SharedLimits, &look); err != nil {
		t.Fatal(err)
	}
	if seqscan != "off" || lock != "30ms" {
		t.Errorf("a transition has enable_seqscan = %s and lock_timeout = %s, want off and 30ms", seqscan, lock)
	}
}
