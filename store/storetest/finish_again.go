package storetest

import (
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// finishAgain: an end whose answer was lost is sent again. It is applied if it
// was not, and finds out that it was if its own worker ended the run.
func finishAgain() []testCase {
	again := func(e *job.End) { e.Again = true }
	verdict := func(d *database, what string, w *employee, e job.End, want job.Verdict) {
		d.Helper()
		before := must[[]job.Job](d, "get")(d.Store.Get(d.ctx, []job.ID{e.ID}))
		e.Logs = []job.LogLine{{Time: d.now(), Run: e.Run, Text: "again"}}
		equal(d, "verdict on "+what, w.finish(e), []job.Verdict{want})
		equal(d, "job after "+what, must[[]job.Job](d, "get")(d.Store.Get(d.ctx, []job.ID{e.ID})), before)
		equal(d, "lines after "+what, len(must[[]job.LogLine](d, "logs")(d.Store.Logs(d.ctx, e.ID, 0, 10))), 0)
	}
	every := []job.State{job.Waiting, job.Suspended, job.Done, job.Dead, job.Cancelled}
	return []testCase{
		{name: "P2_ARepeatFindsItsOwnEnd", run: func(d *database) {
			for _, k := range []job.Keep{keep, keepNone} {
				for _, to := range every {
					id := d.one()
					w := d.hire()
					held := w.take()
					set := func(e *job.End) { e.Keep = k }
					w.end(held, to, set)
					verdict(d, fmt.Sprintf("a repeat of %s", to), w, ending(held, to, set, again), job.Already)
					verdict(d, fmt.Sprintf("%s without having been sent before", to), w, ending(held, to, set), job.Stale)
					d.delete(id)
				}
			}
		}},
		{name: "P2_ARepeatFindsItsOwnEndBehindALaterRun", run: func(d *database) {
			d.one()
			w, v := d.hire(), d.hire()
			first := w.take()
			w.end(first, job.Waiting)
			second := v.take()
			verdict(d, "a repeat while another runs it", w, ending(first, job.Waiting, again), job.Already)
			v.end(second, job.Done)
			verdict(d, "a repeat after another ended it", w, ending(first, job.Waiting, again), job.Already)
		}},
		{name: "P3_ARepeatFindsTheEndOfItsTransaction", run: func(d *database) {
			d.one()
			w := d.hire()
			held := w.take()
			w.end(held, job.Done) // as the handler's transaction would
			verdict(d, "a repeat that wants something else", w, ending(held, job.Waiting, again, failed("no answer")), job.Already)
		}},
		{name: "P2_ARepeatOfWhatNeverArrivedIsApplied", run: func(d *database) {
			for _, to := range every {
				id := d.one()
				w := d.hire()
				w.end(w.take(), to, again)
				equal(d, "state", d.get(id).State, to)
				d.delete(id)
			}
		}},
		{name: "P2_ARepeatIsNoKeyToOthersRuns", run: func(d *database) {
			d.one()
			w, v := d.hire(), d.hire()
			held := w.take()
			for _, to := range every {
				later := ending(held, to, again)
				later.Run++
				verdict(d, "another worker's run", v, ending(held, to, again), job.Stale)
				verdict(d, "a run to come", w, later, job.Stale)
			}
		}},
		{name: "P2_ARepeatOfALostRunIsStale", settings: store.Settings{MaxLost: 2, Keep: func(string) job.Keep { return keep }}, run: func(d *database) {
			d.one()
			for _, rescued := range []store.RescueReply{{Waiting: 1}, {Dead: 1}} {
				w := d.hire()
				held := w.take()
				w.beat(ref(held)) // its handler has begun
				d.lose(w)
				equal(d, "rescued", d.rescue(), rescued)
				for _, to := range every {
					verdict(d, "a repeat of a run that was rescued", w, ending(held, to, again), job.Stale)
				}
			}
		}},
		{name: "P2_ARepeatAmongOthers", run: func(d *database) {
			for range 3 {
				d.one()
			}
			w := d.hire()
			jobs := w.claim(3)
			w.end(jobs[0], job.Done)
			w.end(jobs[1], job.Waiting)
			got := w.finish(ending(jobs[0], job.Done, again), ending(jobs[1], job.Done), ending(jobs[2], job.Done, again))
			equal(d, "verdicts", got, []job.Verdict{job.Already, job.Stale, job.Applied})
		}},
	}
}
