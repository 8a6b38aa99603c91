package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func expire() []testCase {
	ownKeep := store.Settings{Keep: func(string) job.Keep { return keep }}
	return []testCase{
		{name: "J13_PastItsDeadlineIsDead", settings: ownKeep, run: func(d *database) {
			deadline := d.now().Add(time.Hour)
			w := d.hire()
			parked := d.one(until(deadline))
			w.end(w.take(), job.Suspended, parkedFor("x"))
			ready, scheduled := d.one(until(deadline)), d.one(until(deadline), in(5*time.Hour))
			later, never := d.one(until(deadline.Add(9*time.Hour))), d.one()
			equal(d, "expired early", d.expire(10), 0)
			d.advance(2 * time.Hour)
			from := d.now()
			equal(d, "expired", d.expire(10), 3)
			equal(d, "states", d.states(ready, scheduled, parked, later, never),
				[]job.State{job.Dead, job.Dead, job.Dead, job.Waiting, job.Waiting})
			got := d.get(ready)
			within(d, "finished", got.Finished, from, d.now())
			equal(d, "kept for", got.Expires.Sub(got.Finished), keep.Dead)
			equal(d, "used", got.Used, 0)
			if got.Reason == "" {
				d.Error("a dead job has no reason")
			}
			equal(d, "expired again", d.expire(10), 0)
			equal(d, "claimed", ids(w.claim(10)), []job.ID{later, never})
		}},
		{name: "J13_RunningIsLeftToItsWorker", run: func(d *database) {
			id := d.one(until(d.now().Add(time.Hour)))
			w := d.hire()
			held := w.take()
			d.advance(2 * time.Hour)
			equal(d, "expired", d.expire(10), 0)
			equal(d, "state", d.get(id).State, job.Running)
			w.end(held, job.Waiting)
			equal(d, "expired", d.expire(10), 1)
			equal(d, "state", d.get(id).State, job.Dead)
		}},
		{name: "P10_BoundedAndRepeatable", run: func(d *database) {
			d.enqueue(drafts(10, until(d.now().Add(time.Hour)))...)
			d.advance(2 * time.Hour)
			equal(d, "expired", []int{d.expire(4), d.expire(4), d.expire(4), d.expire(4)}, []int{4, 4, 2, 0})
			equal(d, "dead", d.count(job.Dead), 10)
		}},
		{name: "J28_WhoDiesOfItsDeadlineIsNamed", run: func(d *database) {
			deadline := d.now().Add(time.Hour)
			never := d.one(until(deadline))
			d.advance(2 * time.Hour)
			expired := must[store.ExpireReply](d, "expire")(d.Store.Expire(d.ctx, 10))
			equal(d, "expired", expired, store.ExpireReply{Dead: 1, Deaths: []store.Death{{
				ID: never, Kind: kind, Queue: queue, Attempt: 1, MaxAttempts: 5, Reason: d.get(never).Reason,
			}}})
			ran := d.one(until(d.now().Add(time.Hour)))
			w := d.hire()
			w.end(w.take(), job.Waiting, func(e *job.End) { e.Burn = true })
			d.advance(2 * time.Hour)
			expired = must[store.ExpireReply](d, "expire")(d.Store.Expire(d.ctx, 10))
			equal(d, "expired after a run", expired, store.ExpireReply{Dead: 1, Deaths: []store.Death{{
				ID: ran, Kind: kind, Queue: queue, Run: 1, Attempt: 2, MaxAttempts: 5, Reason: d.get(ran).Reason,
			}}})
		}},
		{name: "P10_AnAnswerNamesSoManyDead", run: func(d *database) {
			d.enqueue(drafts(store.MaxDeaths+10, until(d.now().Add(time.Hour)))...)
			d.advance(2 * time.Hour)
			expired := must[store.ExpireReply](d, "expire")(d.Store.Expire(d.ctx, 1000))
			equal(d, "dead", expired.Dead, store.MaxDeaths+10)
			equal(d, "named", len(expired.Deaths), store.MaxDeaths)
		}},
		{name: "J15_NotKeptWhereNothingIsKept", settings: store.Settings{Keep: func(string) job.Keep { return keepNone }}, run: func(d *database) {
			id := d.one(until(d.now().Add(time.Hour)))
			d.advance(2 * time.Hour)
			equal(d, "expired", d.expire(10), 1)
			d.gone("not kept", id)
		}},
	}
}
