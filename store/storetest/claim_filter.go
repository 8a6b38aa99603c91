package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// claimFilter: a worker is never given what it cannot run, and what it leaves
// does not stand in the way of the rest.
func claimFilter() []testCase {
	return []testCase{
		{name: "J14_UnknownKindIsLeft", run: func(d *database) {
			d.one(ofKind("unheard.of"))
			known := d.one()
			equal(d, "claimed", ids(d.hire().claim(10)), []job.ID{known})
			w := d.hire()
			w.offer = job.Offer{Kinds: map[string]int{"unheard.of": 0}}
			equal(d, "claimed by who knows it", len(w.claim(10)), 1)
		}},
		{name: "J14_ManyUnknownKindsStarveNobody", run: func(d *database) {
			const unknown = 3_000
			d.enqueue(drafts(unknown, ofKind("unheard.of"))...)
			known := d.enqueue(drafts(3)...)
			w := d.hire()
			var got []job.ID
			for range 50 {
				claimed := w.ask(store.QueueClaim{Queue: queue, Limit: 2, Start: 2})
				got = append(got, ids(claimed.Jobs)...)
				if len(got) == len(known) || !claimed.More && len(claimed.Jobs) == 0 {
					break
				}
			}
			equal(d, "claimed behind them", got, known)
			v := d.hire()
			v.offer = job.Offer{Kinds: map[string]int{"unheard.of": 0}}
			equal(d, "left for who knows them", len(v.claim(unknown)), unknown)
		}},
		{name: "J32_AClockStepBackStrandsNothingBehindThem", run: func(d *database) {
			// A look that gave up among many unknown kinds goes on from there. After
			// the step new jobs come in front of that place.
			d.enqueue(drafts(2_000, ofKind("unheard.of"))...)
			w := d.hire()
			look := store.QueueClaim{Queue: queue, Limit: 2, Start: 2}
			equal(d, "claimed", len(w.ask(look).Jobs), 0)
			d.advance(-10 * time.Minute)
			known := d.one()
			var got []job.ID
			for range 50 {
				claimed := w.ask(look)
				got = append(got, ids(claimed.Jobs)...)
				if len(got) > 0 || !claimed.More {
					break
				}
			}
			equal(d, "claimed after the step", got, []job.ID{known})
		}},
		{name: "J14_WhatWasLeftIsFoundByALaterWorker", run: func(d *database) {
			left := d.one(ofKind("unheard.of"))
			w := d.hire()
			for range 3 {
				d.one()
				w.take()
			}
			v := d.hire()
			v.offer = job.Offer{Kinds: map[string]int{kind: 0, "unheard.of": 0}}
			equal(d, "claimed", ids(v.claim(5)), []job.ID{left})
		}},
		{name: "J6_ManyJobsForOthersHideNone", run: func(d *database) {
			d.enqueue(drafts(100, ofKind("unheard.of"), priority(1))...)
			low := d.enqueue(drafts(2, priority(9))...)
			high := d.enqueue(drafts(2, priority(1))...)
			w := d.hire()
			equal(d, "first", ids(w.claim(1)), high[:1])
			d.advance(10 * time.Second) // whoever looks begins in front again
			w.beat()
			equal(d, "second", ids(w.claim(2)), []job.ID{high[1], low[0]})
		}},
		{name: "J6_ManyJobsForOthersHideNoneWhereJobsAge", run: func(d *database) {
			d.enqueue(drafts(100, ofKind("unheard.of"), priority(1))...)
			old, low := d.one(priority(2)), d.one(priority(9))
			d.advance(2 * time.Minute)
			high := d.one(priority(1))
			aged := store.QueueClaim{Queue: queue, Limit: 2, Start: 2, Aging: time.Minute}
			w := d.hire()
			equal(d, "first", ids(w.ask(aged).Jobs), []job.ID{old, high})
			equal(d, "then", ids(w.ask(aged).Jobs), []job.ID{low})
		}},
		{name: "J31_NewerVersionIsLeft", run: func(d *database) {
			version := func(v int) func(*job.Draft) { return func(d *job.Draft) { d.Version = v } }
			old, same, newer := d.one(version(1)), d.one(version(2)), d.one(version(3))
			w := d.hire()
			w.offer = job.Offer{Kinds: map[string]int{kind: 2}}
			equal(d, "claimed by version 2", ids(w.claim(5)), []job.ID{old, same})
			w.offer = job.Offer{Kinds: map[string]int{kind: 3}}
			equal(d, "claimed by version 3", ids(w.claim(5)), []job.ID{newer})
		}},
		{name: "J3_CapabilitiesAreNeededAll", run: func(d *database) {
			needs := func(names ...string) func(*job.Draft) { return func(d *job.Draft) { d.Capabilities = names } }
			none, gpu, both := d.one(), d.one(needs("gpu")), d.one(needs("gpu", "disk"))
			w := d.hire()
			equal(d, "claimed with nothing", ids(w.claim(5)), []job.ID{none})
			w.offer.Capabilities = []string{"disk", "gpu", "tape"}
			equal(d, "claimed with both", ids(w.claim(1)), []job.ID{gpu})
			w.offer.Capabilities = []string{"gpu"}
			equal(d, "claimed with one", len(w.claim(5)), 0)
			w.offer.Capabilities = []string{"gpu", "disk"}
			equal(d, "claimed with both", ids(w.claim(5)), []job.ID{both})
		}},
		{name: "NoKindsNoJobs", run: func(d *database) {
			d.one()
			w := d.hire()
			w.offer = job.Offer{}
			equal(d, "claimed", len(w.claim(5)), 0)
		}},
	}
}
