package storetest

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// claimRepeat: the answer of a claim may be lost; asking again under the same
// number gives the same jobs and no others.
func claimRepeat() []testCase {
	wide := store.QueueClaim{Queue: queue, Limit: 5, Start: 2}
	return []testCase{
		{name: "J32_SameNumberSameJobs", run: func(d *database) {
			d.enqueue(drafts(12)...)
			w := d.hire()
			first := w.ask(wide).Jobs
			equal(d, "repeated", byID(w.repeat(1, wide).Jobs), byID(first))
			equal(d, "running", d.count(job.Running), 5)
			equal(d, "next claim", len(w.ask(wide).Jobs), 5)
		}},
		{name: "J32_OnlyWhatIsStillHeld", run: func(d *database) {
			d.enqueue(drafts(5)...)
			w := d.hire()
			first := w.ask(wide).Jobs
			w.end(first[0], job.Done)
			w.end(first[1], job.Waiting)
			equal(d, "repeated", byID(w.repeat(1, wide).Jobs), byID(first[2:]))
			equal(d, "waiting", d.count(job.Waiting), 1)
		}},
		{name: "J32_AnEmptyClaimStaysEmpty", run: func(d *database) {
			w := d.hire()
			equal(d, "claimed", len(w.ask(wide).Jobs), 0)
			d.enqueue(drafts(3)...)
			equal(d, "repeated", len(w.repeat(1, wide).Jobs), 0)
			equal(d, "next claim", len(w.ask(wide).Jobs), 3)
		}},
		{name: "J32_AnEarlierNumberClaimsNothingNew", run: func(d *database) {
			d.enqueue(drafts(3)...)
			w := d.hire()
			one := store.QueueClaim{Queue: queue, Limit: 1, Start: 1}
			first := w.ask(one).Jobs
			w.ask(one)
			equal(d, "repeated", byID(w.repeat(1, one).Jobs), byID(first))
			equal(d, "waiting", d.count(job.Waiting), 1)
		}},
		{name: "J32_NumbersBelongToTheirWorker", run: func(d *database) {
			d.enqueue(drafts(4)...)
			w, v := d.hire(), d.hire()
			one := store.QueueClaim{Queue: queue, Limit: 2, Start: 2}
			first, second := w.ask(one).Jobs, v.ask(one).Jobs
			equal(d, "claimed", len(first)+len(second), 4)
			equal(d, "repeated", byID(w.repeat(1, one).Jobs), byID(first))
			equal(d, "repeated", byID(v.repeat(1, one).Jobs), byID(second))
		}},
		{name: "J32_ALaterRunIsNotOfThatClaim", run: func(d *database) {
			d.one()
			w := d.hire()
			w.end(w.take(), job.Waiting)
			w.take()
			equal(d, "repeated", len(w.repeat(1, wide).Jobs), 0)
		}},
	}
}

// byID indexes claimed jobs: a repeated answer may come in another order.
func byID(jobs []store.LeasedJob) map[job.ID]store.LeasedJob {
	m := make(map[job.ID]store.LeasedJob, len(jobs))
	for _, j := range jobs {
		m[j.ID] = j
	}
	return m
}
