package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// refusedAsLost claims as a worker that was declared lost.
func (w *employee) refusedAsLost() {
	w.d.Helper()
	w.seq++
	_, err := w.store.Claim(w.d.ctx, store.Claim{
		Worker: w.id, Seq: w.seq, Offer: w.offer, Gates: w.gates, Queues: []store.QueueClaim{{Queue: queue, Limit: 5, Start: 5}},
	})
	means(w.d, "claim", err, job.ErrWorkerLost)
}

// gateOrder: what a claim cannot take from behind a gate hides nothing that comes before
// what it takes. One job of a key runs at once, so a claim has to find the right one.
func gateOrder() []testCase {
	return []testCase{
		{name: "J6_AJobForOthersBehindAGateHidesNone", run: func(d *database) {
			d.one(withKey("a"), ofKind("foreign"), priority(1), by(onePerKey))
			high := d.one(withKey("a"), priority(1), by(onePerKey))
			d.one(withKey("a"), priority(9), by(onePerKey))
			equal(d, "claimed", ids(d.under(onePerKey).claim(5)), []job.ID{high})
		}},
		{name: "J6_ManyJobsForOthersBehindAGateHideNone", run: func(d *database) {
			d.enqueue(drafts(100, withKey("a"), ofKind("foreign"), priority(1), by(onePerKey))...)
			high := d.one(withKey("a"), priority(1), by(onePerKey))
			d.one(withKey("a"), priority(9), by(onePerKey))
			equal(d, "claimed", ids(d.under(onePerKey).claim(5)), []job.ID{high})
		}},
		{name: "J6_AJobForOthersHidesNoneWhereJobsAge", run: func(d *database) {
			d.one(withKey("a"), ofKind("foreign"), priority(1), by(onePerKey))
			d.one(withKey("a"), priority(9), by(onePerKey))
			d.advance(time.Minute)
			high := d.one(withKey("a"), priority(1), by(onePerKey))
			w := d.under(onePerKey)
			aged := store.QueueClaim{Queue: queue, Limit: 5, Start: 5, Aging: time.Minute}
			equal(d, "claimed", ids(w.ask(aged).Jobs), []job.ID{high})
		}},
		{name: "J6_ARescuedJobBehindAGateHidesNone", run: func(d *database) {
			rescued := d.one(withKey("a"), priority(1), by(onePerKey))
			lost, w := d.under(onePerKey), d.under(onePerKey)
			equal(d, "first", ids(lost.claim(1)), []job.ID{rescued})
			d.lose(lost, w)
			d.rescue()
			high := d.one(withKey("a"), priority(1), by(onePerKey))
			d.one(withKey("a"), priority(9), by(onePerKey))
			ahead := store.QueueClaim{Queue: queue, Limit: 5, Start: 0}
			equal(d, "claimed ahead, where it may only start", ids(w.ask(ahead).Jobs), []job.ID{high})
		}},
		{name: "J19_AJobThatAnotherBoundRefusesHidesNone", run: func(d *database) {
			both := someLimits{"tenants": onePerKey["tenants"], "render": {Kind: "render", Concurrent: 1}}
			w := d.under(both)
			d.one(withKey("b"), ofKind("render"), by(both))
			equal(d, "first", len(w.claim(1)), 1)
			d.enqueue(drafts(10, withKey("a"), ofKind("render"), by(both))...)
			list := d.enqueue(drafts(3, withKey("a"), by(both))...)
			for _, id := range list {
				got := w.patient(5, time.Second)
				equal(d, "claimed while another renders", ids(got), []job.ID{id})
				for _, j := range got {
					w.end(j, job.Done)
				}
			}
		}},
		{name: "J19_WhoIsLostTakesNoTurnOfAnOrderedKey", run: func(d *database) {
			lost, w := d.under(orderedKeys), d.under(orderedKeys)
			d.one(withKey("a"), priority(9), by(orderedKeys))
			d.lose(lost, w)
			lost.refusedAsLost()
			high := d.one(withKey("a"), priority(1), by(orderedKeys))
			equal(d, "claimed", ids(w.soon(5)), []job.ID{high})
		}},
		{name: "J17_WhoIsLostTakesNoTokens", run: func(d *database) {
			rate := someLimits{"mail": {Queue: queue, PerSecond: 0.001, Burst: 3}}
			lost, w := d.under(rate), d.under(rate)
			d.enqueue(drafts(5, by(rate))...)
			d.lose(lost, w)
			lost.refusedAsLost()
			equal(d, "claimed", len(w.soon(5)), 3)
		}},
	}
}
