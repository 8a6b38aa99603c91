package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func jobCancel() []testCase {
	ownKeep := store.Settings{Keep: func(q string) job.Keep {
		if q == "forget" {
			return keepNone
		}
		return keep
	}}
	return []testCase{
		{name: "J10_EndsWhatWaits", settings: ownKeep, run: func(d *database) {
			w := d.hire()
			parked := d.one()
			w.end(w.take(), job.Suspended)
			ready, scheduled := d.one(), d.one(in(time.Hour))
			from := d.now()
			equal(d, "cancel", d.cancel(ready, scheduled, parked), []store.Change{store.Changed, store.Changed, store.Changed})
			equal(d, "states", d.states(ready, scheduled, parked), []job.State{job.Cancelled, job.Cancelled, job.Cancelled})
			got := d.get(ready)
			within(d, "finished", got.Finished, from, d.now())
			equal(d, "kept for", got.Expires.Sub(got.Finished), keep.Cancelled)
			d.advance(2 * time.Hour)
			equal(d, "claimed", len(w.claim(5)), 0)
		}},
		{name: "J10_AsksWhatRuns", run: func(d *database) {
			id := d.one()
			w := d.hire()
			held := w.take()
			equal(d, "cancel", d.cancel(id), []store.Change{store.Asked})
			got := d.get(id)
			equal(d, "state", got.State, job.Running)
			equal(d, "asked", got.CancelAsked, true)
			equal(d, "cancel again", d.cancel(id), []store.Change{store.Asked})
			w.end(held, job.Cancelled, func(e *job.End) { e.Reason = "cancelled while running" })
			equal(d, "state", d.get(id).State, job.Cancelled)
		}},
		{name: "P9_LateCancelDoesNotUndoDone", run: func(d *database) {
			w := d.hire()
			for _, to := range []job.State{job.Done, job.Dead, job.Cancelled} {
				id := d.one()
				w.end(w.take(), to, func(e *job.End) { e.Result = []byte("kept") })
				before := d.get(id)
				equal(d, "cancel", d.cancel(id), []store.Change{store.Ended})
				equal(d, "job", d.get(id), before)
			}
		}},
		{name: "UnknownIDs", run: func(d *database) {
			id := d.one()
			equal(d, "cancel", d.cancel(job.NewID(), id, job.NewID()), []store.Change{store.NotFound, store.Changed, store.NotFound})
		}},
		{name: "TwiceInOneCall", run: func(d *database) {
			id := d.one()
			equal(d, "cancel", d.cancel(id, id), []store.Change{store.Changed, store.Ended})
		}},
		{name: "EmptySlice", run: func(d *database) {
			equal(d, "cancel", d.cancel(), nil)
		}},
		{name: "J15_NotKeptWhereNothingIsKept", settings: ownKeep, run: func(d *database) {
			id := d.one(onQueue("forget"))
			equal(d, "cancel", d.cancel(id), []store.Change{store.Changed})
			d.gone("not kept", id)
			d.duplicate("resend", id, draft(again(id)))
		}},
		{name: "J30_AuditedInTheSameCommit", run: func(d *database) {
			waiting, running, done := d.one(priority(9)), d.one(priority(1)), d.one(priority(2))
			w := d.hire()
			w.take()
			w.end(w.take(), job.Done)
			from := d.now()
			must[[]store.Change](d, "cancel")(d.Store.Cancel(d.ctx, []job.ID{waiting, running, done, job.NewID()}, store.Operator{Name: "ann", Note: "why not"}))
			audited(d, from, "cancel", "ann", "why not", waiting, running)
		}},
		{name: "ManyIDs", run: func(d *database) {
			list := d.enqueue(drafts(manyRows)...)
			for i, c := range d.cancel(list...) {
				if c != store.Changed {
					d.Fatalf("answer %d is %d", i, c)
				}
			}
			equal(d, "cancelled", d.count(job.Cancelled), manyRows)
		}},
	}
}

// audited checks that exactly these jobs were entered into the audit log.
func audited(d *database, from time.Time, action, by, note string, targets ...job.ID) {
	d.Helper()
	want := map[string]bool{}
	for _, id := range targets {
		want[id.String()] = true
	}
	got := map[string]bool{}
	for _, e := range d.audit(store.AuditFilter{}, 100) {
		got[e.Target] = true
		equal(d, "entry", [3]string{e.Action, e.By, e.Note}, [3]string{action, by, note})
		within(d, "time of the entry", e.Time, from, d.now())
	}
	equal(d, "audited", got, want)
}
