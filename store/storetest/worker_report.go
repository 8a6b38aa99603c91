package storetest

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// workerHold: a worker tells which runs it holds, and what it knows nothing of
// goes back at no cost.
func workerHold() []testCase {
	hold := func(w *employee, held ...store.RunRef) store.ReportReply {
		w.d.Helper()
		return must[store.ReportReply](w.d, "hold")(w.store.ReportRuns(w.d.ctx, w.id, held))
	}
	return []testCase{
		{name: "J32_WhatIsNotHeldGoesBack", run: func(d *database) {
			d.enqueue(drafts(4)...)
			w, v := d.hire(), d.hire()
			held := w.claim(3)
			other := v.take()
			got := hold(w, ref(held[0]))
			equal(d, "held", got, store.ReportReply{Returned: 2})
			equal(d, "states", d.states(held[0].ID, held[1].ID, held[2].ID, other.ID),
				[]job.State{job.Running, job.Waiting, job.Waiting, job.Running})
			back := d.get(held[1].ID)
			equal(d, "used, lost, rescues, snoozes", [4]int{back.Used, back.Lost, back.Rescues, back.Snoozes}, [4]int{})
			equal(d, "verdict of a late finish", w.finish(ending(held[1], job.Done)), []job.Verdict{job.Stale})
			again := v.claim(5)
			equal(d, "claimed", ids(again), ids(held[1:]))
			equal(d, "run", again[0].Run, held[1].Run+1)
		}},
		{name: "J32_AllHeldNothingChanges", run: func(d *database) {
			d.enqueue(drafts(3)...)
			w := d.hire()
			held := w.claim(3)
			equal(d, "held", hold(w, ref(held[2]), ref(held[0]), ref(held[1])), store.ReportReply{})
			equal(d, "running", d.count(job.Running), 3)
		}},
		{name: "P2_RunsThatAreNotItsOwnAreNamed", run: func(d *database) {
			d.enqueue(drafts(3)...)
			w, v := d.hire(), d.hire()
			mine, theirs := w.claim(2), v.take()
			w.end(mine[1], job.Done)
			old := ref(mine[0])
			old.Run--
			unknown := store.RunRef{ID: job.NewID(), Run: 1}
			got := hold(w, ref(mine[0]), old, ref(theirs), ref(mine[1]), unknown)
			equal(d, "returned", got.Returned, 0)
			equal(d, "stale", set(got.Stale), set([]store.RunRef{old, ref(theirs), ref(mine[1]), unknown}))
			equal(d, "states", d.states(mine[0].ID, theirs.ID), []job.State{job.Running, job.Running})
		}},
		{name: "J32_HoldingAnotherRunOfAJobIsNotHoldingIt", run: func(d *database) {
			d.one()
			w := d.hire()
			first := w.take()
			w.end(first, job.Waiting)
			second := w.take()
			got := hold(w, ref(first))
			equal(d, "held", got, store.ReportReply{Returned: 1, Stale: []store.RunRef{ref(first)}})
			equal(d, "state", d.get(second.ID).State, job.Waiting)
		}},
		{name: "P9_AskedToCancelDoesNotGoBackToWaiting", run: func(d *database) {
			id := d.one()
			w := d.hire()
			w.take()
			d.cancel(id)
			hold(w)
			equal(d, "state", d.get(id).State, job.Cancelled)
		}},
		{name: "NothingHeldNothingReported", run: func(d *database) {
			equal(d, "held", hold(d.hire()), store.ReportReply{})
		}},
	}
}

// set forgets the order of a list.
func set[T comparable](list []T) map[T]bool {
	m := make(map[T]bool, len(list))
	for _, v := range list {
		m[v] = true
	}
	return m
}
