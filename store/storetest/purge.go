package storetest

import (
	"fmt"
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
		{name: "J15_ManyLogLinesGoOverSeveralRounds", run: func(d *database) {
			// One job before, one after, and between them one that has said a lot.
			const limit, said = 4, 3*4*store.PurgeLines - 7
			list := d.enqueue(drafts(3)...)
			w := d.hire()
			for i, n := range []int{5, said, 1} {
				w.end(w.take(), job.Done, func(e *job.End) { e.Logs = lines(d.now(), n) })
				equal(d, "state", d.get(list[i]).State, job.Done)
				d.advance(time.Second)
			}
			left := func(id job.ID) int {
				d.Helper()
				return len(must[[]job.LogLine](d, "logs")(d.Store.Logs(d.ctx, id, 0, 1000)))
			}
			d.advance(3 * time.Hour)
			rounds, before := 0, 5+said+1
			for ; d.count() > 0; rounds++ {
				n := sweep(d, limit)
				now := left(list[0]) + left(list[1]) + left(list[2])
				if before-now > limit*store.PurgeLines {
					d.Fatalf("one purge removed %d lines, want at most %d", before-now, limit*store.PurgeLines)
				}
				if before == now && n == 0 {
					d.Fatalf("%d jobs with %d lines are past their time, and a purge removed nothing", d.count(), now)
				}
				// Its lines before its row, and never a row that miscounts them.
				if now > 0 && left(list[1]) > 0 {
					equal(d, "state", d.get(list[1]).State, job.Done)
				}
				if d.count() > 0 && n < limit {
					d.Errorf("purge answered %d, want %d or more while there is more to remove", n, limit)
				}
				d.inspect()
				before = now
			}
			equal(d, "lines left", before, 0)
			if rounds < 3 {
				d.Errorf("%d lines went in %d rounds", said, rounds)
			}
			equal(d, "purged at the end", sweep(d, limit), 0)
		}},
		{name: "J15_AHalfPurgedJobCanBeRetried", run: func(d *database) {
			const limit = 1
			id := d.one()
			w := d.hire()
			w.end(w.take(), job.Dead, func(e *job.End) { e.Logs = lines(d.now(), 2*store.PurgeLines+3) })
			d.advance(100 * time.Hour)
			w.beat()
			sweep(d, limit)
			rest := must[[]job.LogLine](d, "logs")(d.Store.Logs(d.ctx, id, 0, 1000))
			equal(d, "lines left", len(rest), store.PurgeLines+3)
			d.retry(id)
			w.end(w.take(), job.Dead, func(e *job.End) { e.Logs = []job.LogLine{{Time: d.now(), Run: 2, Text: "again"}} })
			all := must[[]job.LogLine](d, "logs")(d.Store.Logs(d.ctx, id, 0, 1000))
			if len(all) != len(rest)+1 || all[len(rest)].Text != "again" {
				d.Errorf("%d lines, the last %+v; want %d and the new one", len(all), all[len(all)-1], len(rest))
			}
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

// lines makes n log lines.
func lines(at time.Time, n int) []job.LogLine {
	list := make([]job.LogLine, n)
	for i := range list {
		list[i] = job.LogLine{Time: at, Run: 1, Text: fmt.Sprint("line ", i+1)}
	}
	return list
}
