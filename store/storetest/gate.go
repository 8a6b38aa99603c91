package storetest

import (
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// someLimits are limits by name.
type someLimits = map[string]job.LimitSettings

// Limits of the cases.
var (
	oneOfRender = someLimits{"render": {Kind: "render", Concurrent: 1}}
	twoPerKey   = someLimits{"tenants": {Queue: queue, PerKey: true, Concurrent: 2}}
	onePerKey   = someLimits{"tenants": {Queue: queue, PerKey: true, Concurrent: 1}}
	fairByKey   = someLimits{"tenants": {Queue: queue, PerKey: true, Weights: map[string]int{"acme": 3}, Concurrent: 1000}}
	orderedKeys = someLimits{"tenants": {Queue: queue, PerKey: true, Concurrent: 1, Ordered: true}}
)

// by puts drafts behind the gate that limits give them.
func by(l someLimits) func(*job.Draft) {
	rules := job.NewGateRules(l)
	return func(d *job.Draft) { d.Gate = rules.Gate(d.Queue, d.Kind, d.Key) }
}

func withKey(key string) func(*job.Draft) { return func(d *job.Draft) { d.Key = key } }

// under hires a worker that knows the limits.
func (d *database) under(l someLimits) *employee {
	d.Helper()
	w := d.unlimited()
	w.gates = job.NewGateRules(l)
	return w
}

// unlimited hires a worker that takes the same kinds and knows no limits.
func (d *database) unlimited() *employee {
	d.Helper()
	w := d.hire()
	w.offer = job.Offer{Kinds: map[string]int{"render": 0, "other": 0, kind: 0}}
	return w
}

// soon asks until a claim takes something, for some seconds: what others do is seen
// after a moment.
func (w *employee) soon(limit int) []store.LeasedJob {
	w.d.Helper()
	for waited := time.Duration(0); ; {
		r := w.ask(store.QueueClaim{Queue: queue, Limit: limit, Start: limit})
		wait := max(r.Next, time.Millisecond)
		if len(r.Jobs) > 0 || !r.More && r.Next == 0 || waited+wait > 4*time.Second {
			return r.Jobs
		}
		if waited += wait; !r.More {
			w.d.advance(wait)
		}
	}
}

// keysOf counts jobs by their key.
func keysOf(jobs []store.LeasedJob) map[string]int {
	n := map[string]int{}
	for i := range jobs {
		n[jobs[i].Key]++
	}
	return n
}

// gates: what is bounded waits behind a gate, and claims let through what the limits
// allow.
func gates() []testCase {
	gateOf := func(d *database, id job.ID) int64 {
		d.Helper()
		j := d.get(id)
		return j.Gate()
	}
	return []testCase{
		{name: "J19_ClaimsWithoutRulesDoNotMeetGates", run: func(d *database) {
			closed := d.enqueue(drafts(5, ofKind("render"), by(oneOfRender))...)
			plain := d.enqueue(drafts(3)...)
			w := d.unlimited()
			equal(d, "claimed", ids(w.claim(10)), plain)
			nothing := w.ask(store.QueueClaim{Queue: queue, Limit: 10, Start: 10})
			equal(d, "claimed of what is behind gates", ids(nothing.Jobs), nil)
			equal(d, "there is more", nothing.More, false)
			equal(d, "until the next", nothing.Next, 0)
			through := d.under(oneOfRender).claim(3)
			equal(d, "claimed by who knows the limit", ids(through), closed[:1])
			equal(d, "its gate", through[0].Gate(), gateOf(d, closed[1]))
		}},
		{name: "J19_AtMostAsManyRunAsTheLimitSays", run: func(d *database) {
			list := d.enqueue(drafts(5, ofKind("render"), by(oneOfRender))...)
			a, b := d.under(oneOfRender), d.under(oneOfRender)
			first := a.claim(10)
			equal(d, "claimed", ids(first), list[:1])
			equal(d, "claimed by another", ids(b.soon(10)), nil)
			a.end(first[0], job.Done)
			equal(d, "claimed when it is done", ids(b.soon(10)), list[1:2])
			equal(d, "claimed by the first", ids(a.soon(10)), nil)
		}},
		{name: "J19_EachKeyHasItsOwnBound", run: func(d *database) {
			for _, key := range []string{"a", "b", "c"} {
				d.enqueue(drafts(5, withKey(key), by(twoPerKey))...)
			}
			free := d.enqueue(drafts(2)...)
			w := d.under(twoPerKey)
			got := w.claim(20)
			equal(d, "claimed by key", keysOf(got), map[string]int{"a": 2, "b": 2, "c": 2, "": 2})
			equal(d, "of those without a key", d.states(free...), []job.State{job.Running, job.Running})
			equal(d, "claimed while all are full", ids(w.soon(20)), nil)
			for _, j := range got {
				if j.Key == "b" {
					w.end(j, job.Done)
					break
				}
			}
			equal(d, "claimed of the key that has room", keysOf(w.soon(20)), map[string]int{"b": 1})
		}},
		{name: "J19_WeightsDealTurns", run: func(d *database) {
			for _, key := range []string{"acme", "small"} {
				d.enqueue(drafts(40, withKey(key), by(fairByKey))...)
			}
			w := d.under(fairByKey)
			n := map[string]int{}
			for range 40 {
				for key, k := range keysOf(w.claim(1)) {
					n[key] += k
				}
			}
			equal(d, "claimed one by one", n, map[string]int{"acme": 30, "small": 10})
			equal(d, "claimed together", keysOf(w.claim(12)), map[string]int{"acme": 9, "small": 3})
		}},
		{name: "J19_ManyKeysHaveTheirTurn", run: func(d *database) {
			var list []job.Draft
			for n := range 300 {
				list = append(list, drafts(2, withKey(fmt.Sprint("k", n)), by(fairByKey))...)
			}
			d.enqueue(list...)
			w := d.under(fairByKey)
			seen := map[string]int{}
			for range 30 {
				for key, k := range keysOf(w.soon(10)) {
					seen[key] += k
				}
			}
			equal(d, "keys that had a turn before any had two", len(seen), 300)
		}},
		{name: "J19_OrderedWaitsForTheHead", run: func(d *database) {
			list := d.enqueue(drafts(3, withKey("a"), by(orderedKeys))...)
			w, other := d.under(orderedKeys), d.under(orderedKeys)
			first := w.take()
			equal(d, "first", first.ID, list[0])
			w.end(first, job.Waiting, func(e *job.End) { e.Delay = time.Minute })
			equal(d, "claimed while the head waits for its retry", ids(other.soon(5)), nil)
			d.advance(2 * time.Minute)
			w.beat()
			other.beat()
			again := other.soon(5)
			equal(d, "claimed then", ids(again), list[:1])
			other.end(again[0], job.Dead)
			equal(d, "claimed when the head is dead", ids(w.soon(5)), list[1:2])
		}},
		{name: "J19_OrderedSurvivesARescue", run: func(d *database) {
			list := d.enqueue(drafts(3, withKey("a"), by(orderedKeys))...)
			lost, w := d.under(orderedKeys), d.under(orderedKeys)
			equal(d, "first", ids(lost.claim(3)), list[:1])
			d.lose(lost, w)
			d.rescue()
			equal(d, "claimed after a rescue", ids(w.soon(3)), list[:1])
		}},
		{name: "J17_ARateClosesItsGate", run: func(d *database) {
			rate := someLimits{"mail": {Queue: queue, PerSecond: 2, Burst: 3}}
			d.enqueue(drafts(10, by(rate))...)
			w := d.under(rate)
			equal(d, "claimed at once", len(w.claim(10)), 3)
			r := w.ask(store.QueueClaim{Queue: queue, Limit: 10, Start: 10})
			equal(d, "claimed then", len(r.Jobs), 0)
			if r.Next <= 0 || r.Next > 510*time.Millisecond {
				d.Errorf("the next token comes in %v", r.Next)
			}
			d.advance(time.Second)
			if n := len(w.claim(10)); n < 2 || n > 3 {
				d.Errorf("%d after a second, want 2", n)
			}
		}},
		{name: "J17_TokensOfAGateAreUsedUp", run: func(d *database) {
			rate := someLimits{"mail": {Queue: queue, PerSecond: 0.1, Burst: 3}}
			d.enqueue(drafts(10, by(rate))...)
			w := d.under(rate)
			equal(d, "claimed at once", len(w.claim(10)), 3)
			d.advance(4 * time.Second)
			equal(d, "claimed before there is another", len(w.claim(10)), 0)
			d.advance(8 * time.Second)
			equal(d, "claimed of the next one", len(w.claim(10)), 1)
		}},
		{name: "J19_AKeyedJobOfALimitedKindCountsForBoth", run: func(d *database) {
			both := someLimits{"tenants": twoPerKey["tenants"], "render": {Kind: "render", Concurrent: 3}}
			for _, key := range []string{"a", "b", "c"} {
				d.enqueue(drafts(3, withKey(key), ofKind("render"), by(both))...)
			}
			d.enqueue(drafts(2, ofKind("render"), by(both))...)
			w, other := d.under(both), d.under(both)
			got := append(w.soon(20), other.soon(20)...)
			equal(d, "claimed", len(got), 3)
			for key, n := range keysOf(got) {
				if key != "" && n > 2 {
					d.Errorf("%d of key %s", n, key)
				}
			}
		}},
		{name: "J4_OrderBehindAGate", run: func(d *database) {
			l := someLimits{"all": {Queue: queue, Concurrent: 100}}
			low := d.one(priority(8), by(l))
			later := d.one(in(time.Minute), by(l))
			high := d.one(priority(2), by(l))
			w := d.under(l)
			equal(d, "claimed", ids(w.claim(10)), []job.ID{high, low})
			if next := w.ask(store.QueueClaim{Queue: queue, Limit: 10, Start: 10}).Next; next <= 0 || next > time.Minute {
				d.Errorf("the next job behind the gate falls due in %v", next)
			}
			d.advance(2 * time.Minute)
			w.beat()
			equal(d, "claimed when it is due", ids(w.soon(10)), []job.ID{later})
		}},
		{name: "J19_WhatGoesBackWaitsBehindItsGate", run: func(d *database) {
			id := d.one(ofKind("render"), by(oneOfRender))
			gate := gateOf(d, id)
			w, plain := d.under(oneOfRender), d.unlimited()
			w.end(w.take(), job.Waiting)
			equal(d, "claimed in front", ids(plain.claim(10)), nil)
			lost := d.under(oneOfRender)
			equal(d, "claimed behind", ids(lost.soon(1)), []job.ID{id})
			d.lose(lost, w, plain)
			d.rescue()
			equal(d, "claimed in front after a rescue", ids(plain.claim(10)), nil)
			w.end(w.soon(1)[0], job.Dead)
			equal(d, "of a dead one", gateOf(d, id), gate)
			equal(d, "retried", d.retry(id), []store.Change{store.Changed})
			equal(d, "claimed in front after a retry", ids(plain.claim(10)), nil)
			equal(d, "claimed behind", ids(w.soon(1)), []job.ID{id})
		}},
		{name: "F12_UpkeepOfGatesIsDueWhereThereAreSome", run: func(d *database) {
			due := func() bool {
				d.Helper()
				return must[store.Due](d, "due")(d.Store.Due(d.ctx)).Gates
			}
			d.one()
			equal(d, "due with a job that has none", due(), false)
			d.one(withKey("a"), by(orderedKeys))
			equal(d, "due with one that waits", due(), true)
			w := d.under(orderedKeys)
			for _, j := range w.soon(5) {
				equal(d, "due with a head", due(), true)
				w.end(j, job.Done)
			}
			must[store.RegateReply](d, "regate")(d.Store.(store.Gatekeeper).Regate(d.ctx, w.gates, 100))
			equal(d, "due when all is done", due(), false)
		}},
		{name: "J19_AJobInFrontOfItsGateIsPutBehindIt", run: func(d *database) {
			many := someLimits{"render": {Kind: "render", Concurrent: 10}}
			first := d.enqueue(drafts(3, ofKind("render"))...)
			plain := d.one()
			last := d.one(ofKind("render"))
			w := d.under(many)
			got := w.soon(10)
			got = append(got, w.soon(10)...)
			got = append(got, w.soon(10)...)
			equal(d, "claimed", len(got), 5)
			for _, id := range append(first, last) {
				equal(d, "gate", gateOf(d, id), job.NewGateRules(many).Gate(queue, "render", ""))
			}
			equal(d, "of one that has none", gateOf(d, plain), 0)
		}},
		{name: "J32_ARepeatedClaimOfAGate", run: func(d *database) {
			list := d.enqueue(drafts(3, ofKind("render"), by(oneOfRender))...)
			w := d.under(oneOfRender)
			w.claim(2)
			again := w.repeat(w.seq, store.QueueClaim{Queue: queue, Limit: 2, Start: 2})
			equal(d, "claimed again", ids(again.Jobs), list[:1])
			equal(d, "its gate", again.Jobs[0].Gate(), gateOf(d, list[1]))
		}},
		{name: "J19_AgesBehindAGate", run: func(d *database) {
			l := someLimits{"all": {Queue: queue, Concurrent: 100}}
			old := d.one(priority(9), by(l))
			d.advance(time.Hour)
			d.one(priority(1), by(l))
			w := d.under(l)
			equal(d, "claimed", ids(w.ask(store.QueueClaim{Queue: queue, Limit: 1, Start: 1, Aging: time.Minute}).Jobs), []job.ID{old})
		}},
		{name: "J19_WhatAnotherTransactionAddsIsFound", run: func(d *database) {
			w := d.under(twoPerKey)
			equal(d, "claimed of nothing", ids(w.soon(5)), nil)
			list := drafts(1, withKey("late"), by(twoPerKey))
			d.inTx(func(tx store.Tx) error {
				_, err := tx.Enqueue(d.ctx, list)
				return err
			})
			equal(d, "claimed", ids(w.soon(5)), []job.ID{list[0].ID})
		}},
		{name: "J19_ALimitThatIsGoneLetsItsJobsGo", run: func(d *database) {
			list := d.enqueue(drafts(250, withKey("a"), by(onePerKey))...)
			w := d.under(onePerKey)
			keeper := d.Store.(store.Gatekeeper)
			equal(d, "moved while it holds", must[store.RegateReply](d, "regate")(keeper.Regate(d.ctx, w.gates, 100)).Moved, 0)
			w.gates = nil
			moved, calls := 0, 0
			for more := true; more; calls++ {
				r := must[store.RegateReply](d, "regate")(keeper.Regate(d.ctx, nil, 100))
				moved, more = moved+r.Moved, r.More
			}
			equal(d, "moved", moved, 250)
			equal(d, "calls", calls, 3)
			equal(d, "claimed", len(w.claim(300)), len(list))
		}},
		{name: "J19_AnotherLimitTakesJobsOver", run: func(d *database) {
			list := d.enqueue(drafts(5, withKey("a"), by(onePerKey))...)
			two := someLimits{"all": {Queue: queue, Concurrent: 2}}
			w := d.under(two)
			got := w.soon(10)
			equal(d, "claimed by the new limit", len(got), 2)
			equal(d, "gate", gateOf(d, list[4]), job.NewGateRules(two).Gate(queue, kind, "a"))
			equal(d, "claimed then", len(w.soon(10)), 0)
		}},
		{name: "J19_KeysThatAreGoneLeaveNothing", run: func(d *database) {
			slow := someLimits{"tenants": {Queue: queue, PerKey: true, Concurrent: 1, Ordered: true, PerSecond: 1, Burst: 2}}
			d.enqueue(draft(withKey("a"), by(slow)), draft(withKey("b"), by(slow)))
			w := d.under(slow)
			got := w.soon(10)
			equal(d, "claimed", len(got), 2)
			for _, j := range got {
				w.end(j, job.Done)
			}
			d.advance(time.Minute)
			keeper := d.Store.(store.Gatekeeper)
			forgotten := must[store.RegateReply](d, "regate")(keeper.Regate(d.ctx, w.gates, 100)).Forgotten
			equal(d, "forgotten", forgotten, 2)
			equal(d, "forgotten again", must[store.RegateReply](d, "regate")(keeper.Regate(d.ctx, w.gates, 100)).Forgotten, 0)
		}},
		{name: "P5_WhyAJobBehindAGateWaits", run: func(d *database) {
			id := d.one(withKey("a"), by(onePerKey))
			d.unlimited()
			sit := must[job.Situation](d, "situation")(store.SituationOf(d.ctx, d.Store, id))
			equal(d, "why, of a limit that nobody knows", job.Explain(sit).Code, job.WhyGate)
		}},
		{name: "J26_WhySaysWhatClosesAGate", run: func(d *database) {
			why := func(id job.ID, l someLimits) job.WhyCode {
				d.Helper()
				sit := must[job.Situation](d, "situation")(store.SituationOf(d.ctx, d.Store, id))
				if b, ok := job.NewGateRules(l).Bound(queue, sit.Job.Kind, sit.Job.Key); ok {
					sit.Bound = &b
				}
				return job.Explain(sit).Code
			}
			w := d.under(onePerKey)
			list := d.enqueue(drafts(2, withKey("a"), by(onePerKey))...)
			equal(d, "while it is open", why(list[1], onePerKey), job.WhySlot)
			w.take()
			equal(d, "while another runs", why(list[1], onePerKey), job.WhyLimit)

			w = d.under(orderedKeys)
			list = d.enqueue(drafts(2, withKey("b"), by(orderedKeys))...)
			w.end(w.take(), job.Waiting, func(e *job.End) { e.Delay = time.Minute })
			equal(d, "while the head waits for its retry", why(list[1], orderedKeys), job.WhyOrder)

			rate := someLimits{"slow": {Kind: "other", PerSecond: 0.01, Burst: 1}}
			w = d.under(rate)
			list = d.enqueue(drafts(2, ofKind("other"), by(rate))...)
			w.soon(1)
			equal(d, "while its tokens are used up", why(list[1], rate), job.WhyRate)
		}},
		{name: "J35_CountsKnowWhatWaitsBehindGates", run: func(d *database) {
			d.one(behindGate(7), onQueue("elsewhere"))
			d.enqueue(draft(), draft(behindGate(7)), draft(behindGate(-5)))
			equal(d, "counts", must[[]store.QueueCount](d, "counts")(d.Store.(store.Counter).Counts(d.ctx)), []store.QueueCount{
				{Queue: "elsewhere", State: job.Waiting, Counted: store.Counted{Jobs: 1}},
				{Queue: queue, State: job.Waiting, Counted: store.Counted{Jobs: 3}},
			})
		}},
		{name: "J18_AQueueWithNothingButGatesIsReportedWhenNobodyServesIt", run: func(d *database) {
			d.one(behindGate(7), onQueue("elsewhere"))
			w := d.unlimited()
			d.advance(time.Hour)
			w.beat()
			list := must[[]store.Unserved](d, "unserved")(d.Store.Unserved(d.ctx, w.id, time.Minute))
			if len(list) != 1 || list[0].Queue != "elsewhere" {
				d.Errorf("unserved: %+v", list)
			}
		}},
	}
}

func behindGate(gate int64) func(*job.Draft) { return func(d *job.Draft) { d.Gate = gate } }
