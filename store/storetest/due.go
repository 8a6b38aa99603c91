package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func due() []testCase {
	look := func(d *database) store.Due {
		d.Helper()
		return must[store.Due](d, "look")(d.Store.Due(d.ctx))
	}
	// purges wants that a purge is due once some time has passed, and no longer once it is done.
	purges := func(d *database, after time.Duration) {
		d.Helper()
		equal(d, "due before the time", look(d), store.Due{})
		d.advance(after)
		equal(d, "due", look(d), store.Due{Purge: true})
		equal(d, "due after a look", look(d), store.Due{Purge: true})
		must[int](d, "purge")(d.Store.Purge(d.ctx, 100))
		equal(d, "due after the purge", look(d), store.Due{})
	}
	return []testCase{
		{name: "J30_NothingIs", run: func(d *database) {
			equal(d, "due in an empty store", look(d), store.Due{})
			d.enqueue(draft(), draft(in(time.Hour)), draft(once("x", time.Hour)), draft(until(d.now().Add(time.Hour))))
			w := d.hire()
			w.end(w.take(), job.Done)
			w.take()
			equal(d, "due", look(d), store.Due{})
		}},
		{name: "J30_DeadlinesAre", run: func(d *database) {
			d.one(until(d.now().Add(time.Hour)))
			w := d.hire()
			held := w.take()
			d.one(until(d.now().Add(9 * time.Hour)))
			d.advance(2 * time.Hour)
			equal(d, "due while it runs", look(d), store.Due{})
			w.end(held, job.Waiting)
			equal(d, "due", look(d), store.Due{Expire: true})
			equal(d, "expired", d.expire(10), 1)
			equal(d, "due after the round", look(d), store.Due{})
		}},
		{name: "J30_EndedJobsAre", run: func(d *database) {
			d.enqueue(drafts(2)...)
			w := d.hire()
			w.end(w.take(), job.Done)
			purges(d, 3*time.Hour)
			w.end(w.take(), job.Done) // behind the place where the purge ended
			purges(d, 3*time.Hour)
		}},
		{name: "J30_TombstonesAre", run: func(d *database) {
			d.one()
			w := d.hire()
			w.end(w.take(), job.Done, func(e *job.End) { e.Keep = keepNone })
			purges(d, job.KeepTombstone+time.Hour)
		}},
		{name: "J30_KeptKeysAre", run: func(d *database) {
			d.one(once("x", 90*time.Minute))
			w := d.hire()
			w.end(w.take(), job.Done) // which is kept for 2 h
			purges(d, 100*time.Minute)
		}},
		{name: "J30_AuditEntriesAre", run: func(d *database) {
			if err := d.Store.SetPaused(d.ctx, store.OfQueue(queue), true, store.Operator{Name: "ann"}); err != nil {
				d.Fatal(err)
			}
			purges(d, 365*24*time.Hour)
		}},
		{name: "J30_LostWorkersThatHoldNothingAre", run: func(d *database) {
			idle, busy := d.hire(), d.hire()
			d.one()
			busy.take()
			equal(d, "lost", must[int](d, "mark dead")(d.Store.MarkDead(d.ctx, []job.WorkerID{busy.id})), 1)
			equal(d, "due while it holds a run", look(d), store.Due{})
			equal(d, "rescued", d.rescue().Total(), 1)
			equal(d, "due", look(d), store.Due{Purge: true})
			for range 2 { // a store may keep the row for a day
				must[int](d, "purge")(d.Store.Purge(d.ctx, 100))
				equal(d, "due after the purge", look(d), store.Due{})
				d.advance(25 * time.Hour)
				idle.beat()
				must[int](d, "purge")(d.Store.Purge(d.ctx, 100))
			}
			equal(d, "due at the end", look(d), store.Due{})
		}},
	}
}
