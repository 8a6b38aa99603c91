package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// gates: what is refused for a time waits behind a gate. Claims that do not name the
// gate do not meet it, and those that do meet nothing else.
func gates() []testCase {
	const here, there = int64(77), int64(-5)
	behind := func(gate int64) func(*job.Draft) { return func(d *job.Draft) { d.Gate = gate } }
	at := func(gate int64, limit int) store.QueueClaim {
		return store.QueueClaim{Queue: queue, Gate: gate, Limit: limit, Start: limit}
	}
	gateOf := func(d *database, id job.ID) int64 {
		d.Helper()
		j := d.get(id)
		return j.Gate()
	}
	return []testCase{
		{name: "J19_AGateKeepsItsJobsFromOtherClaims", run: func(d *database) {
			closed := d.enqueue(drafts(5, behind(here))...)
			other := d.one(behind(there))
			plain := d.enqueue(drafts(3)...)
			w := d.hire()
			equal(d, "claimed", ids(w.ask(at(0, 10)).Jobs), plain)
			nothing := w.ask(at(0, 10))
			equal(d, "claimed of what is behind gates", ids(nothing.Jobs), nil)
			equal(d, "there is more", nothing.More, false)
			equal(d, "until the next", nothing.Next, 0)
			through := w.ask(at(here, 3)).Jobs
			equal(d, "claimed at the gate", ids(through), closed[:3])
			equal(d, "its gate", through[0].Gate(), here)
			equal(d, "claimed at the gate", ids(w.ask(at(here, 10)).Jobs), closed[3:])
			equal(d, "claimed at the other", ids(w.ask(at(there, 10)).Jobs), []job.ID{other})
		}},
		{name: "J19_OneClaimNamesSeveralGates", run: func(d *database) {
			a, b, c := d.one(behind(here)), d.one(behind(there)), d.one()
			d.one(behind(here + 1))
			got := d.hire().ask(at(0, 1), at(there, 5), at(here, 5))
			equal(d, "claimed in the order of the lanes", ids(got.Jobs), []job.ID{c, b, a})
		}},
		{name: "J4_OrderBehindAGate", run: func(d *database) {
			low := d.one(behind(here), priority(8))
			later := d.one(behind(here), in(time.Minute))
			high := d.one(behind(here), priority(2))
			w := d.hire()
			first := w.ask(at(here, 10))
			equal(d, "claimed", ids(first.Jobs), []job.ID{high, low})
			if next := w.ask(at(here, 10)).Next; next <= 0 || next > time.Minute {
				d.Errorf("the next job behind the gate falls due in %v", next)
			}
			d.advance(2 * time.Minute)
			w.beat()
			equal(d, "claimed when it is due", ids(w.ask(at(here, 10)).Jobs), []job.ID{later})
		}},
		{name: "J19_WhatGoesBackWaitsBehindItsGate", run: func(d *database) {
			id := d.one(behind(here))
			w := d.hire()
			w.end(w.ask(at(here, 1)).Jobs[0], job.Waiting)
			equal(d, "claimed in front", ids(w.claim(10)), nil)
			lost := d.hire()
			equal(d, "claimed behind", ids(lost.ask(at(here, 1)).Jobs), []job.ID{id})
			d.lose(lost, w)
			d.rescue()
			equal(d, "claimed in front after a rescue", ids(w.claim(10)), nil)
			j := w.ask(at(here, 1)).Jobs[0]
			w.end(j, job.Dead)
			equal(d, "of a dead one", gateOf(d, id), here)
			equal(d, "retried", d.retry(id), []store.Change{store.Changed})
			equal(d, "claimed in front after a retry", ids(w.claim(10)), nil)
			equal(d, "claimed behind", ids(w.ask(at(here, 1)).Jobs), []job.ID{id})
		}},
		{name: "J19_AJobInFrontOfItsGateIsPutBehindIt", run: func(d *database) {
			first := d.enqueue(drafts(3, ofKind("render"))...)
			plain := d.one()
			behind := d.one(ofKind("render"))
			w := d.hire()
			w.offer = job.Offer{Kinds: map[string]int{"render": 0, kind: 0}}
			w.gates = map[string]int64{"render": here}
			equal(d, "claimed in front", ids(w.claim(10)), []job.ID{plain})
			equal(d, "claimed in front again", ids(w.claim(10)), nil)
			for _, id := range append(first, behind) {
				equal(d, "gate", gateOf(d, id), here)
			}
			equal(d, "claimed behind", ids(w.ask(at(here, 10)).Jobs), append(first, behind))
		}},
		{name: "J32_ARepeatedClaimOfAGate", run: func(d *database) {
			list := d.enqueue(drafts(3, behind(here))...)
			w := d.hire()
			w.ask(at(here, 2))
			again := w.repeat(w.seq, at(here, 2))
			equal(d, "claimed again", ids(again.Jobs), list[:2])
			equal(d, "its gate", again.Jobs[0].Gate(), here)
		}},
		{name: "J19_AgesBehindAGate", run: func(d *database) {
			old := d.one(behind(here), priority(9))
			d.advance(time.Hour)
			d.one(behind(here), priority(1))
			w := d.hire()
			aged := at(here, 1)
			aged.Aging = time.Minute
			equal(d, "claimed", ids(w.ask(aged).Jobs), []job.ID{old})
		}},
		{name: "P5_WhyAJobBehindAGateWaits", run: func(d *database) {
			id := d.one(behind(here))
			d.hire()
			sit := must[job.Situation](d, "situation")(store.SituationOf(d.ctx, d.Store, id))
			equal(d, "why", job.Explain(sit).Code, job.WhyGate)
		}},
		{name: "J35_CountsKnowWhatWaitsBehindGates", run: func(d *database) {
			d.one(behind(here), onQueue("elsewhere"))
			d.enqueue(draft(), draft(behind(here)), draft(behind(there)))
			equal(d, "counts", must[[]store.QueueCount](d, "counts")(d.Store.(store.Counter).Counts(d.ctx)), []store.QueueCount{
				{Queue: "elsewhere", State: job.Waiting, Counted: store.Counted{Jobs: 1}},
				{Queue: queue, State: job.Waiting, Counted: store.Counted{Jobs: 3}},
			})
		}},
		{name: "J18_AQueueWithNothingButGatesIsReportedWhenNobodyServesIt", run: func(d *database) {
			d.one(behind(here), onQueue("elsewhere"))
			w := d.hire()
			d.advance(time.Hour)
			w.beat()
			list := must[[]store.Unserved](d, "unserved")(d.Store.Unserved(d.ctx, w.id, time.Minute))
			if len(list) != 1 || list[0].Queue != "elsewhere" {
				d.Errorf("unserved: %+v", list)
			}
		}},
	}
}
