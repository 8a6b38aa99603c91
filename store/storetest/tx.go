package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// transactions: jobs and the user's own rows commit together or not at all (P3).
func transactions() []testCase {
	begin := func(d *database) store.Tx {
		d.Helper()
		return must[store.Tx](d, "begin")(d.Store.Begin(d.ctx))
	}
	exec := func(d *database, tx store.Tx, query string, args ...any) int64 {
		d.Helper()
		return must[int64](d, query)(tx.Exec(d.ctx, query, args...))
	}
	commit := func(d *database, tx store.Tx) {
		d.Helper()
		if err := tx.Commit(d.ctx); err != nil {
			d.Fatalf("commit: %v", err)
		}
	}
	rollback := func(d *database, tx store.Tx) {
		d.Helper()
		if err := tx.Rollback(d.ctx); err != nil {
			d.Fatalf("rollback: %v", err)
		}
	}
	// table makes the user's table.
	table := func(d *database) {
		d.Helper()
		tx := begin(d)
		exec(d, tx, "create table storetest_order (id integer primary key, note text not null)")
		commit(d, tx)
	}
	// orders reads the user's rows.
	orders := func(d *database) map[int64]string {
		d.Helper()
		tx := begin(d)
		rows := must[store.Rows](d, "query")(tx.Query(d.ctx, "select id, note from storetest_order order by id"))
		found := map[int64]string{}
		for rows.Next() {
			var id int64
			var note string
			if err := rows.Scan(&id, &note); err != nil {
				d.Fatalf("scan: %v", err)
			}
			found[id] = note
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			d.Fatalf("rows: %v", err)
		}
		rollback(d, tx)
		return found
	}
	const insert = "insert into storetest_order (id, note) values ($1, $2)"

	return []testCase{
		{name: "P3_EnqueueCommitsWithTheUsersRows", run: func(d *database) {
			table(d)
			tx := begin(d)
			equal(d, "rows", exec(d, tx, insert, 7, "seven"), 1)
			a, b := draft(), draft(in(time.Hour))
			equal(d, "receipts", must[[]job.Receipt](d, "enqueue")(tx.Enqueue(d.ctx, []job.Draft{a, b})), []job.Receipt{{ID: a.ID}, {ID: b.ID}})
			commit(d, tx)
			equal(d, "orders", orders(d), map[int64]string{7: "seven"})
			equal(d, "states", d.states(a.ID, b.ID), []job.State{job.Waiting, job.Waiting})
			equal(d, "claimed", ids(d.hire().claim(5)), []job.ID{a.ID})
		}},
		{name: "P3_RollbackLeavesNothing", run: func(d *database) {
			table(d)
			w := d.hire()
			d.one(priority(1))
			held := w.take()
			before := d.get(held.ID)
			tx := begin(d)
			exec(d, tx, insert, 7, "seven")
			must[[]job.Receipt](d, "enqueue")(tx.Enqueue(d.ctx, []job.Draft{draft(once("x", 0))}))
			must[[]job.Verdict](d, "finish")(tx.Finish(d.ctx, w.id, []job.End{ending(held, job.Done)}))
			rollback(d, tx)
			equal(d, "orders", orders(d), nil)
			equal(d, "jobs", d.count(), 1)
			equal(d, "job", d.get(held.ID), before)
			d.one(once("x", 0))
			w.end(held, job.Done)
		}},
		{name: "P3_FinishCommitsWithItsEffect", run: func(d *database) {
			table(d)
			id := d.one(once("x", 0))
			w := d.hire()
			held := w.take()
			tx := begin(d)
			exec(d, tx, insert, 1, "effect")
			e := ending(held, job.Done, func(e *job.End) { e.Result = []byte("r") })
			equal(d, "verdicts", must[[]job.Verdict](d, "finish")(tx.Finish(d.ctx, w.id, []job.End{e})), []job.Verdict{job.Applied})
			commit(d, tx)
			got := d.get(id)
			equal(d, "state and result", [2]string{got.State.String(), string(got.Result)}, [2]string{"done", "r"})
			equal(d, "orders", len(orders(d)), 1)
			equal(d, "verdict of a second finish", w.finish(e), []job.Verdict{job.Stale})
			d.one(once("x", 0))
		}},
		{name: "P2_StaleFinishInATransaction", run: func(d *database) {
			table(d)
			id := d.one()
			w := d.hire()
			old := w.take()
			w.end(old, job.Waiting)
			held := w.take()
			tx := begin(d)
			exec(d, tx, insert, 1, "effect of a lost run")
			equal(d, "verdicts", must[[]job.Verdict](d, "finish")(tx.Finish(d.ctx, w.id, []job.End{ending(old, job.Done)})), []job.Verdict{job.Stale})
			rollback(d, tx)
			equal(d, "state", d.get(id).State, job.Running)
			equal(d, "orders", len(orders(d)), 0)
			w.end(held, job.Done)
		}},
		{name: "U10_TransactionSeesItsOwnJobs", run: func(d *database) {
			seen := func(tx store.Tx, ids ...job.ID) map[job.ID]bool {
				d.Helper()
				r, ok := tx.(store.TxReader)
				if !ok {
					d.Fatalf("%T is no store.TxReader", tx)
				}
				found := map[job.ID]bool{}
				for _, id := range must[[]job.ID](d, "seen")(r.Seen(d.ctx, ids)) {
					found[id] = true
				}
				return found
			}
			before, ended := d.one(), d.one(priority(1))
			w := d.hire()
			w.end(w.take(), job.Done)
			mine, never := draft(once("x", 0)), draft(once("x", 0))
			tx := begin(d)
			equal(d, "seen before", seen(tx, mine.ID, before, ended), map[job.ID]bool{before: true, ended: true})
			must[[]job.Receipt](d, "enqueue")(tx.Enqueue(d.ctx, []job.Draft{mine, never})) // the second is a duplicate
			equal(d, "seen inside", seen(tx, mine.ID, never.ID, before, ended), map[job.ID]bool{mine.ID: true, before: true, ended: true})
			equal(d, "seen of nothing", seen(tx), map[job.ID]bool{})
			rollback(d, tx)
			tx = begin(d)
			equal(d, "seen after a rollback", seen(tx, mine.ID, before), map[job.ID]bool{before: true})
			rollback(d, tx)
		}},
		{name: "J4_UniqueAndResendInsideATransaction", run: func(d *database) {
			holder, sent := d.one(once("x", 0)), d.one()
			fresh := draft(once("y", 0))
			tx := begin(d)
			got := must[[]job.Receipt](d, "enqueue")(tx.Enqueue(d.ctx, []job.Draft{draft(once("x", 0)), draft(again(sent)), fresh, draft(once("y", 0))}))
			equal(d, "receipts", got, []job.Receipt{{ID: holder, Duplicate: true}, {ID: sent, Duplicate: true}, {ID: fresh.ID}, {ID: fresh.ID, Duplicate: true}})
			more := must[[]job.Receipt](d, "enqueue")(tx.Enqueue(d.ctx, []job.Draft{draft(once("y", 0))}))
			equal(d, "receipts of a second call", more, []job.Receipt{{ID: fresh.ID, Duplicate: true}})
			commit(d, tx)
			equal(d, "jobs", d.count(), 3)
		}},
		{name: "FinishFreesTheKeyForTheNextDraft", run: func(d *database) {
			d.one(once("x", 0))
			w := d.hire()
			held := w.take()
			tx := begin(d)
			must[[]job.Verdict](d, "finish")(tx.Finish(d.ctx, w.id, []job.End{ending(held, job.Done)}))
			next := draft(once("x", 0))
			equal(d, "receipts", must[[]job.Receipt](d, "enqueue")(tx.Enqueue(d.ctx, []job.Draft{next})), []job.Receipt{{ID: next.ID}})
			commit(d, tx)
			equal(d, "states", d.states(held.ID, next.ID), []job.State{job.Done, job.Waiting})
		}},
		{name: "EndedTransactionIsOver", run: func(d *database) {
			for _, end := range []func(store.Tx) error{
				func(tx store.Tx) error { return tx.Commit(d.ctx) },
				func(tx store.Tx) error { return tx.Rollback(d.ctx) },
			} {
				tx := begin(d)
				if err := end(tx); err != nil {
					d.Fatal(err)
				}
				if _, err := tx.Enqueue(d.ctx, drafts(1)); err == nil {
					d.Error("enqueue in an ended transaction succeeded")
				}
				if err := tx.Commit(d.ctx); err == nil {
					d.Error("a second commit succeeded")
				}
			}
			equal(d, "jobs", d.count(), 0)
		}},
		{name: "P8_AnErrorOfTheUsersSQLIsTheUsers", run: func(d *database) {
			tx := begin(d)
			if _, err := tx.Exec(d.ctx, "insert into no_such_table values (1)"); err == nil {
				d.Error("an insert into no table succeeded")
			}
			rollback(d, tx)
			d.one()
		}},
		{name: "P8_OthersGoOnAfterIt", run: func(d *database) {
			tx := begin(d)
			must[[]job.Receipt](d, "enqueue")(tx.Enqueue(d.ctx, drafts(1)))
			// Sent while the transaction is open: it may have to wait, and gets through.
			answers := make(chan error)
			go func() {
				_, err := d.Store.Enqueue(context.WithoutCancel(d.ctx), drafts(1))
				answers <- err
			}()
			commit(d, tx)
			if err := <-answers; err != nil {
				d.Errorf("enqueue beside a transaction: %v", err)
			}
			equal(d, "jobs", d.count(), 2)
		}},
		{name: "EmptySlices", run: func(d *database) {
			tx := begin(d)
			equal(d, "receipts", len(must[[]job.Receipt](d, "enqueue")(tx.Enqueue(d.ctx, nil))), 0)
			equal(d, "verdicts", len(must[[]job.Verdict](d, "finish")(tx.Finish(d.ctx, 1, nil))), 0)
			commit(d, tx)
		}},
	}
}
