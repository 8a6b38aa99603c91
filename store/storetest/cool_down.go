package storetest

import (
	"errors"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func coolDown() []testCase {
	kept := func(d *database) store.CoolDowns {
		d.Helper()
		s, ok := d.Store.(store.CoolDowns)
		if !ok {
			d.Fatal("queues of this store do not cool down")
		}
		return s
	}
	throttle := func(d *database, t job.Throttle) store.CoolDownReply {
		d.Helper()
		return must[store.CoolDownReply](d, "cool down")(kept(d).CoolDown(d.ctx, queue, t))
	}
	asked := func(hint time.Duration) job.Throttle {
		return job.Throttle{Hint: hint, Backoff: &job.BackoffSettings{Off: true}}
	}
	claimed := func(w *employee, limit int) store.ClaimReply {
		w.d.Helper()
		return w.ask(store.QueueClaim{Queue: queue, Limit: limit, Start: limit})
	}
	inARow := func(d *database, id job.ID) int {
		d.Helper()
		j := d.get(id)
		return j.Throttles()
	}
	throttled := func(e *job.End) { e.Throttle, e.Reason = true, "throttled: 429" }
	return []testCase{
		{name: "J8_NothingIsClaimedFromAQueueThatCoolsDown", run: func(d *database) {
			w := d.hire(queue, "b")
			held, free := d.one(), d.one(onQueue("b"))
			from := d.now()
			r := throttle(d, asked(time.Minute))
			equal(d, "began, throttles, left", [3]any{r.Began, r.Throttles, r.Left}, [3]any{true, 1, time.Minute})
			within(d, "until", r.Until, from.Add(time.Minute), d.now().Add(time.Minute))
			for _, aging := range []time.Duration{0, time.Hour, 0, 0} {
				both := []store.QueueClaim{{Queue: queue, Limit: 5, Start: 5, Aging: aging}, {Queue: "b", Limit: 5, Start: 5}}
				got := w.ask(both...)
				equal(d, "claimed", ids(got.Jobs), []job.ID{free})
				w.end(got.Jobs[0], job.Waiting)
				if len(got.Cooling) != 1 || got.Cooling[0].Queue != queue || got.Cooling[0].Left <= 0 || got.Cooling[0].Left > time.Minute {
					d.Fatalf("cooling is %v, want %s for up to a minute", got.Cooling, queue)
				}
			}
			d.advance(time.Minute)
			got := claimed(w, 5)
			equal(d, "claimed when it is over", ids(got.Jobs), []job.ID{held})
			equal(d, "cooling when it is over", len(got.Cooling), 0)
		}},
		{name: "J8_WhatWaitsBehindGatesCoolsDownToo", run: func(d *database) {
			held := d.one(withKey("acme"), by(twoPerKey))
			w := d.under(twoPerKey)
			throttle(d, asked(time.Minute))
			for range 3 {
				got := claimed(w, 5)
				equal(d, "claimed", len(got.Jobs), 0)
				equal(d, "cooling", len(got.Cooling), 1)
			}
			d.advance(time.Minute)
			equal(d, "claimed when it is over", ids(w.soon(5)), []job.ID{held})
		}},
		{name: "J8_SimultaneousThrottlesCountOnce", run: func(d *database) {
			s := kept(d)
			for round := 1; round <= 3; round++ {
				var all sync.WaitGroup
				replies, errs := make([]store.CoolDownReply, 40), make([]error, 40)
				for i := range replies {
					all.Go(func() { replies[i], errs[i] = s.CoolDown(d.ctx, queue, job.Throttle{}) })
				}
				all.Wait()
				began := 0
				for i, r := range replies {
					if errs[i] != nil {
						d.Fatal(errs[i])
					}
					if r.Began {
						began++
					}
					equal(d, "throttles", r.Throttles, round)
					equal(d, "until", r.Until, replies[0].Until)
				}
				equal(d, "that began one", began, 1)
				d.advance(time.Minute) // longer than it lasts
			}
		}},
		{name: "J8_ExponentialOnTheQueuesCounter", run: func(d *database) {
			b := &job.BackoffSettings{Base: 10 * time.Second, Max: time.Minute, Factor: 3}
			for i, want := range []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, time.Minute} {
				r := throttle(d, job.Throttle{Backoff: b})
				equal(d, "throttles and left", [2]any{r.Throttles, r.Left}, [2]any{i + 1, want})
				d.advance(r.Left)
			}
		}},
		{name: "J8_FlatWhereBackoffIsOff", run: func(d *database) {
			for i := range 3 {
				r := throttle(d, asked(0))
				equal(d, "throttles and left", [2]any{r.Throttles, r.Left}, [2]any{i + 1, time.Minute})
				d.advance(r.Left)
			}
		}},
		{name: "J8_TheHintIsHonouredWithinBounds", run: func(d *database) {
			for _, c := range []struct{ hint, want time.Duration }{
				{time.Millisecond, time.Second}, {30 * time.Second, 30 * time.Second}, {24 * time.Hour, time.Hour},
			} {
				r := throttle(d, asked(c.hint))
				equal(d, "left", r.Left, c.want)
				d.advance(r.Left)
			}
			first := throttle(d, asked(10*time.Second))
			longer := throttle(d, asked(time.Minute)) // of a handler that was under way: the service says more
			equal(d, "began, throttles", [2]any{longer.Began, longer.Throttles}, [2]any{false, first.Throttles})
			within(d, "moved end", longer.Until, first.Until.Add(40*time.Second), d.now().Add(time.Minute))
			shorter := throttle(d, asked(time.Second))
			equal(d, "an end that stays", shorter.Until, longer.Until)
		}},
		{name: "J8_TheCounterDecaysAfterAGrace", run: func(d *database) {
			for range 5 {
				d.advance(throttle(d, job.Throttle{}).Left)
			}
			d.advance(2*job.CoolDownGrace + time.Second)
			equal(d, "throttles after two graces", throttle(d, job.Throttle{}).Throttles, 5-2+1)
			d.advance(time.Hour)
			equal(d, "throttles after an hour", throttle(d, job.Throttle{}).Throttles, 1)
		}},
		{name: "J8_SuccessesInFlightDoNotClearIt", run: func(d *database) {
			w := d.hire()
			d.enqueue(drafts(3)...)
			jobs := w.claim(2)
			r := throttle(d, asked(time.Minute))
			w.end(jobs[0], job.Waiting, throttled)
			w.end(jobs[1], job.Done)
			got := claimed(w, 5)
			equal(d, "claimed", len(got.Jobs), 0)
			equal(d, "cooling", len(got.Cooling), 1)
			equal(d, "throttles", throttle(d, job.Throttle{}).Throttles, r.Throttles)
		}},
		{name: "J8_AnOperatorResetsIt", run: func(d *database) {
			w := d.hire()
			id := d.one()
			throttle(d, asked(time.Hour))
			equal(d, "claimed", len(w.claim(1)), 0)
			before := must[store.SettingsReply](d, "settings")(d.Store.Settings(d.ctx)).Revision
			if err := kept(d).ResetCoolDown(d.ctx, queue, store.Operator{Name: "ann", Note: "paid"}); err != nil {
				d.Fatal(err)
			}
			after := must[store.SettingsReply](d, "settings")(d.Store.Settings(d.ctx)).Revision
			equal(d, "the revision rose", after > before, true)
			equal(d, "claimed after it", ids(w.claim(1)), []job.ID{id})
			e := d.audit(store.AuditFilter{}, 100)
			equal(d, "entries", len(e), 1)
			equal(d, "entry", [4]string{e[0].Action, e[0].Target, e[0].By, e[0].Note}, [4]string{"reset cool-down", queue, "ann", "paid"})
			equal(d, "throttles from the start", throttle(d, job.Throttle{}).Throttles, 1)
			if err := kept(d).ResetCoolDown(d.ctx, "never.seen", store.Operator{}); err != nil {
				d.Errorf("reset of a queue that does not cool down: %v", err)
			}
		}},
		{name: "J8_AThrottledRunBurnsNoAttempt", run: func(d *database) {
			id := d.one()
			w := d.hire()
			for n := range 3 {
				from := d.now()
				l := w.take()
				equal(d, "throttles as claimed", l.Throttles(), n)
				w.end(l, job.Waiting, throttled)
				got := d.get(id)
				equal(d, "used, snoozes, throttles", [3]int{got.Used, got.Snoozes, got.Throttles()}, [3]int{0, 0, n + 1})
				equal(d, "reason", got.Reason, "throttled: 429")
				within(d, "throttled", got.Rare.Throttled, from, d.now())
			}
			w.end(w.take(), job.Waiting, func(e *job.End) { e.Snooze = true })
			equal(d, "throttles after a snooze", inARow(d, id), 0)
			w.end(w.take(), job.Waiting, throttled)
			w.end(w.take(), job.Waiting) // given back: it did not get to say anything
			equal(d, "throttles after it was given back", inARow(d, id), 1)
			w.end(w.take(), job.Waiting, failed("boom"))
			equal(d, "throttles after a failure", inARow(d, id), 0)
			w.end(w.take(), job.Waiting, throttled)
			w.end(w.take(), job.Dead)
			equal(d, "throttles of a dead one", inARow(d, id), 1)
			equal(d, "retried", d.retry(id), []store.Change{store.Changed})
			equal(d, "throttles after a retry", inARow(d, id), 0)
			held := w.begin()
			equal(d, "asked to cancel", d.cancel(id), []store.Change{store.Asked})
			w.end(held, job.Waiting, throttled)
			got := d.get(id)
			equal(d, "state and throttles", [2]any{got.State, got.Throttles()}, [2]any{job.Cancelled, 1})
		}},
		{name: "J26_CoolDownUntil", run: func(d *database) {
			d.hire()
			id, other := d.one(), d.one(onQueue("b"))
			r := throttle(d, asked(time.Minute))
			s := must[job.Situation](d, "situation")(store.SituationOf(d.ctx, d.Store, id))
			if s.CoolDown == nil {
				d.Fatal("the situation does not say that the queue cools down")
			}
			equal(d, "cool-down", *s.CoolDown, r.CoolDown)
			why := job.Explain(s)
			equal(d, "code and until", [2]any{why.Code, why.Until}, [2]any{job.WhyCooling, r.Until})
			s = must[job.Situation](d, "situation")(store.SituationOf(d.ctx, d.Store, other))
			equal(d, "of another queue", s.CoolDown == nil, true)
			d.advance(time.Minute)
			s = must[job.Situation](d, "situation")(store.SituationOf(d.ctx, d.Store, id))
			equal(d, "when it is over", s.CoolDown == nil, true)
		}},
		{name: "J35_QueuesTellTheirCoolDown", run: func(d *database) {
			r := throttle(d, asked(time.Minute))
			all := must[[]store.QueueState](d, "queues")(d.Store.(store.QueueReader).Queues(d.ctx, nil))
			if len(all) != 1 || all[0].CoolDown == nil {
				d.Fatalf("queues are %+v, want one that cools down", all)
			}
			equal(d, "cool-down", *all[0].CoolDown, r.CoolDown)
			d.advance(time.Minute)
			equal(d, "when it is over", len(must[[]store.QueueState](d, "queues")(d.Store.(store.QueueReader).Queues(d.ctx, nil))), 0)
		}},
		{name: "J32_AClockThatIsSetBackEndsIt", run: func(d *database) {
			w := d.hire()
			id := d.one()
			d.advance(time.Hour)
			throttle(d, asked(time.Minute))
			equal(d, "claimed", len(w.claim(1)), 0)
			d.advance(-10 * time.Minute)
			equal(d, "claimed after the step", ids(w.claim(1)), []job.ID{id})
			equal(d, "a new one begins", throttle(d, asked(time.Minute)).Began, true)
		}},
		{name: "J8_WhatIsOverIsForgotten", run: func(d *database) {
			s := kept(d)
			for _, name := range []string{"a", "b", "c"} {
				must[store.CoolDownReply](d, "cool down")(s.CoolDown(d.ctx, name, asked(time.Hour)))
			}
			d.advance(job.KeepCoolDown + 2*time.Hour)
			throttle(d, job.Throttle{})
			r := must[store.CoolDownReply](d, "cool down")(s.CoolDown(d.ctx, "a", job.Throttle{}))
			equal(d, "throttles", r.Throttles, 1)
		}},
		{name: "J8_AQueueThatCannotBeIsRefused", run: func(d *database) {
			if _, err := kept(d).CoolDown(d.ctx, "a b", job.Throttle{}); !errors.Is(err, job.ErrInvalid) {
				d.Errorf("cool down: %v, want ErrInvalid", err)
			}
			if err := kept(d).ResetCoolDown(d.ctx, "", store.Operator{}); !errors.Is(err, job.ErrInvalid) {
				d.Errorf("reset: %v, want ErrInvalid", err)
			}
		}},
		{name: "J8_NamespacesCoolDownByThemselves", needs: Features{Shared: true}, run: func(d *database) {
			o := beside(d)
			d.one()
			throttle(o, asked(time.Minute))
			equal(d, "claimed here", len(d.hire().claim(1)), 1)
		}},
	}
}
