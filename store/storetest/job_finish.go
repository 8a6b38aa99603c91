package storetest

import (
	"bytes"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func jobFinish() []testCase {
	final := func(to job.State) testCase {
		return testCase{name: "FinalIs_" + to.String(), run: func(d *database) {
			id := d.one(once("x", 0))
			w := d.hire()
			leased := w.take()
			from := d.now()
			w.end(leased, to, func(e *job.End) { e.Result, e.Reason = []byte("result"), "because" })
			got := d.get(id)
			within(d, "finished", got.Finished, from, d.now())
			equal(d, "kept for", got.Expires.Sub(got.Finished), keep.For(to))
			want := leased.Job
			want.State, want.Worker, want.Result, want.Reason = to, w.id, []byte("result"), "because"
			want.Finished, want.Expires = got.Finished, got.Expires
			equal(d, "job", got, want)
			equal(d, "claimed", len(w.claim(1)), 0)
			equal(d, "jobs", d.count(), 1)
		}}
	}
	return []testCase{
		final(job.Done), final(job.Dead), final(job.Cancelled),
		{name: "AnEndedJobNamesTheWorkerThatRanIt", run: func(d *database) {
			w, other := d.hire(), d.hire()
			waited := d.one()
			w.end(w.take(), job.Waiting, func(e *job.End) { e.Delay = time.Hour })
			equal(d, "changes", d.cancel(waited), []store.Change{store.Changed})
			d.one(once("x", 0)) // ends in more than one statement, on some stores
			unique := w.take()
			w.end(unique, job.Done)
			d.one()
			lost := w.take()
			for n := 1; ; n++ { // until its run is the last that may end with its worker
				w.beat(store.RunRef{ID: lost.ID, Run: int64(n)}) // its handler has begun
				d.lose(w, other)
				d.rescue()
				if n == job.MaxLost {
					break
				}
				w = d.hire()
				w.take()
			}
			for what, want := range map[string]struct {
				id     job.ID
				state  job.State
				worker job.WorkerID
			}{
				"cancelled while it waited": {waited, job.Cancelled, 0},
				"with a unique key":         {unique.ID, job.Done, unique.Worker},
				"lost too often":            {lost.ID, job.Dead, w.id},
			} {
				got := d.get(want.id)
				equal(d, "state and worker of one "+what, [2]any{got.State, got.Worker}, [2]any{want.state, want.worker})
				listed := must[store.Listed](d, "list")(d.Store.List(d.ctx, store.Filter{States: []job.State{want.state}}, store.Page{Limit: 10}))
				equal(d, "worker in a list", listed.Jobs[0].Worker, want.worker)
			}
			equal(d, "changes", d.retry(lost.ID), []store.Change{store.Changed})
			equal(d, "worker of one that waits again", d.get(lost.ID).Worker, 0)
		}},
		{name: "J7_RetryWaitsAndBurnsAnAttempt", run: func(d *database) {
			d.one()
			w := d.hire()
			leased := w.take()
			from := d.now()
			w.end(leased, job.Waiting, func(e *job.End) { e.Delay = time.Hour }, failed("boom 7"))
			to := d.now()
			got := d.get(leased.ID)
			equal(d, "state", got.State, job.Waiting)
			equal(d, "used", got.Used, 1)
			within(d, "due", got.Due, from.Add(time.Hour), to.Add(time.Hour))
			equal(d, "worker", got.Worker, 0)
			if len(got.Failures.List()) != 1 {
				d.Fatalf("%d failures, want 1", len(got.Failures.List()))
			}
			f := got.Failures.List()[0]
			within(d, "time of the failure", f.Time, from, to)
			equal(d, "failure", [3]any{f.Message, f.Fingerprint, f.Run}, [3]any{"boom 7", job.Fingerprint("boom 8"), int64(1)})
			equal(d, "claimed early", len(w.claim(1)), 0)
			d.advance(2 * time.Hour)
			again := w.take()
			equal(d, "run", again.Run, 2)
			equal(d, "attempt", again.Attempt(), 2)
		}},
		{name: "J9_SnoozeBurnsNothing", run: func(d *database) {
			d.one()
			w := d.hire()
			for range 7 {
				w.end(w.take(), job.Waiting, func(e *job.End) { e.Delay, e.Snooze = time.Hour, true })
				d.advance(2 * time.Hour)
			}
			got := w.take()
			equal(d, "used, snoozes, run", [3]int64{int64(got.Used), int64(got.Snoozes), got.Run}, [3]int64{0, 7, 8})
		}},
		{name: "J9_SnoozeKeepsItsReasonWhileItWaits", run: func(d *database) {
			id := d.one()
			w := d.hire()
			w.end(w.take(), job.Waiting, func(e *job.End) { e.Delay, e.Snooze, e.Reason = time.Hour, true, "waits for the bank" })
			equal(d, "reason", d.get(id).Reason, "waits for the bank")
			d.advance(2 * time.Hour)
			w.end(w.take(), job.Waiting, func(e *job.End) { e.Delay, e.Snooze = time.Hour, true })
			equal(d, "reason of the next snooze", d.get(id).Reason, "")
		}},
		{name: "J9_SnoozeKeepsItsTime", run: func(d *database) {
			id := d.one()
			w := d.hire()
			last := func() time.Time {
				d.Helper()
				if r := d.get(id).Rare; r != nil {
					return r.Snoozed
				}
				return time.Time{}
			}
			snooze := func(e *job.End) { e.Delay, e.Snooze = time.Minute, true }
			w.end(w.take(), job.Waiting)
			equal(d, "snoozed before any snooze", last(), time.Time{})
			for range 2 {
				from := d.now()
				w.end(w.take(), job.Waiting, snooze)
				within(d, "snoozed", last(), from, d.now())
				d.advance(time.Hour)
			}
			before := last()
			w.end(w.take(), job.Waiting, failed("boom"))
			equal(d, "snoozed after a failure", last(), before)
			w.end(w.take(), job.Dead)
			equal(d, "snoozed of a dead one", last(), before)
			equal(d, "retried", d.retry(id), []store.Change{store.Changed})
			equal(d, "snoozed after a retry", last(), before)
			held := w.begin()
			equal(d, "asked to cancel", d.cancel(id), []store.Change{store.Asked})
			from := d.now()
			w.end(held, job.Waiting, snooze)
			got := d.get(id)
			equal(d, "state and snoozes", [2]any{got.State, got.Snoozes}, [2]any{job.Cancelled, 3})
			within(d, "snoozed with its last run", last(), from, d.now())
		}},
		{name: "P7_GivenBackIsReadyAtOnce", run: func(d *database) {
			d.one()
			w := d.hire()
			leased := w.take()
			from := d.now()
			w.end(leased, job.Waiting)
			got := d.get(leased.ID)
			within(d, "due", got.Due, from, d.now())
			equal(d, "used, snoozes, lost, rescues", [4]int{got.Used, got.Snoozes, got.Lost, got.Rescues}, [4]int{})
			equal(d, "run", w.take().Run, 2)
		}},
		{name: "J31_ParkedIsSuspendedWithItsReason", run: func(d *database) {
			d.one()
			w := d.hire()
			leased := w.take()
			w.end(leased, job.Suspended, parkedFor("bad args"))
			got := d.get(leased.ID)
			equal(d, "state", got.State, job.Suspended)
			equal(d, "wait", got.Wait, job.Parked)
			equal(d, "reason", got.Reason, "bad args")
			equal(d, "used", got.Used, 0)
			equal(d, "claimed", len(w.claim(1)), 0)
		}},
		{name: "P9_CancelAskedDoesNotGoBackToWaiting", run: func(d *database) {
			for _, to := range []job.State{job.Waiting, job.Suspended} {
				id := d.one()
				w := d.hire()
				leased := w.take()
				equal(d, "cancel", d.cancel(id), []store.Change{store.Asked})
				w.end(leased, to)
				got := d.get(id)
				equal(d, "state after "+to.String(), got.State, job.Cancelled)
				equal(d, "kept for", got.Expires.Sub(got.Finished), keep.Cancelled)
			}
		}},
		{name: "P9_DoneBeatsCancelAsked", run: func(d *database) {
			for _, to := range []job.State{job.Done, job.Dead} {
				id := d.one()
				w := d.hire()
				leased := w.take()
				equal(d, "cancel", d.cancel(id), []store.Change{store.Asked})
				w.end(leased, to)
				equal(d, "state", d.get(id).State, to)
			}
		}},
		{name: "J15_KeepNoneLeavesNoJob", run: func(d *database) {
			id := d.one()
			w := d.hire()
			leased := w.take()
			line := job.LogLine{Time: d.now(), Run: leased.Run, Text: "x"}
			w.end(leased, job.Done, func(e *job.End) { e.Keep, e.Logs = keepNone, []job.LogLine{line} })
			d.gone("not kept", id)
			equal(d, "jobs", d.count(), 0)
			equal(d, "logs", len(must[[]job.LogLine](d, "logs")(d.Store.Logs(d.ctx, id, 0, 10))), 0)
		}},
		{name: "J15_KeepIsPerState", run: func(d *database) {
			onlyDead := job.Keep{Done: -1, Dead: time.Hour, Cancelled: -1}
			id := d.one()
			w := d.hire()
			w.end(w.take(), job.Dead, func(e *job.End) { e.Keep = onlyDead })
			equal(d, "state", d.get(id).State, job.Dead)
		}},
		{name: "J7_Last32FailuresAreKept", run: func(d *database) {
			id := d.one()
			w := d.hire()
			for i := range 40 {
				w.end(w.take(), job.Waiting, failed(fmt.Sprintf("failure %d", i)))
			}
			got := d.get(id)
			equal(d, "used", got.Used, 40)
			var messages, want []string
			for i, f := range got.Failures.List() {
				messages = append(messages, f.Message)
				want = append(want, fmt.Sprintf("failure %d", 8+i))
			}
			equal(d, "failures", len(got.Failures.List()), job.MaxFailures)
			equal(d, "messages", messages, want)
		}},
		{name: "J28_ResultsAreExactBytes", run: func(d *database) {
			w := d.hire()
			for _, result := range [][]byte{nil, {}, []byte("null"), {0, 1, 0xff}, bytes.Repeat([]byte{7}, 1<<20)} {
				id := d.one()
				w.end(w.take(), job.Done, func(e *job.End) { e.Result = result })
				if got := d.get(id).Result; !bytes.Equal(got, result) {
					d.Errorf("a result of %d bytes came back as %d bytes", len(result), len(got))
				}
			}
		}},
		{name: "J28_ProgressAndLogsRideInTheSameCommit", run: func(d *database) {
			id := d.one()
			w := d.hire()
			leased := w.take()
			lines := []job.LogLine{{Time: d.now(), Run: 1, Level: 4, Text: "one"}, {Time: d.now(), Run: 1, Level: -4, Text: "two\x00"}}
			w.end(leased, job.Done, func(e *job.End) {
				e.Progress, e.Logs = &job.Progress{Done: 3, Total: 4, Note: "nearly"}, lines
			})
			equal(d, "progress", d.get(id).Progress, job.Progress{Done: 3, Total: 4, Note: "nearly"})
			equal(d, "logs", must[[]job.LogLine](d, "logs")(d.Store.Logs(d.ctx, id, 0, 10)), lines)
		}},
		{name: "VerdictsInOrder", run: func(d *database) {
			d.enqueue(drafts(3)...)
			w := d.hire()
			got := w.claim(3)
			stale := ending(got[1], job.Done)
			stale.Run++
			equal(d, "verdicts", w.finish(ending(got[2], job.Done), stale, ending(got[0], job.Dead)),
				[]job.Verdict{job.Applied, job.Stale, job.Applied})
			equal(d, "states", d.states(got[0].ID, got[1].ID, got[2].ID), []job.State{job.Dead, job.Running, job.Done})
		}},
		{name: "P2_EndOfAnotherRunBesideIt", run: func(d *database) {
			d.enqueue(drafts(2)...)
			w := d.hire()
			jobs := w.claim(2)
			stale := ending(jobs[0], job.Dead, func(e *job.End) { e.Run++ })
			equal(d, "verdicts", w.finish(stale, ending(jobs[0], job.Waiting), ending(jobs[1], job.Waiting)),
				[]job.Verdict{job.Stale, job.Applied, job.Applied})
			// They were released at the same moment, so their ids decide.
			equal(d, "claimed again", ids(w.claim(2)), ids(jobs))
		}},
		{name: "EmptySlice", run: func(d *database) {
			equal(d, "verdicts", d.hire().finish(), nil)
		}},
		{name: "ManyEnds", run: func(d *database) {
			d.enqueue(drafts(manyRows)...)
			w := d.hire()
			var ends []job.End
			for i, j := range w.claim(manyRows) {
				ends = append(ends, ending(j, []job.State{job.Done, job.Waiting, job.Dead, job.Suspended}[i%4]))
			}
			for i, v := range w.finish(ends...) {
				if v != job.Applied {
					d.Fatalf("end %d is %s", i, v)
				}
			}
			for _, s := range []job.State{job.Done, job.Waiting, job.Dead, job.Suspended} {
				equal(d, s.String(), d.count(s), manyRows/4)
			}
		}},
	}
}
