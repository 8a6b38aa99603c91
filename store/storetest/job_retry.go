package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func jobRetry() []testCase {
	revives := func(name string, reach func(d *database, id job.ID)) testCase {
		return testCase{name: "J9_FreshAttemptsFor" + name, run: func(d *database) {
			id := d.one(func(d *job.Draft) { d.Attempts = 2 })
			w := d.hire()
			w.end(w.take(), job.Waiting, failed("first"))
			reach(d, id)
			before := d.get(id)
			from := d.now()
			equal(d, "retry", d.retry(id), []store.Change{store.Changed})
			got := d.get(id)
			within(d, "due", got.Due, from, d.now())
			if !got.Finished.IsZero() || !got.Expires.IsZero() {
				d.Errorf("a live job has finished at %v and expires at %v", got.Finished, got.Expires)
			}
			equal(d, "state", got.State, job.Waiting)
			equal(d, "used", got.Used, 0)
			equal(d, "wait", got.Wait, job.NoWait)
			equal(d, "asked to cancel", got.CancelAsked, false)
			equal(d, "failures", got.Failures, before.Failures)
			equal(d, "created", got.Created, before.Created)
			equal(d, "jobs", d.count(), 1)
			again := w.take()
			equal(d, "attempt", again.Attempt(), 1)
			equal(d, "attempts", again.MaxAttempts, 2)
			w.end(again, job.Done)
		}}
	}
	run := func(to job.State) func(d *database, id job.ID) {
		return func(d *database, id job.ID) {
			w := d.hire()
			w.end(w.take(), to, failed("second"), func(e *job.End) {
				if e.Reason = "or whatever"; to == job.Suspended {
					e.Wait = job.Parked
				}
			})
		}
	}
	return []testCase{
		revives("Dead", run(job.Dead)),
		revives("Cancelled", run(job.Cancelled)),
		revives("Parked", run(job.Suspended)),
		revives("CancelledWhileItWaited", func(d *database, id job.ID) { d.cancel(id) }),
		revives("CancelledWhileItRan", func(d *database, id job.ID) {
			w := d.hire()
			held := w.begin()
			d.cancel(id)
			w.end(held, job.Waiting)
		}),
		{name: "J9_FreshLossesToo", settings: store.Settings{MaxLost: 1, Keep: func(string) job.Keep { return keep }}, run: func(d *database) {
			id := d.one()
			w := d.hire()
			w.begin()
			d.lose(w)
			equal(d, "rescued", d.rescue(), store.RescueReply{Dead: 1})
			equal(d, "retry", d.retry(id), []store.Change{store.Changed})
			equal(d, "lost", d.get(id).Lost, 0)
		}},
		{name: "ScheduledIsDueAtOnce", run: func(d *database) {
			id := d.one(in(time.Hour))
			w := d.hire()
			equal(d, "claimed", len(w.claim(1)), 0)
			from := d.now()
			equal(d, "retry", d.retry(id), []store.Change{store.Changed})
			within(d, "due", d.get(id).Due, from, d.now())
			equal(d, "claimed", ids(w.claim(1)), []job.ID{id})
		}},
		{name: "J31_OnlyParkedOnesAreFreed", run: func(d *database) {
			d.enqueue(drafts(2)...)
			w := d.hire()
			jobs := w.claim(2)
			w.end(jobs[0], job.Suspended, func(e *job.End) { e.Wait, e.Reason = 7, "parked by its text only" })
			w.end(jobs[1], job.Suspended, parkedFor("by its code"))
			equal(d, "retry", d.retry(jobs[0].ID, jobs[1].ID), []store.Change{store.Active, store.Changed})
			equal(d, "states", d.states(jobs[0].ID, jobs[1].ID), []job.State{job.Suspended, job.Waiting})
		}},
		{name: "DoneStaysDone", run: func(d *database) {
			id := d.one()
			w := d.hire()
			w.end(w.take(), job.Done)
			before := d.get(id)
			equal(d, "retry", d.retry(id), []store.Change{store.Ended})
			equal(d, "job", d.get(id), before)
		}},
		{name: "ReadyOrRunningIsActive", run: func(d *database) {
			running := d.one()
			d.hire().take()
			ready := d.one()
			before := []job.Job{d.get(running), d.get(ready)}
			equal(d, "retry", d.retry(running, ready), []store.Change{store.Active, store.Active})
			equal(d, "jobs", []job.Job{d.get(running), d.get(ready)}, before)
		}},
		{name: "TwiceInOneCall", run: func(d *database) {
			id := d.one()
			d.cancel(id)
			equal(d, "retry", d.retry(id, id), []store.Change{store.Changed, store.Active})
			equal(d, "jobs", d.count(), 1)
		}},
		{name: "UnknownIDs", run: func(d *database) {
			equal(d, "retry", d.retry(job.NewID()), []store.Change{store.NotFound})
			equal(d, "jobs", d.count(), 0)
		}},
		{name: "EmptySlice", run: func(d *database) {
			equal(d, "retry", d.retry(), nil)
		}},
		{name: "ResultAndReasonAreCleared", run: func(d *database) {
			id := d.one()
			w := d.hire()
			w.end(w.take(), job.Dead, func(e *job.End) { e.Reason, e.Result = "because", []byte("partial") })
			d.retry(id)
			got := d.get(id)
			equal(d, "reason", got.Reason, "")
			equal(d, "result", len(got.Result), 0)
		}},
		{name: "J30_AuditedInTheSameCommit", run: func(d *database) {
			dead, ready := d.one(), d.one()
			w := d.hire()
			w.end(w.take(), job.Dead)
			from := d.now()
			must[[]store.Change](d, "retry")(d.Store.Retry(d.ctx, []job.ID{dead, ready, job.NewID()}, store.Operator{Name: "ann", Note: "n"}))
			audited(d, from, "retry", "ann", "n", dead)
		}},
		{name: "ManyIDs", run: func(d *database) {
			list := d.enqueue(drafts(manyRows)...)
			d.cancel(list...)
			for i, c := range d.retry(list...) {
				if c != store.Changed {
					d.Fatalf("answer %d is %d", i, c)
				}
			}
			equal(d, "waiting", d.count(job.Waiting), manyRows)
			equal(d, "jobs", d.count(), manyRows)
		}},
	}
}
