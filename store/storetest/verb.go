package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// do applies a verb without an operator's name.
func (d *database) do(v store.Verb, ids ...job.ID) []store.Change {
	d.Helper()
	return d.operate(string(v.Name), func(ids []job.ID) ([]store.Change, error) {
		return d.operations().Operate(d.ctx, v, ids, store.Operator{})
	}, ids...)
}

func requeue(to string) store.Verb { return store.Verb{Name: store.VerbRequeue, Queue: to} }
func toPriority(p int) store.Verb  { return store.Verb{Name: store.VerbPriority, Priority: p} }

var runNow = store.Verb{Name: store.VerbRunNow}

// verbs: what operators do to jobs beside cancel, retry and delete.
func verbs() []testCase {
	// scene is one job for each state.
	type scene struct{ waiting, scheduled, parked, running, dead, cancelled, done job.ID }
	set := func(d *database) (s scene) {
		d.Helper()
		w := d.hire()
		s.done = d.one()
		w.end(w.take(), job.Done)
		s.dead = d.one()
		w.end(w.take(), job.Dead)
		s.parked = d.one()
		w.end(w.take(), job.Suspended, parkedFor("x"))
		s.running = d.one()
		w.take()
		s.cancelled = d.one()
		d.cancel(s.cancelled)
		s.waiting, s.scheduled = d.one(), d.one(in(time.Hour))
		return s
	}
	all := func(s scene) []job.ID {
		return []job.ID{s.waiting, s.scheduled, s.parked, s.running, s.dead, s.cancelled, s.done, job.NewID()}
	}
	moved := []store.Change{
		store.Changed, store.Changed, store.Changed, store.Active, store.Changed, store.Changed, store.Ended, store.NotFound,
	}
	return []testCase{
		{name: "J25_RequeueMovesAllButRunningAndDone", run: func(d *database) {
			s := set(d)
			before := map[job.ID]job.Job{}
			for _, id := range all(s)[:7] {
				before[id] = d.get(id)
			}
			equal(d, "requeue", d.do(requeue("other"), all(s)...), moved)
			for id, was := range before {
				if id != s.running && id != s.done {
					was.Queue = "other"
				}
				equal(d, "job", d.get(id), was)
			}
			again := d.do(requeue("other"), s.waiting, s.dead)
			equal(d, "again", again, []store.Change{store.Same, store.Same})
		}},
		{name: "J25_SetPriorityChangesAllButRunningAndDone", run: func(d *database) {
			s := set(d)
			equal(d, "set priority", d.do(toPriority(2), all(s)...), moved)
			for _, id := range all(s)[:7] {
				want := 2
				if id == s.running || id == s.done {
					want = 5
				}
				equal(d, "priority", d.get(id).Priority, want)
			}
			equal(d, "again", d.do(toPriority(2), s.waiting, s.dead), []store.Change{store.Same, store.Same})
		}},
		{name: "J25_WhatIsMovedIsClaimedThere", run: func(d *database) {
			w := d.hire(queue, "other")
			list := d.enqueue(drafts(6)...)
			d.advance(time.Minute)
			w.beat()
			other := store.QueueClaim{Queue: "other", Limit: 10, Start: 10}
			later := d.enqueue(drafts(2, onQueue("other"))...)
			equal(d, "claimed first", ids(w.ask(other).Jobs), later) // a frontier is past the due time of the others now
			for range 2 {                                            // and was looked behind just now
				equal(d, "claimed", len(w.ask(other).Jobs), 0)
			}
			d.do(requeue("other"), list[1], list[4])
			equal(d, "claimed there", ids(w.ask(other).Jobs), []job.ID{list[1], list[4]})
			d.do(toPriority(1), list[5])
			d.do(toPriority(9), list[0])
			equal(d, "claimed here", ids(w.claim(10)), []job.ID{list[5], list[2], list[3], list[0]})
		}},
		{name: "J25_ARetryGoesWhereTheDeadWasPut", run: func(d *database) {
			s := set(d)
			d.do(requeue("other"), s.dead)
			d.do(toPriority(3), s.dead)
			equal(d, "retry", d.retry(s.dead), []store.Change{store.Changed})
			j := d.get(s.dead)
			equal(d, "job", [2]any{j.Queue, j.Priority}, [2]any{"other", 3})
			equal(d, "claimed", ids(d.hire("other").ask(store.QueueClaim{Queue: "other", Limit: 5, Start: 5}).Jobs), []job.ID{s.dead})
		}},
		{name: "J25_UniqueKeyStaysAndGateDoesNot", run: func(d *database) {
			key := d.one(once("k", 0))
			bounded := someLimits{"others": {Kind: "other", Concurrent: 5}}
			gated := d.one(ofKind("other"), by(bounded))
			d.do(requeue("other"), key, gated)
			d.do(toPriority(2), key, gated)
			d.duplicate("its key is held", key, draft(once("k", 0)))
			j := d.get(gated)
			equal(d, "its gate, of a queue in which it does not wait", j.Gate(), 0)
			w := d.hire("other")
			w.gates = job.NewGateRules(bounded)
			claimed := ids(w.ask(store.QueueClaim{Queue: "other", Limit: 5, Start: 5}).Jobs)
			claimed = append(claimed, ids(w.ask(store.QueueClaim{Queue: "other", Limit: 5, Start: 5}).Jobs)...)
			equal(d, "claimed in front and behind the gate of the new queue", claimed, []job.ID{key, gated})
			j = d.get(gated)
			equal(d, "its gate", j.Gate(), w.gates.Gate("other", "other", ""))
		}},
		{name: "J30_RunNowIsFirstOfItsQueueAndPriority", run: func(d *database) {
			w := d.hire()
			before := d.enqueue(drafts(3)...)
			high := d.one(priority(2))
			d.advance(time.Minute)
			w.beat()
			after := d.enqueue(drafts(2)...)
			scheduled := d.one(in(time.Hour))
			equal(d, "claimed first", ids(w.claim(2)), []job.ID{high, before[0]}) // a frontier is behind it now
			equal(d, "run now", d.do(runNow, scheduled), []store.Change{store.Changed})
			equal(d, "run now", d.do(runNow, after[1]), []store.Change{store.Changed})
			high = d.one(priority(1))
			equal(d, "claimed", ids(w.claim(10)), []job.ID{high, after[1], scheduled, before[1], before[2], after[0]})
		}},
		{name: "J30_RunNowBehindAGate", run: func(d *database) {
			bounded := someLimits{"others": {Kind: "other", Concurrent: 1}}
			first, second := d.one(ofKind("other"), by(bounded)), d.one(ofKind("other"), by(bounded), in(time.Hour))
			d.do(runNow, second)
			equal(d, "claimed at the gate", ids(d.under(bounded).soon(5)), []job.ID{second})
			equal(d, "then", d.states(first, second), []job.State{job.Waiting, job.Running})
		}},
		{name: "J30_RunNowTakesOnlyWhatWaits", run: func(d *database) {
			s := set(d)
			equal(d, "run now", d.do(runNow, all(s)...), []store.Change{
				store.Changed, store.Changed, store.Active, store.Active, store.Ended, store.Ended, store.Ended, store.NotFound,
			})
		}},
		{name: "J30_EntriesSayWhatChanged", run: func(d *database) {
			s := set(d)
			ann := store.Operator{Name: "ann", Note: "n"}
			o := d.operations()
			want := map[string]string{}
			for _, c := range []struct {
				verb   store.Verb
				id     job.ID
				detail string
			}{
				{requeue("other"), s.waiting, "queue q → other"},
				{toPriority(2), s.waiting, "priority 5 → 2"},
				{runNow, s.scheduled, "first of queue q, priority 5"},
				{store.Verb{Name: store.VerbRetry}, s.dead, "dead → waiting, due"},
				{store.Verb{Name: store.VerbCancel}, s.parked, "suspended → cancelled"},
				{store.Verb{Name: store.VerbCancel}, s.running, "running, asked to stop"},
				{store.Verb{Name: store.VerbDelete}, s.done, "done → deleted"},
			} {
				must[[]store.Change](d, string(c.verb.Name))(o.Operate(d.ctx, c.verb, []job.ID{c.id, c.id}, ann))
				want[string(c.verb.Name)+" "+c.id.String()] = c.detail
			}
			got := map[string]string{}
			for _, e := range d.audit(store.AuditFilter{By: "ann"}, 100) {
				if was := got[e.Action+" "+e.Target]; was != "" && was != e.Detail && e.Action != "run now" {
					d.Errorf("%s is written twice: %q, %q", e.Action, was, e.Detail)
				}
				got[e.Action+" "+e.Target] = e.Detail
			}
			equal(d, "details", got, want)
		}},
		{name: "P3_VerbsOfATransaction", run: func(d *database) {
			s := set(d)
			operate := func(commit bool) {
				tx := must[store.Tx](d, "begin")(d.Store.Begin(d.ctx))
				v, ok := tx.(store.VerbTx)
				if !ok {
					d.Fatalf("%T is no store.VerbTx", tx)
				}
				for _, verb := range []store.Verb{requeue("other"), toPriority(2)} {
					got := must[[]store.Change](d, string(verb.Name))(v.Operate(d.ctx, verb, []job.ID{s.waiting, s.running}, store.Operator{Name: "ann"}))
					equal(d, "answers", got, []store.Change{store.Changed, store.Active})
				}
				end := tx.Rollback
				if commit {
					end = tx.Commit
				}
				if err := end(d.ctx); err != nil {
					d.Fatal(err)
				}
			}
			before := d.get(s.waiting)
			operate(false)
			equal(d, "after a rollback", d.get(s.waiting), before)
			equal(d, "entries", len(d.audit(store.AuditFilter{}, 10)), 0)
			operate(true)
			before.Queue, before.Priority = "other", 2
			equal(d, "after the commit", d.get(s.waiting), before)
			equal(d, "entries", len(d.audit(store.AuditFilter{}, 10)), 2)
		}},
		{name: "J25_BadVerbsAreRefused", run: func(d *database) {
			id := d.one()
			for _, v := range []store.Verb{{}, {Name: "burn"}, requeue(""), requeue("a b"), toPriority(0), toPriority(10)} {
				if _, err := d.operations().Operate(d.ctx, v, []job.ID{id}, store.Operator{}); err == nil {
					d.Errorf("%+v was accepted", v)
				}
			}
		}},
	}
}
