package storetest

import (
	"errors"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// pause begins or ends a pause.
func (d *database) pause(p store.Pause, paused bool) {
	d.Helper()
	if err := d.Store.SetPaused(d.ctx, p, paused, store.Operator{}); err != nil {
		d.Fatalf("set paused: %v", err)
	}
}

func pause() []testCase {
	set := func(d *database, queue string, paused bool) {
		d.Helper()
		d.pause(store.OfQueue(queue), paused)
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
		{name: "J30_APauseSaysWhoWhenAndWhy", run: func(d *database) {
			d.hire()
			id := d.one()
			before := d.now()
			for _, p := range []store.Pause{{Scope: store.PauseKind, Name: kind}, store.OfQueue(queue), {Scope: store.PauseAll}} {
				for _, op := range []store.Operator{{Name: "ann", Note: "disk full"}, {Name: "bob"}} { // the second changes nothing
					if err := d.Store.SetPaused(d.ctx, p, true, op); err != nil {
						d.Fatal(err)
					}
				}
				s := must[job.Situation](d, "situation")(store.SituationOf(d.ctx, d.Store, id))
				if s.Pause == nil {
					d.Fatalf("pause of %s: the situation does not say so", p.Scope)
				}
				equal(d, "pause", [4]any{s.Pause.Scope, s.Pause.Name, s.Pause.By, s.Pause.Note}, [4]any{p.Scope, p.Name, "ann", "disk full"})
				within(d, "since", s.Pause.Since, before, d.now())
				equal(d, "code", job.Explain(s).Code, map[store.PauseScope]job.WhyCode{
					store.PauseKind: job.WhyKindPaused, store.PauseQueue: job.WhyPaused, store.PauseAll: job.WhyFrozen,
				}[p.Scope])
			}
			r := must[store.SettingsReply](d, "settings")(d.Store.Settings(d.ctx))
			equal(d, "pauses", len(r.Pauses), 3)
		}},
		{name: "J30_WhatIsFrozenGivesNothingOut", run: func(d *database) {
			freeze := func(frozen bool) {
				d.Helper()
				if err := d.Store.SetPaused(d.ctx, store.Pause{Scope: store.PauseAll}, frozen, store.Operator{Name: "ann"}); err != nil {
					d.Fatal(err)
				}
			}
			w := d.hire(queue, "b")
			both := []store.QueueClaim{{Queue: queue, Limit: 5, Start: 5}, {Queue: "b", Limit: 5, Start: 5, Aging: time.Hour}}
			list := []job.ID{d.one(), d.one(onQueue("b"))}
			freeze(true)
			for range 3 {
				equal(d, "claimed", len(w.ask(both...).Jobs), 0)
			}
			freeze(false)
			equal(d, "claimed", ids(w.ask(both...).Jobs), list)
		}},
		{name: "J30_APausedKindIsForProcessesToLeave", run: func(d *database) {
			w := d.hire()
			id := d.one()
			if err := d.Store.SetPaused(d.ctx, store.Pause{Scope: store.PauseKind, Name: kind}, true, store.Operator{}); err != nil {
				d.Fatal(err)
			}
			equal(d, "claimed", ids(w.claim(1)), []job.ID{id})
		}},
		{name: "J30_WhatCannotBePausedIsRefused", run: func(d *database) {
			for _, p := range []store.Pause{{}, {Scope: 9, Name: "x"}, {Scope: store.PauseQueue}, {Scope: store.PauseKind, Name: "a b"}, {Scope: store.PauseAll, Name: "x"}} {
				if err := d.Store.SetPaused(d.ctx, p, true, store.Operator{}); !errors.Is(err, job.ErrInvalid) {
					d.Errorf("pause %+v: %v, want ErrInvalid", p, err)
				}
			}
		}},
		{name: "J30_EveryScopeHasItsAction", run: func(d *database) {
			for _, p := range []store.Pause{{Scope: store.PauseKind, Name: "k"}, {Scope: store.PauseAll}} {
				for _, paused := range []bool{true, false} {
					if err := d.Store.SetPaused(d.ctx, p, paused, store.Operator{Name: "ann"}); err != nil {
						d.Fatal(err)
					}
				}
			}
			var got [][2]string
			for _, e := range d.audit(store.AuditFilter{}, 100) {
				got = append(got, [2]string{e.Action, e.Target})
			}
			equal(d, "entries, the newest first", got, [][2]string{{"unfreeze", "*"}, {"freeze", "*"}, {"resume kind", "k"}, {"pause kind", "k"}})
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
