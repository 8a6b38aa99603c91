package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func purge() []testCase {
	sweep := func(d *database, limit int) int {
		d.Helper()
		return must[int](d, "purge")(d.Store.Purge(d.ctx, limit))
	}
	return []testCase{
		{name: "J15_EachStateForItsTime", run: func(d *database) {
			list := d.enqueue(drafts(3)...)
			w := d.hire()
			for i, to := range []job.State{job.Done, job.Dead, job.Cancelled} { // 2 h, 4 h, 6 h
				w.end(w.take(), to, func(e *job.End) { e.Logs = []job.LogLine{{Time: d.now(), Run: 1, Text: to.String()}} })
				equal(d, "state", d.get(list[i]).State, to)
			}
			live := d.one()
			for i := range 3 {
				d.advance(time.Hour)
				equal(d, "purged before its time", sweep(d, 100), 0)
				d.advance(time.Hour)
				w.beat()
				if sweep(d, 100) == 0 {
					d.Errorf("job %d is past its time and was not purged", i)
				}
				d.gone("purged", list[i])
				equal(d, "logs", len(must[[]job.LogLine](d, "logs")(d.Store.Logs(d.ctx, list[i], 0, 10))), 0)
				equal(d, "jobs", d.count(), 3-i)
			}
			equal(d, "state", d.get(live).State, job.Waiting)
		}},
		{name: "J15_BoundedAndRepeatable", run: func(d *database) {
			d.enqueue(drafts(10)...)
			w := d.hire()
			for _, j := range w.claim(10) {
				w.end(j, job.Done)
			}
			d.advance(3 * time.Hour)
			for i, left := range []int{6, 2, 0} {
				if n := sweep(d, 4); n == 0 || n > 4 {
					d.Errorf("purge %d removed %d rows, want 1..4", i, n)
				}
				equal(d, "left", d.count(), left)
			}
			equal(d, "purged at the end", sweep(d, 4), 0)
		}},
		{name: "J15_ARetriedJobIsNotPurged", run: func(d *database) {
			id := d.one()
			w := d.hire()
			w.end(w.take(), job.Dead)
			d.retry(id)
			d.advance(100 * time.Hour)
			sweep(d, 100)
			equal(d, "state", d.get(id).State, job.Waiting)
		}},
		{name: "J12_LostWorkersThatHoldNothingLeaveTheRegistry", run: func(d *database) {
			idle, busy := d.hire(), d.hire()
			d.one()
			held := busy.take()
			d.lose(idle)
			d.abandoned = true
			d.advance(1000 * time.Hour)
			sweep(d, 100)
			names := func() map[job.WorkerID]bool {
				m := map[job.WorkerID]bool{}
				for _, info := range must[[]store.WorkerInfo](d, "registry")(d.Store.Registry(d.ctx)) {
					m[info.ID] = true
				}
				return m
			}
			if names()[idle.id] || !names()[busy.id] {
				d.Errorf("registry %v, want worker %d gone and worker %d, which holds a run, still there", names(), idle.id, busy.id)
			}
			equal(d, "state", d.get(held.ID).State, job.Running)
			d.rescue()
			sweep(d, 100)
			if names()[busy.id] {
				d.Errorf("worker %d holds nothing any more and is still there", busy.id)
			}
		}},
		{name: "NothingToDo", run: func(d *database) {
			d.one()
			d.hire().take()
			equal(d, "purged", sweep(d, 100), 0)
		}},
	}
}
