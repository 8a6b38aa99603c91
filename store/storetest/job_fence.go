package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// jobFence: the run number proves ownership; with any other run, worker or job
// a write changes nothing.
func jobFence() []testCase {
	// refuses checks that an end is stale and leaves no trace.
	refuses := func(d *database, w job.WorkerID, e job.End) {
		d.Helper()
		before := must[[]job.Job](d, "get")(d.Store.Get(d.ctx, []job.ID{e.ID}))
		e.Result, e.Progress = []byte("stale"), &job.Progress{Done: 99}
		e.Logs = []job.LogLine{{Time: d.now(), Run: e.Run, Text: "stale"}}
		failed("stale")(&e)
		equal(d, "verdict", must[[]job.Verdict](d, "finish")(d.Store.Finish(d.ctx, w, []job.End{e})), []job.Verdict{job.Stale})
		equal(d, "job after a stale finish", must[[]job.Job](d, "get")(d.Store.Get(d.ctx, []job.ID{e.ID})), before)
		equal(d, "logs after a stale finish", must[[]job.LogLine](d, "logs")(d.Store.Logs(d.ctx, e.ID, 0, 10)), nil)
	}
	every := []job.State{job.Waiting, job.Suspended, job.Done, job.Dead, job.Cancelled}
	return []testCase{
		{name: "P2_StaleRunChangesNothing", run: func(d *database) {
			d.one()
			w := d.hire()
			old := w.take()
			w.end(old, job.Waiting)
			held := w.take()
			for _, to := range every {
				refuses(d, w.id, ending(old, to))
			}
			w.end(held, job.Done)
		}},
		{name: "P2_FutureRunChangesNothing", run: func(d *database) {
			d.one()
			w := d.hire()
			held := w.take()
			for _, run := range []int64{0, -1, held.Run + 1} {
				e := ending(held, job.Done)
				e.Run = run
				refuses(d, w.id, e)
			}
		}},
		{name: "P2_AnotherWorkersRunChangesNothing", run: func(d *database) {
			d.one()
			held := d.hire().take()
			refuses(d, d.hire().id, ending(held, job.Done))
			refuses(d, 0, ending(held, job.Done))
		}},
		{name: "P2_FinishedTwiceCountsOnce", run: func(d *database) {
			for _, to := range every {
				d.one()
				w := d.hire()
				held := w.take()
				w.end(held, to)
				refuses(d, w.id, ending(held, job.Done))
				refuses(d, w.id, ending(held, job.Waiting))
				d.delete(held.ID)
			}
		}},
		{name: "P2_FinishedTwiceInOneCallCountsOnce", run: func(d *database) {
			d.one()
			w := d.hire()
			held := w.take()
			equal(d, "verdicts", w.finish(ending(held, job.Waiting, failed("a")), ending(held, job.Done), ending(held, job.Waiting, failed("b"))),
				[]job.Verdict{job.Applied, job.Stale, job.Stale})
			got := d.get(held.ID)
			equal(d, "state and used", [2]int{int(got.State), got.Used}, [2]int{int(job.Waiting), 1})
		}},
		{name: "P2_UnknownJobIsStale", run: func(d *database) {
			w := d.hire()
			equal(d, "verdict", w.finish(job.End{ID: job.NewID(), Run: 1, To: job.Done}), []job.Verdict{job.Stale})
			equal(d, "jobs", d.count(), 0)
		}},
		{name: "P9_LostLeaseCannotOverwriteTheNewOwner", run: func(d *database) {
			d.one()
			w := d.hire()
			lost := w.take()
			d.lose(w)
			equal(d, "rescued", d.rescue(), store.RescueReply{Waiting: 1})
			for _, to := range every {
				e := ending(lost, to)
				equal(d, "verdict", must[[]job.Verdict](d, "finish")(d.Store.Finish(d.ctx, w.id, []job.End{e})), []job.Verdict{job.Stale})
			}
			v := d.hire()
			held := v.take()
			equal(d, "run", held.Run, lost.Run+1)
			refuses(d, w.id, ending(lost, job.Done))
			v.end(held, job.Dead)
			refuses(d, w.id, ending(lost, job.Done))
			equal(d, "state", d.get(lost.ID).State, job.Dead)
		}},
		{name: "P2_RunNeverDecreases", run: func(d *database) {
			id := d.one()
			w := d.hire()
			run := int64(0)
			step := func(what string) store.LeasedJob {
				d.Helper()
				got := w.take()
				if got.Run <= run {
					d.Fatalf("after %s the run is %d, and it was %d before", what, got.Run, run)
				}
				run = got.Run
				return got
			}
			w.end(step("enqueue"), job.Dead)
			d.retry(id)
			w.end(step("retry of a dead job"), job.Waiting, func(e *job.End) { e.Delay = time.Hour })
			d.cancel(id)
			d.retry(id)
			w.end(step("retry of a cancelled job"), job.Suspended, parkedFor("x"))
			d.retry(id)
			step("retry of a parked job")
			d.lose(w)
			d.rescue()
			w = d.hire()
			w.end(step("rescue"), job.Done)
		}},
		{name: "P2_ARetriedJobRefusesItsOldRun", run: func(d *database) {
			d.one()
			w := d.hire()
			old := w.take()
			w.end(old, job.Dead)
			d.retry(old.ID)
			equal(d, "verdict", w.finish(ending(old, job.Done)), []job.Verdict{job.Stale})
			w.take()
			equal(d, "verdict", w.finish(ending(old, job.Done)), []job.Verdict{job.Stale})
			equal(d, "state", d.get(old.ID).State, job.Running)
		}},
	}
}
