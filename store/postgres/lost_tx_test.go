package postgres

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// A transaction holds a row of the user's, the end of a run and two new jobs. When
// the answer of its commit is lost its outcome is unknown, and is said to be; all
// of it has happened or nothing (P3), and to send the jobs again is safe.
func TestJ32_LostAnswers_Tx(t *testing.T) {
	loseEach(t, lostCase{name: "commit", wakes: true, silent: true, play: func(l *lossy) (func(context.Context) error, func(error)) {
		w, jobs := l.running(1)
		drafts := []job.Draft{l.draft(), l.draft(l.unique("a"))}
		_, err := l.pool.Exec(l.t.Context(), "CREATE TABLE IF NOT EXISTS effect (n text)")
		l.surely(err)
		call := func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 10*short) // a transaction of a user has the user's limits
			defer cancel()
			tx, err := l.s.Begin(ctx)
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, "INSERT INTO effect VALUES ($1)", l.queue)
			l.surely(err)
			verdicts, err := tx.Finish(ctx, w, []job.End{done(&jobs[0])})
			l.surely(err)
			if verdicts[0] != job.Applied {
				l.t.Errorf("verdict %v", verdicts[0])
			}
			receipts, err := tx.Enqueue(ctx, drafts)
			l.surely(err)
			for _, r := range receipts {
				if r.Duplicate {
					l.t.Errorf("receipt %+v", r)
				}
			}
			return errors.Join(tx.Commit(ctx), tx.Rollback(ctx))
		}
		return call, func(err error) {
			unknown := l.unsure(err)
			var rows int
			l.surely(l.pool.QueryRow(l.t.Context(), "SELECT count(*) FROM effect WHERE n = $1", l.queue).Scan(&rows))
			there, err := l.direct.Get(l.t.Context(), draftIDs(drafts))
			l.surely(err)
			ended := l.get(jobs[0].ID)[0].State == job.Done
			if rows > 1 || len(there) != 2*rows || ended != (rows == 1) {
				l.t.Errorf("%d rows, %d of 2 jobs, and the run has ended: %t; want all or nothing", rows, len(there), ended)
			}
			if !unknown && rows != 1 {
				l.t.Error("the commit was answered, and nothing happened")
			}
			for i := range drafts {
				drafts[i].Resend = true
			}
			receipts, err := l.s.Enqueue(l.t.Context(), drafts)
			l.surely(err)
			for i, r := range receipts {
				if r.ID != drafts[i].ID || r.Duplicate != (rows == 1) {
					l.t.Errorf("receipt %+v for %s, which was there: %t", r, drafts[i].ID, rows == 1)
				}
			}
			l.get(draftIDs(drafts)...)
			l.count(3)
		}
	}})
}

// The same in a transaction that is the user's own: its commit is the user's, and
// what became of the jobs is what became of the row.
func TestJ32_LostAnswers_Within(t *testing.T) {
	loseEach(t, lostCase{name: "commit", wakes: true, silent: true, play: func(l *lossy) (func(context.Context) error, func(error)) {
		drafts := l.drafts(2)
		call := func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 10*short)
			defer cancel()
			return pgx.BeginFunc(ctx, l.s.pg.Users, func(tx pgx.Tx) error {
				_, err := l.s.Within(tx).Enqueue(ctx, drafts)
				return err
			})
		}
		return call, func(error) {
			there, err := l.direct.Get(l.t.Context(), draftIDs(drafts))
			l.surely(err)
			if len(there) != 0 && len(there) != 2 {
				l.t.Errorf("%d of 2 jobs", len(there))
			}
			for i := range drafts {
				drafts[i].Resend = true
			}
			_, err = l.s.Enqueue(l.t.Context(), drafts)
			l.surely(err)
			l.count(2)
		}
	}})
}

// Opening makes or finds schema and namespace. It may fail when an answer is
// lost; then the next one succeeds.
func TestJ32_LostAnswers_Open(t *testing.T) {
	for _, fate := range fates {
		t.Run(fate.String(), func(t *testing.T) {
			for n := 1; ; n++ {
				db := need.Postgres(t)
				l := &lossy{t: t, proxy: need.Proxy(t, db.URL), pool: newPool(t, db.URL), name: db.Schema[len(db.Schema)-16:]}
				opener := Pool(newPool(t, l.proxy.URL()+"&application_name="+l.name), Options{Schema: db.Schema})
				lost := l.lose(n, fate)
				err := l.do(func(ctx context.Context) error {
					first, err := opener.Open(ctx, store.Settings{})
					if err != nil {
						return err
					}
					return first.Close()
				})
				l.proxy.Judge(nil)
				second, again := opener.Open(t.Context(), store.Settings{})
				if again != nil {
					t.Fatalf("opening again: %v (at first: %v), after commit %d met its fate: %.60q", again, err, n, *lost)
				}
				if report, err := second.Check(t.Context(), store.Check{}); err != nil || len(report.Faults) > 0 {
					t.Errorf("check: %v %+v", err, report.Faults)
				}
				if err := second.Close(); err != nil {
					t.Error(err)
				}
				if *lost == nil {
					return
				}
			}
		})
	}
}
