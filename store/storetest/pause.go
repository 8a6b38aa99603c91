package storetest

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func pause() []testCase {
	set := func(d *database, queue string, paused bool) {
		d.Helper()
		if err := d.Store.SetPaused(d.ctx, store.OfQueue(queue), paused, store.Operator{}); err != nil {
			d.Fatalf("set paused: %v", err)
		}
	}
	return []testCase{
		{name: "J30_NothingIsClaimedFromAPausedQueue", run: func(d *database) {
			w := d.hire(queue, "b")
			set(d, queue, true)
			held, free := d.one(), d.one(onQueue("b"))
			both := []store.QueueClaim{{Queue: queue, Limit: 5, Start: 5}, {Queue: "b", Limit: 5, Start: 5}}
			equal(d, "claimed", ids(w.ask(both...).Jobs), []job.ID{free})
			set(d, queue, true)
			equal(d, "claimed", len(w.ask(both...).Jobs), 0)
			set(d, queue, false)
			equal(d, "claimed", ids(w.ask(both...).Jobs), []job.ID{held})
		}},
		{name: "J10_RunningJobsGoOn", run: func(d *database) {
			id := d.one()
			w := d.hire()
			held := w.take()
			set(d, queue, true)
			equal(d, "cancels", len(w.beat().Cancels), 0)
			w.end(held, job.Waiting, failed("x"))
			equal(d, "claimed", len(w.claim(1)), 0)
			set(d, queue, false)
			w.end(w.take(), job.Done)
			equal(d, "state", d.get(id).State, job.Done)
		}},
		{name: "P5_TheSituationSaysSo", run: func(d *database) {
			d.hire()
			id := d.one()
			set(d, queue, true)
			s := must[job.Situation](d, "situation")(store.SituationOf(d.ctx, d.Store, id))
			equal(d, "paused", s.Pause != nil, true)
			set(d, queue, false)
			s = must[job.Situation](d, "situation")(store.SituationOf(d.ctx, d.Store, id))
			equal(d, "paused", s.Pause != nil, false)
		}},
		{name: "QueueWithoutJobs", run: func(d *database) {
			set(d, "never.seen", false)
			set(d, "never.seen", true)
			d.one(onQueue("never.seen"))
			w := d.hire("never.seen")
			equal(d, "claimed", len(w.ask(store.QueueClaim{Queue: "never.seen", Limit: 1, Start: 1}).Jobs), 0)
		}},
		{name: "J30_Audited", run: func(d *database) {
			for _, paused := range []bool{true, false} {
				if err := d.Store.SetPaused(d.ctx, store.OfQueue(queue), paused, store.Operator{Name: "ann", Note: "n"}); err != nil {
					d.Fatal(err)
				}
			}
			var got [][4]string
			for _, e := range d.audit(store.AuditFilter{}, 100) {
				got = append(got, [4]string{e.Action, e.Target, e.By, e.Note})
			}
			equal(d, "entries, the newest first", got, [][4]string{{"resume", queue, "ann", "n"}, {"pause", queue, "ann", "n"}})
		}},
	}
}
