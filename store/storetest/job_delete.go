package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func jobDelete() []testCase {
	return []testCase{
		{name: "J10_RemovesWhatDoesNotRun", run: func(d *database) {
			w := d.hire()
			parked, done := d.one(), d.one()
			got := w.claim(2)
			w.end(got[0], job.Suspended)
			w.end(got[1], job.Done)
			ready, scheduled := d.one(), d.one(in(time.Hour))
			list := []job.ID{parked, done, ready, scheduled}
			equal(d, "delete", d.delete(list...), []store.Change{store.Changed, store.Changed, store.Changed, store.Changed})
			for _, id := range list {
				d.gone("deleted", id)
			}
			equal(d, "jobs", d.count(), 0)
			equal(d, "claimed", len(w.claim(5)), 0)
		}},
		{name: "J10_AsksWhatRunsToCancel", run: func(d *database) {
			id := d.one()
			w := d.hire()
			held := w.take()
			equal(d, "delete", d.delete(id), []store.Change{store.Asked})
			got := d.get(id)
			equal(d, "state", got.State, job.Running)
			equal(d, "asked", got.CancelAsked, true)
			w.end(held, job.Waiting)
			equal(d, "state", d.get(id).State, job.Cancelled)
			equal(d, "delete", d.delete(id), []store.Change{store.Changed})
			d.gone("deleted", id)
		}},
		{name: "J10_NotFound", run: func(d *database) {
			id := d.one()
			equal(d, "delete", d.delete(job.NewID(), id, id), []store.Change{store.NotFound, store.Changed, store.NotFound})
		}},
		{name: "EmptySlice", run: func(d *database) {
			equal(d, "delete", d.delete(), nil)
		}},
		{name: "LogsGoWithTheJob", run: func(d *database) {
			id := d.one()
			w := d.hire()
			w.end(w.take(), job.Dead, func(e *job.End) { e.Logs = []job.LogLine{{Time: d.now(), Run: 1, Text: "x"}} })
			d.delete(id)
			equal(d, "logs", len(must[[]job.LogLine](d, "logs")(d.Store.Logs(d.ctx, id, 0, 10))), 0)
		}},
		{name: "J30_AuditedInTheSameCommit", run: func(d *database) {
			waiting := d.one()
			from := d.now()
			must[[]store.Change](d, "delete")(d.Store.Delete(d.ctx, []job.ID{waiting, job.NewID()}, store.Operator{Name: "ann", Note: "n"}))
			audited(d, from, "delete", "ann", "n", waiting)
		}},
		{name: "J30_NoNameNoEntry", run: func(d *database) {
			d.delete(d.one())
			d.cancel(d.one())
			equal(d, "entries", len(d.audit(store.AuditFilter{}, 100)), 0)
		}},
		{name: "ManyIDs", run: func(d *database) {
			list := d.enqueue(drafts(manyRows)...)
			d.cancel(list[:manyRows/2]...)
			for i, c := range d.delete(list...) {
				if c != store.Changed {
					d.Fatalf("answer %d is %d", i, c)
				}
			}
			equal(d, "jobs", d.count(), 0)
		}},
	}
}
