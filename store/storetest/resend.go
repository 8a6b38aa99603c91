package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// resend: a send whose answer was lost may be repeated under its id, and adds
// nothing when the first one arrived.
func resend() []testCase {
	return []testCase{
		{name: "FirstSendIsAccepted", run: func(d *database) {
			id := job.NewID()
			equal(d, "receipt", d.send(draft(again(id))), []job.Receipt{{ID: id}})
		}},
		{name: "WhileItWaits", run: func(d *database) {
			id := d.one()
			d.duplicate("resend", id, draft(again(id)))
		}},
		{name: "WhileItRuns", run: func(d *database) {
			id := d.one()
			d.hire().take()
			d.duplicate("resend", id, draft(again(id)))
			equal(d, "state", d.get(id).State, job.Running)
		}},
		{name: "AfterItsEnd", run: func(d *database) {
			id := d.one()
			w := d.hire()
			w.end(w.take(), job.Done)
			d.duplicate("resend", id, draft(again(id)))
			equal(d, "state", d.get(id).State, job.Done)
			equal(d, "claimed", len(w.claim(1)), 0)
		}},
		{name: "J15_AfterItsEndWhenNothingIsKept", run: func(d *database) {
			id := d.one()
			w := d.hire()
			w.end(w.take(), job.Done, func(e *job.End) { e.Keep = keepNone })
			d.gone("kept by a tombstone only", id)
			d.duplicate("resend", id, draft(again(id)))
			d.advance(job.KeepTombstone - time.Hour)
			must[int](d, "purge")(d.Store.Purge(d.ctx, 100))
			d.duplicate("resend within a day", id, draft(again(id)))
		}},
		{name: "J15_ATombstoneLastsADay", run: func(d *database) {
			id := d.one()
			w := d.hire()
			w.end(w.take(), job.Done, func(e *job.End) { e.Keep = keepNone })
			d.advance(job.KeepTombstone + time.Hour)
			must[int](d, "purge")(d.Store.Purge(d.ctx, 100))
			equal(d, "resend", d.send(draft(again(id))), []job.Receipt{{ID: id}})
		}},
		{name: "AfterAnOperatorDeletedIt", run: func(d *database) {
			id := d.one()
			equal(d, "delete", d.delete(id), []store.Change{store.Changed})
			d.duplicate("resend", id, draft(again(id)))
		}},
		{name: "TwiceInOneCall", run: func(d *database) {
			id := job.NewID()
			equal(d, "receipts", d.send(draft(again(id)), draft(again(id))), []job.Receipt{{ID: id}, {ID: id, Duplicate: true}})
			equal(d, "jobs", d.count(), 1)
		}},
		{name: "AmongNewDrafts", run: func(d *database) {
			old := d.one()
			first, last := draft(), draft()
			equal(d, "receipts", d.send(first, draft(again(old)), last), []job.Receipt{
				{ID: first.ID}, {ID: old, Duplicate: true}, {ID: last.ID},
			})
		}},
		{name: "J4_OfAPurgedJobWithinItsPeriod", run: func(d *database) {
			id := d.one(once("x", 100*time.Hour))
			w := d.hire()
			w.end(w.take(), job.Done)
			d.advance(50 * time.Hour) // the archive keeps it for 2 h
			must[int](d, "purge")(d.Store.Purge(d.ctx, 100))
			d.gone("purged", id)
			d.duplicate("its own key", id, draft(again(id), once("x", 100*time.Hour)))
			equal(d, "claimed", len(w.claim(1)), 0)
		}},
		{name: "J4_OfAUniqueJobIsItself", run: func(d *database) {
			id := d.one(once("x", time.Hour))
			d.duplicate("resend while it waits", id, draft(again(id), once("x", time.Hour)))
			w := d.hire()
			w.end(w.take(), job.Done)
			d.duplicate("resend within the period", id, draft(again(id), once("x", time.Hour)))
			d.advance(90 * time.Minute)
			d.duplicate("resend after the period", id, draft(again(id), once("x", time.Hour)))
			// The refused resend must not have taken the key.
			d.one(once("x", 0))
		}},
		{name: "J4_WithAKeyThatAnotherHolds", run: func(d *database) {
			holder := d.one(once("x", 0))
			d.duplicate("resend", holder, draft(again(job.NewID()), once("x", 0)))
		}},
		{name: "ChangesNothingOfTheFirst", run: func(d *database) {
			id := d.one(func(d *job.Draft) { d.Args = []byte("first") })
			before := d.get(id)
			d.send(draft(again(id), priority(1), onQueue("elsewhere"), func(d *job.Draft) { d.Args = []byte("second") }))
			equal(d, "job", d.get(id), before)
		}},
	}
}
