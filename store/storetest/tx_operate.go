package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// txOperate: what operators do in a user's transaction commits with it (P3).
func txOperate() []testCase {
	ann := store.Operator{Name: "ann", Note: "n"}
	begin := func(d *database) store.OperatingTx {
		d.Helper()
		tx := must[store.Tx](d, "begin")(d.Store.Begin(d.ctx))
		o, ok := tx.(store.OperatingTx)
		if !ok {
			d.Fatalf("%T is no store.OperatingTx", tx)
		}
		return o
	}
	end := func(d *database, what string, err error) {
		d.Helper()
		if err != nil {
			d.Fatalf("%s: %v", what, err)
		}
	}
	// did checks that each job was changed.
	did := func(d *database, list ...[]store.Change) {
		d.Helper()
		for _, changes := range list {
			for i, c := range changes {
				equal(d, "change", [2]any{i, c}, [2]any{i, store.Changed})
			}
		}
	}
	// scene is one job for each thing that a verb does.
	type scene struct{ waiting, dead, parked, scheduled, done, running job.ID }
	set := func(d *database, w *employee) (s scene) {
		d.Helper()
		s.done = d.one()
		w.end(w.take(), job.Done, func(e *job.End) { e.Logs = []job.LogLine{{Text: "a line"}} })
		s.dead = d.one(once("of the dead", 0))
		w.end(w.take(), job.Dead)
		s.parked = d.one()
		w.end(w.take(), job.Suspended, parkedFor("x"))
		s.running = d.one()
		w.take()
		s.waiting, s.scheduled = d.one(once("of the waiting", 0)), d.one(in(time.Hour))
		return s
	}
	operate := func(d *database, tx store.OperatingTx, s scene) {
		d.Helper()
		did(d,
			must[[]store.Change](d, "cancel")(tx.Cancel(d.ctx, []job.ID{s.waiting}, ann)),
			must[[]store.Change](d, "retry")(tx.Retry(d.ctx, []job.ID{s.dead, s.parked, s.scheduled}, ann)),
			must[[]store.Change](d, "delete")(tx.Delete(d.ctx, []job.ID{s.done}, ann)))
		equal(d, "of a running job", must[[]store.Change](d, "cancel")(tx.Cancel(d.ctx, []job.ID{s.running}, ann)), []store.Change{store.Asked})
	}
	return []testCase{
		{name: "P3_VerbsCommitWithTheTransaction", run: func(d *database) {
			w := d.hire()
			s := set(d, w)
			tx := begin(d)
			operate(d, tx, s)
			mine := draft()
			must[[]job.Receipt](d, "enqueue")(tx.Enqueue(d.ctx, []job.Draft{mine}))
			end(d, "commit", tx.Commit(d.ctx))
			equal(d, "states", d.states(s.waiting, s.dead, s.parked), []job.State{job.Cancelled, job.Waiting, job.Waiting})
			d.gone("deleted", s.done)
			targets := map[string]string{}
			for _, e := range d.audit(store.AuditFilter{By: "ann"}, 100) {
				targets[e.Target] = e.Action
			}
			equal(d, "entries", targets, map[string]string{
				s.waiting.String(): "cancel", s.running.String(): "cancel", s.dead.String(): "retry", s.parked.String(): "retry",
				s.scheduled.String(): "retry", s.done.String(): "delete",
			})
			claimed := map[job.ID]bool{}
			for _, j := range w.claim(10) {
				claimed[j.ID] = true
			}
			equal(d, "claimed", claimed, map[job.ID]bool{s.dead: true, s.parked: true, s.scheduled: true, mine.ID: true})
		}},
		{name: "P3_VerbsRolledBackLeaveNothing", run: func(d *database) {
			w := d.hire()
			s := set(d, w)
			all := []job.ID{s.waiting, s.dead, s.parked, s.scheduled, s.done, s.running}
			before := must[[]job.Job](d, "get")(d.Store.Get(d.ctx, all))
			tx := begin(d)
			operate(d, tx, s)
			end(d, "rollback", tx.Rollback(d.ctx))
			equal(d, "jobs", must[[]job.Job](d, "get")(d.Store.Get(d.ctx, all)), before)
			equal(d, "entries", len(d.audit(store.AuditFilter{}, 100)), 0)
			equal(d, "cancels", len(w.beat().Cancels), 0)
			equal(d, "logs", len(must[[]job.LogLine](d, "logs")(d.Store.Logs(d.ctx, s.done, 0, 10))), 1)
			d.duplicate("the key of the waiting one", s.waiting, draft(once("of the waiting", 0)))
			d.one(once("of the dead", 0))
		}},
		{name: "J10_ARunIsAskedAfterTheCommit", run: func(d *database) {
			list := d.enqueue(drafts(2)...)
			w := d.hire()
			first, second := w.take(), w.take()
			tx := begin(d)
			equal(d, "cancel", must[[]store.Change](d, "cancel")(tx.Cancel(d.ctx, list[:1], ann)), []store.Change{store.Asked})
			equal(d, "delete", must[[]store.Change](d, "delete")(tx.Delete(d.ctx, list[1:], ann)), []store.Change{store.Asked})
			end(d, "commit", tx.Commit(d.ctx))
			equal(d, "cancels", len(must[[]store.RunRef](d, "cancels")(d.Store.Cancels(d.ctx, w.id))), 2)
			w.end(first, job.Done) // the truth wins (P9)
			w.end(second, job.Waiting)
			equal(d, "states", d.states(list...), []job.State{job.Done, job.Cancelled})
		}},
		{name: "J30_TheSameAnswersAsOutside", run: func(d *database) {
			w := d.hire()
			done, dead := d.one(), job.ID{}
			w.end(w.take(), job.Done)
			dead = d.one(once("x", 0))
			w.end(w.take(), job.Dead)
			d.one(once("x", 0)) // has the key now
			ready := d.one()
			all := []job.ID{done, dead, ready, job.NewID()}
			tx := begin(d)
			equal(d, "retry", must[[]store.Change](d, "retry")(tx.Retry(d.ctx, all, ann)),
				[]store.Change{store.Ended, store.Duplicate, store.Active, store.NotFound})
			equal(d, "cancel", must[[]store.Change](d, "cancel")(tx.Cancel(d.ctx, append(all, ready), ann)),
				[]store.Change{store.Ended, store.Ended, store.Changed, store.NotFound, store.Ended})
			equal(d, "delete", must[[]store.Change](d, "delete")(tx.Delete(d.ctx, all, store.Operator{})),
				[]store.Change{store.Changed, store.Changed, store.Changed, store.NotFound})
			equal(d, "nothing", len(must[[]store.Change](d, "cancel")(tx.Cancel(d.ctx, nil, ann))), 0)
			end(d, "commit", tx.Commit(d.ctx))
			audited(d, d.now().Add(-time.Minute), "cancel", "ann", "n", ready)
			equal(d, "jobs", d.count(), 1)
		}},
		{name: "P3_JobsOfTheTransactionItself", run: func(d *database) {
			kept, dropped := draft(in(time.Hour)), draft(once("x", 0))
			tx := begin(d)
			must[[]job.Receipt](d, "enqueue")(tx.Enqueue(d.ctx, []job.Draft{kept, dropped}))
			did(d,
				must[[]store.Change](d, "delete")(tx.Delete(d.ctx, []job.ID{dropped.ID}, ann)),
				must[[]store.Change](d, "retry")(tx.Retry(d.ctx, []job.ID{kept.ID}, ann)))
			end(d, "commit", tx.Commit(d.ctx))
			d.gone("deleted", dropped.ID)
			d.one(once("x", 0), onQueue("elsewhere"))
			equal(d, "claimed", ids(d.hire().claim(5)), []job.ID{kept.ID})
		}},
	}
}
