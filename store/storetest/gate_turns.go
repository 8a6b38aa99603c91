package storetest

import (
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// patient claims as an idle runner does: when Next says, and every 5 s.
func (w *employee) patient(limit int, most time.Duration) []store.LeasedJob {
	w.d.Helper()
	for waited := time.Duration(0); ; {
		r := w.ask(store.QueueClaim{Queue: queue, Limit: limit, Start: limit})
		if len(r.Jobs) > 0 || waited >= most {
			return r.Jobs
		}
		if r.More {
			waited += time.Millisecond
			continue
		}
		wait := 5 * time.Second
		if r.Next > 0 {
			wait = min(wait, max(r.Next, time.Millisecond))
		}
		waited += wait
		w.d.advance(wait)
	}
}

// gateTurns: gates that close and open again lose nothing.
func gateTurns() []testCase {
	return []testCase{
		{name: "J19_AReadyJobBehindAGateThatWaitsForAScheduledOne", run: func(d *database) {
			d.one(withKey("a"), in(time.Hour), by(twoPerKey))
			w := d.under(twoPerKey)
			equal(d, "claimed of what is not due", ids(w.claim(5)), nil)
			id := d.one(withKey("a"), by(twoPerKey))
			equal(d, "claimed", ids(w.patient(5, time.Minute)), []job.ID{id})
		}},
		{name: "J19_TheSameInATransaction", run: func(d *database) {
			d.one(withKey("a"), in(time.Hour), by(twoPerKey))
			w := d.under(twoPerKey)
			equal(d, "claimed of what is not due", ids(w.claim(5)), nil)
			list := drafts(1, withKey("a"), by(twoPerKey))
			d.inTx(func(tx store.Tx) error {
				_, err := tx.Enqueue(d.ctx, list)
				return err
			})
			equal(d, "claimed", ids(w.patient(5, time.Minute)), []job.ID{list[0].ID})
		}},
		{name: "J19_ManyJobsForOthersInFrontOfOne", run: func(d *database) {
			fiveOfQueue := someLimits{"all": {Queue: queue, Concurrent: 5}}
			d.enqueue(drafts(3000, ofKind("foreign"), by(fiveOfQueue))...)
			d.one(in(time.Hour), priority(1), by(fiveOfQueue))
			id := d.one(by(fiveOfQueue))
			w := d.under(fiveOfQueue)
			var got []job.ID
			for n := 0; n < 5 && len(got) == 0; n++ {
				got = ids(w.ask(store.QueueClaim{Queue: queue, Limit: 5, Start: 5}).Jobs)
			}
			equal(d, "claimed within five claims", got, []job.ID{id})
		}},
		{name: "J19_RunNow", run: func(d *database) {
			id := d.one(withKey("a"), in(time.Hour), by(twoPerKey))
			w := d.under(twoPerKey)
			equal(d, "claimed of what is not due", ids(w.claim(5)), nil)
			d.do(runNow, id)
			equal(d, "claimed", ids(w.patient(5, time.Minute)), []job.ID{id})
		}},
		{name: "J19_OnAnIdleKeyThatRuns", run: func(d *database) {
			d.one(withKey("a"), by(twoPerKey))
			w := d.under(twoPerKey)
			w.take()
			equal(d, "claimed", ids(w.claim(5)), nil)
			id := d.one(withKey("a"), by(twoPerKey))
			equal(d, "claimed soon", ids(w.patient(5, 300*time.Millisecond)), []job.ID{id})
		}},
		{name: "J19_ARescuedJobBesideAScheduledOne", run: func(d *database) {
			id := d.one(withKey("a"), by(twoPerKey))
			d.one(withKey("a"), in(time.Hour), by(twoPerKey))
			lost, w := d.under(twoPerKey), d.under(twoPerKey)
			equal(d, "first", ids(lost.claim(1)), []job.ID{id})
			d.lose(lost, w)
			d.rescue()
			r := w.ask(store.QueueClaim{Queue: queue, Limit: 5, Start: 0})
			equal(d, "claimed ahead", ids(r.Jobs), nil)
			w.beat()
			equal(d, "claimed", ids(w.patient(5, time.Minute)), []job.ID{id})
		}},
		{name: "J19_ARateThatIsRaised", run: func(d *database) {
			slow := someLimits{"mail": {Queue: queue, PerSecond: 0.001, Burst: 1}}
			fast := someLimits{"mail": {Queue: queue, PerSecond: 100, Burst: 10}}
			d.enqueue(drafts(3, by(slow))...)
			w := d.under(slow)
			equal(d, "claimed", len(w.claim(5)), 1)
			equal(d, "claimed then", len(w.claim(5)), 0)
			w.gates = job.NewGateRules(fast)
			equal(d, "claimed by the new rate", len(w.patient(1, time.Minute))+len(w.patient(5, time.Minute)), 2)
		}},
		{name: "J19_ARateAndAClockThatIsSetBack", run: func(d *database) {
			rate := someLimits{"mail": {Queue: queue, PerSecond: 1, Burst: 1}}
			d.advance(time.Hour)
			d.enqueue(drafts(3, by(rate))...)
			w := d.under(rate)
			equal(d, "claimed", len(w.claim(5)), 1)
			d.advance(-time.Hour)
			w.beat()
			for range 10 {
				if r := must[int](d, "due again")(d.Store.MakeDueAgain(d.ctx, store.ClockStep{Queues: []string{queue}, Was: d.now().Add(time.Hour), Within: time.Second}, 100)); r == 0 {
					break
				}
			}
			equal(d, "claimed after a minute", len(w.patient(1, time.Minute)), 1)
		}},
		{name: "J19_OrderBehindAKindThatTheWorkerDoesNotKnow", run: func(d *database) {
			d.one(withKey("a"), ofKind("stranger"), by(orderedKeys))
			d.one(withKey("a"), by(orderedKeys))
			w := d.under(orderedKeys)
			equal(d, "claimed", ids(w.patient(5, 10*time.Second)), nil)
		}},
		{name: "J19_OrderedAndAnotherBound", run: func(d *database) {
			both := someLimits{"tenants": orderedKeys["tenants"], "render": {Kind: "render", Concurrent: 1}}
			d.one(withKey("b"), ofKind("render"), by(both))
			w := d.under(both)
			equal(d, "first", len(w.claim(1)), 1)
			d.one(withKey("a"), ofKind("render"), by(both))
			d.one(withKey("a"), by(both))
			equal(d, "claimed before the one that comes first", ids(w.patient(5, 10*time.Second)), nil)
		}},
		{name: "J19_TheHeadOfAnOrderedKeyAndAnotherBound", run: func(d *database) {
			both := someLimits{"tenants": orderedKeys["tenants"], "render": {Kind: "render", Concurrent: 1}}
			d.one(withKey("a"), ofKind("render"), by(both))
			w := d.under(both)
			head := w.take()
			w.end(head, job.Waiting, func(e *job.End) { e.Delay = time.Minute })
			d.one(withKey("b"), ofKind("render"), by(both))
			equal(d, "of another key", keysOf(w.patient(5, 5*time.Second)), map[string]int{"b": 1})
			d.advance(2 * time.Minute)
			w.beat()
			equal(d, "claimed while one renders", ids(w.patient(5, 10*time.Second)), nil)
		}},
		{name: "J19_FairUnderAnotherBound", run: func(d *database) {
			both := someLimits{"tenants": fairByKey["tenants"], "render": {Kind: "render", Concurrent: 4}}
			for _, key := range []string{"a", "b", "c", "e"} {
				d.enqueue(drafts(5, withKey(key), ofKind("render"), by(both))...)
			}
			w := d.under(both)
			equal(d, "claimed", keysOf(w.claim(4)), map[string]int{"a": 1, "b": 1, "c": 1, "e": 1})
		}},
		{name: "J19_WhoComesSeldomGoesAhead", run: func(d *database) {
			d.enqueue(drafts(300, withKey("large"), by(fairByKey))...)
			w := d.under(fairByKey)
			for range 5 {
				for _, j := range w.claim(20) {
					w.end(j, job.Done)
				}
			}
			d.enqueue(drafts(30, withKey("small"), by(fairByKey))...)
			got := w.claim(20)
			if n := keysOf(got)["small"]; n < 15 || n > 18 {
				d.Errorf("%d of 20 jobs are of who had none, want three quarters and its part of the rest", n)
			}
			equal(d, "the first is of", got[0].Key, "small")
			ahead := map[string]int{}
			for _, j := range got {
				if j.Ahead {
					ahead[j.Key]++
				}
			}
			if n := ahead["small"]; len(ahead) != 1 || n < 14 || n > 15 { // a place may be kept for what waits in front of gates
				d.Errorf("before what was claimed earlier start %v, want three quarters, of who had none", ahead)
			}
			equal(d, "the rest of it is claimed next", keysOf(w.claim(20))["small"] >= 12, true)
		}},
		{name: "J19_MoreKeysThanAreRemembered", run: func(d *database) {
			var list []job.Draft
			for n := range 4200 {
				list = append(list, draft(withKey(fmt.Sprint("k", n)), in(24*time.Hour), by(fairByKey)))
			}
			// one with the highest number
			last, best := "", int64(0)
			rules := job.NewGateRules(fairByKey)
			for n := range 10000 {
				if key := fmt.Sprint("x", n); rules.Gate(queue, kind, key) > best {
					last, best = key, rules.Gate(queue, kind, key)
				}
			}
			d.enqueue(list...)
			id := d.one(withKey(last), by(fairByKey))
			w := d.under(fairByKey)
			equal(d, "claimed", ids(w.patient(10, 2*time.Minute)), []job.ID{id})
		}},
		{name: "J19_MoreKeysThanAreRememberedAllReady", run: func(d *database) {
			var list []job.Draft
			for n := range 4200 {
				list = append(list, drafts(2, withKey(fmt.Sprint("k", n)), by(fairByKey))...)
			}
			d.enqueue(list...)
			w := d.under(fairByKey)
			seen := map[string]int{}
			for n := 0; n < 4200; {
				got := w.patient(min(10, 4200-n), time.Minute)
				for key, k := range keysOf(got) {
					seen[key] += k
				}
				if n += len(got); len(got) == 0 {
					break
				}
			}
			equal(d, "keys that had a turn before any had two", len(seen), 4200)
		}},
		{name: "J19_BytesOfBothHalves", run: func(d *database) {
			big := func(d *job.Draft) { d.Args = []byte(`"` + string(make([]byte, 0)) + fmt.Sprintf("%01000d", 1) + `"`) }
			d.enqueue(drafts(10, withKey("a"), big, by(fairByKey))...)
			d.enqueue(drafts(10, big)...)
			w := d.under(fairByKey)
			w.seq++
			r := must[store.ClaimReply](d, "claim")(d.Store.Claim(d.ctx, store.Claim{Worker: w.id, Seq: w.seq, Offer: w.offer, Gates: w.gates,
				Bytes: 3500, Queues: []store.QueueClaim{{Queue: queue, Limit: 20, Start: 20}}}))
			if len(r.Jobs) > 4 {
				d.Errorf("%d jobs of 1000 bytes in an answer of 3500", len(r.Jobs))
			}
		}},
		{name: "J19_TwoQueuesOneOrderedKey", run: func(d *database) {
			both := someLimits{"tenants": {Kind: "render", PerKey: true, Concurrent: 1, Ordered: true}}
			first := d.one(withKey("a"), ofKind("render"), by(both))
			second := d.one(withKey("a"), ofKind("render"), onQueue("r"), by(both))
			w := d.under(both)
			j := w.take()
			equal(d, "first", j.ID, first)
			w.end(j, job.Waiting, func(e *job.End) { e.Delay = time.Minute })
			r := w.ask(store.QueueClaim{Queue: "r", Limit: 5, Start: 5})
			equal(d, "of the other queue", ids(r.Jobs), nil)
			d.advance(2 * time.Minute)
			w.beat()
			got := w.patient(5, 10*time.Second)
			equal(d, "the head", ids(got), []job.ID{first})
			w.end(got[0], job.Done)
			r = w.ask(store.QueueClaim{Queue: "r", Limit: 5, Start: 5})
			equal(d, "then", ids(r.Jobs), []job.ID{second})
		}},
		{name: "J19_AJobRetriedAfterItsLimitIsGone", run: func(d *database) {
			id := d.one(ofKind("render"), by(oneOfRender))
			w := d.under(oneOfRender)
			w.end(w.take(), job.Dead)
			w.gates = nil
			d.retry(id)
			must[store.RegateReply](d, "regate")(d.Store.(store.Gatekeeper).Regate(d.ctx, nil, 100))
			equal(d, "claimed", ids(w.patient(5, time.Minute)), []job.ID{id})
		}},
		{name: "J19_AnOrderedHeadThatIsSuspendedAndDeleted", run: func(d *database) {
			list := d.enqueue(drafts(3, withKey("a"), by(orderedKeys))...)
			w := d.under(orderedKeys)
			w.end(w.take(), job.Suspended)
			equal(d, "claimed while the head is suspended", ids(w.patient(5, 10*time.Second)), nil)
			d.delete(list[0])
			equal(d, "claimed when it is deleted", ids(w.patient(5, 10*time.Second)), list[1:2])
		}},
		{name: "J19_AStrangerInFrontOpensNoGate", run: func(d *database) {
			wide := someLimits{"render": {Kind: "ren*", Concurrent: 1}}
			narrow := someLimits{"render": {Kind: "render", Concurrent: 1}}
			free := d.one(ofKind("rent"), by(wide))
			d.enqueue(drafts(5, ofKind("render"), by(wide))...)
			w := d.under(narrow)
			w.offer = job.Offer{Kinds: map[string]int{"render": 0, "rent": 0}}
			got := w.claim(10)
			got = append(got, w.claim(10)...)
			got = append(got, w.patient(10, 10*time.Second)...)
			got = append(got, w.patient(10, 10*time.Second)...)
			n := 0
			for _, j := range got {
				if j.Kind == "render" {
					n++
				}
			}
			equal(d, "of the bounded ones that run", n, 1)
			equal(d, "the other", d.states(free), []job.State{job.Running})
		}},
		{name: "J19_ARequeuedStrangerOpensNoGate", run: func(d *database) {
			l := someLimits{"all": {Kind: "ren*", Concurrent: 1}, "own": {Queue: queue, Kind: "rent", Concurrent: 1}}
			stranger := d.one(ofKind("rent"), onQueue("elsewhere"), by(l))
			d.do(requeue(queue), stranger)
			d.enqueue(drafts(5, ofKind("render"), by(l))...)
			w := d.under(l)
			w.offer = job.Offer{Kinds: map[string]int{"render": 0, "rent": 0}}
			got := append(w.claim(10), w.claim(10)...)
			n := 0
			for _, j := range got {
				if j.Kind == "render" {
					n++
				}
			}
			if n > 1 {
				d.Errorf("%d run at once of a kind that is bounded to 1", n)
			}
		}},
		{name: "J19_BytesUsedUpBesideAScheduledOne", run: func(d *database) {
			big := func(d *job.Draft) { d.Args = []byte(`"` + fmt.Sprintf("%01000d", 1) + `"`) }
			for _, key := range []string{"a", "b"} {
				d.enqueue(drafts(2, withKey(key), big, by(twoPerKey))...)
				d.one(withKey(key), in(time.Hour), by(twoPerKey))
			}
			w := d.under(twoPerKey)
			w.seq++
			r := must[store.ClaimReply](d, "claim")(d.Store.Claim(d.ctx, store.Claim{Worker: w.id, Seq: w.seq, Offer: w.offer, Gates: w.gates,
				Bytes: 1500, Queues: []store.QueueClaim{{Queue: queue, Limit: 20, Start: 20}}}))
			n := len(r.Jobs)
			for range 4 {
				n += len(w.patient(20, 20*time.Second))
			}
			equal(d, "claimed in all", n, 4)
		}},
	}
}
