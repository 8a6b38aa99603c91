package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func redate() []testCase {
	const step = 10 * time.Minute
	// setBack sets the clock back, which a worker notices right then.
	setBack := func(d *database, limit int) int {
		d.Helper()
		was := d.now()
		d.advance(-step)
		return must[int](d, "redate")(d.Store.MakeDueAgain(d.ctx, store.ClockStep{Queues: []string{queue}, Was: was, Within: time.Second}, limit))
	}
	return []testCase{
		{name: "J32_WhatWasReadyIsReadyAfterAStepBack", run: func(d *database) {
			w := d.hire()
			urgent, plain := d.one(priority(1)), d.one()
			retried := d.one(priority(9))
			held := w.claim(3)
			for _, l := range held {
				w.end(l, job.Waiting)
			}
			equal(d, "redated", setBack(d, 100), 3)
			w.beat()
			equal(d, "claimed after the step", ids(w.claim(5)), []job.ID{urgent, plain, retried})
		}},
		{name: "J32_ScheduledJobsKeepTheirTime", run: func(d *database) {
			w := d.hire()
			soon, elsewhere := d.one(in(time.Minute)), d.one(onQueue("other"))
			equal(d, "redated", setBack(d, 100), 0)
			w.beat()
			equal(d, "claimed after the step", len(w.claim(5)), 0)
			d.advance(step + 2*time.Minute)
			w.beat()
			equal(d, "claimed in time", ids(w.claim(5)), []job.ID{soon})
			equal(d, "state on a queue that nobody asked for", d.get(elsewhere).State, job.Waiting)
		}},
		{name: "J32_WhatCameAfterTheStepKeepsItsTime", run: func(d *database) {
			w := d.hire()
			was := d.now()
			d.advance(-step)
			after := d.one(in(time.Minute))
			n := must[int](d, "redate")(d.Store.MakeDueAgain(d.ctx, store.ClockStep{Queues: []string{queue}, Was: was, Within: time.Minute}, 100))
			equal(d, "redated", n, 0)
			equal(d, "claimed early", len(w.claim(5)), 0)
			d.advance(2 * time.Minute)
			equal(d, "claimed in time", ids(w.claim(5)), []job.ID{after})
		}},
		{name: "P10_BoundedAndRepeatable", run: func(d *database) {
			w := d.hire()
			all := d.enqueue(drafts(10)...)
			was := d.now()
			n := []int{setBack(d, 4)}
			for range 3 {
				s := store.ClockStep{Queues: []string{queue}, Was: was.Add(time.Second), Within: time.Second}
				n = append(n, must[int](d, "redate")(d.Store.MakeDueAgain(d.ctx, s, 4)))
			}
			equal(d, "redated", n, []int{4, 4, 2, 0})
			w.beat()
			equal(d, "claimed", len(w.claim(20)), len(all))
		}},
	}
}
