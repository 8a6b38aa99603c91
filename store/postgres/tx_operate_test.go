package postgres

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// asUser opens a transaction of each kind that a user may have, with a way to run
// a query of one text.
var asUser = map[string]func(b *bystanders) (store.OperatingTx, func(string) string){
	"of pgx": func(b *bystanders) (store.OperatingTx, func(string) string) {
		tx := b.begin(pgx.TxOptions{})
		return b.s.Within(tx).(store.OperatingTx), func(text string) (answer string) {
			b.must(tx.QueryRow(b.t.Context(), text).Scan(&answer))
			return answer
		}
	},
	"of database/sql": func(b *bystanders) (store.OperatingTx, func(string) string) {
		db := stdlib.OpenDBFromPool(b.users)
		tx, err := db.BeginTx(b.t.Context(), &sql.TxOptions{})
		b.must(err)
		b.t.Cleanup(func() { _ = tx.Rollback(); _ = db.Close() })
		return b.s.WithinSQL(tx).(store.OperatingTx), func(text string) (answer string) {
			b.must(tx.QueryRowContext(b.t.Context(), text).Scan(&answer))
			return answer
		}
	},
	"of the store": func(b *bystanders) (store.OperatingTx, func(string) string) {
		tx, err := b.s.Begin(b.t.Context())
		b.must(err)
		b.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
		return tx.(store.OperatingTx), func(text string) (answer string) {
			rows, err := tx.Query(b.t.Context(), text)
			b.must(err)
			for rows.Next() {
				b.must(rows.Scan(&answer))
			}
			b.must(rows.Close())
			return answer
		}
	},
}

// An operator's verb in a transaction does not wait for a job or a unique key that
// another transaction holds: it says Busy, and its own transaction goes on as it was.
func TestP8_OperatorsVerbInATransactionWaitsForNobody(t *testing.T) {
	for kind, open := range asUser {
		t.Run(kind, func(t *testing.T) {
			b := bystand(t)
			same := func(d *job.Draft) { d.Unique.Hash = []byte("same") }
			dead := b.enqueue(someDraft(same))[0]
			lost := b.crew.claim(1)
			_, err := b.s.Finish(t.Context(), b.crew.worker, []job.End{{ID: dead, Run: lost[0].Run, To: job.Dead}})
			b.must(err)
			held, free := b.enqueue(someDraft())[0], b.enqueue(other())[0]
			another := b.begin(pgx.TxOptions{})
			_, err = b.s.Within(another).Enqueue(t.Context(), []job.Draft{someDraft(same)}) // has the key now
			b.must(err)
			_, err = another.Exec(t.Context(), b.s.pg.SQL("SELECT FROM pawl.job WHERE id = $1 FOR UPDATE"), held)
			b.must(err)

			tx, query := open(b)
			query("SELECT set_config('lock_timeout', '77s', true)")
			for _, c := range []struct {
				name string
				verb func(context.Context, []job.ID, store.Operator) ([]store.Change, error)
				ids  []job.ID
				want []store.Change
			}{
				{"cancel", tx.Cancel, []job.ID{held}, []store.Change{store.Busy}},
				{"retry", tx.Retry, []job.ID{held}, []store.Change{store.Busy}},
				{"delete", tx.Delete, []job.ID{held}, []store.Change{store.Busy}},
				{"retry with a held key", tx.Retry, []job.ID{dead}, []store.Change{store.Busy}},
				{"retry of several", tx.Retry, []job.ID{free, dead, held}, []store.Change{store.Active, store.Busy, store.Busy}},
				{"cancel of several", tx.Cancel, []job.ID{held, free}, []store.Change{store.Busy, store.Changed}},
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // of a call that waits
				got, err := c.verb(ctx, c.ids, store.Operator{Name: "ann"})
				cancel()
				b.must(err)
				if len(got) != len(c.want) {
					t.Fatalf("%s: %v, want %v", c.name, got, c.want)
				}
				for i := range got {
					if got[i] != c.want[i] {
						t.Errorf("%s: %v, want %v", c.name, got, c.want)
					}
				}
			}
			if limit := query("SELECT current_setting('lock_timeout')"); limit != "77s" {
				t.Errorf("the user's lock_timeout is %s afterwards, want 77s", limit)
			}
			if n := query(b.s.pg.SQL("SELECT string_agg(target, ' ') FROM pawl.audit")); n != free.String() {
				t.Errorf("the audit log is about %q, want %s", n, free)
			}
			b.must(another.Rollback(t.Context()))
			if got, err := tx.Retry(t.Context(), []job.ID{dead}, store.Operator{}); err != nil || got[0] != store.Changed {
				t.Errorf("once the key is free: %v, %v", got, err)
			}
		})
	}
}

// A job that a transaction retries is claimed after its commit, although claims
// had gone past it, and however the transaction was begun.
func TestJ30_ARetryInATransactionIsFoundAfterItsCommit(t *testing.T) {
	for _, own := range []bool{true, false} {
		b := bystand(t)
		dead := b.enqueue(someDraft())[0]
		lost := b.crew.claim(1)
		_, err := b.s.Finish(t.Context(), b.crew.worker, []job.End{{ID: dead, Run: lost[0].Run, To: job.Dead}})
		b.must(err)
		var tx store.Tx
		var commit func(context.Context) error
		if own {
			tx, err = b.s.Begin(t.Context())
			b.must(err)
			commit = tx.Commit
		} else {
			users := b.begin(pgx.TxOptions{})
			tx, commit = b.s.Within(users), users.Commit
		}
		if got, err := tx.(store.OperatingTx).Retry(t.Context(), []job.ID{dead}, store.Operator{}); err != nil || got[0] != store.Changed {
			t.Fatalf("%v, %v", got, err)
		}
		for range 3 { // frontiers move on
			later := b.enqueue(someDraft())[0]
			if got := b.crew.claim(5); len(got) != 1 || got[0].ID != later {
				t.Fatalf("claimed %v, want %s", got, later)
			}
		}
		b.must(commit(t.Context()))
		b.until("it is claimed", func() bool {
			got := b.crew.claim(5)
			return len(got) == 1 && got[0].ID == dead
		})
	}
}
