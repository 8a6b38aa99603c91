package postgres

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// through claims one job from behind the gate of a key, which may be open by now.
func (c *crew) through(rules *job.GateRules) []store.LeasedJob {
	c.t.Helper()
	c.seq++
	r, err := c.s.Claim(c.t.Context(), store.Claim{
		Worker: c.worker, Seq: c.seq, Offer: knowsK, Gates: rules, Opened: []int64{rules.Gate("q", "k", "a")},
		Queues: []store.QueueClaim{{Queue: "q", Limit: 1, Start: 1}},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return r.Jobs
}

// What runs from a gate is counted from where the last count left off. A clock that is
// set back, by little or by much, lets no job through that the bound has no room for.
func TestJ19_AClockSetBackKeepsTheBound(t *testing.T) {
	for _, by := range []time.Duration{100 * time.Millisecond, 400 * time.Millisecond, 3 * time.Second, time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			db := need.Postgres(t)
			var both [2]*crew
			for i := range both {
				both[i] = hire(t, openOn(t, db.URL, Options{Schema: db.Schema}, store.Settings{}))
			}
			rules := job.NewGateRules(map[string]job.LimitSettings{"tenants": {Queue: "q", PerKey: true, Concurrent: 1}})
			for range 10 {
				both[0].enqueue(someDraft(func(d *job.Draft) { d.Key, d.Gate = "a", rules.Gate("q", "k", "a") }))
			}
			for range 3 { // both have counted
				for _, c := range both {
					list := c.through(rules)
					for _, other := range both {
						if got := other.through(rules); len(list) != 1 || len(got) != 0 {
							t.Fatalf("%d and %d jobs run", len(list), len(got))
						}
					}
					c.finish(list)
				}
			}
			for _, c := range both {
				c.s.SetClockOffset(-by)
			}
			var list []store.LeasedJob
			for deadline := 0; len(list) == 0 && deadline < 1000; deadline++ { // what is ready may lie ahead now
				for _, c := range both {
					c.enqueue(someDraft(func(d *job.Draft) { d.Key, d.Gate = "a", rules.Gate("q", "k", "a") }))
				}
				list = both[1].through(rules)
			}
			if len(list) != 1 {
				t.Fatal("nothing was claimed")
			}
			if got := both[0].through(rules); len(got) != 0 {
				t.Errorf("%d jobs run beside the one that the bound allows, with a clock that was set back by %v", len(got), by)
			}
			both[1].finish(list)
		})
	}
}

// A count that goes on where the last one left off passes what has ended since a held
// snapshot began, however much that is.
func TestP10_ACountPassesWhatHasEnded(t *testing.T) {
	s := openInternal(t)
	holdSnapshot(t, s)
	c := hire(t, s)
	rules := job.NewGateRules(map[string]job.LimitSettings{"tenants": {Queue: "q", PerKey: true, Concurrent: 1}})
	gate := rules.Gate("q", "k", "a")
	const jobs = 100
	for range jobs {
		c.enqueue(someDraft(func(d *job.Draft) { d.Key, d.Gate = "a", gate }))
	}
	for range jobs - 1 {
		c.finish(c.through(rules))
	}
	last := c.through(rules)
	if len(last) != 1 {
		t.Fatal("no job is left")
	}
	var passed time.Time
	err := s.pg.Users.QueryRow(t.Context(), s.pg.SQL("SELECT passed FROM pawl.job WHERE id = $1"), last[0].ID).Scan(&passed)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(plans, func(p pg.Plan) bool { return p.Name == "runningAtGates" })
	from := func(since pgtype.Timestamptz, clock time.Time) int {
		return c.entries("job_gate_held", plans[at].Text, s.pg.Namespace, []int64{gate}, []int32{5},
			[]pgtype.Timestamptz{since}, []pgtype.Timestamptz{{Time: clock, Valid: true}})
	}
	there := pgtype.Timestamptz{Time: passed, Valid: true}
	if n := from(pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}, passed); n < jobs {
		t.Errorf("from the front it visits %d entries, want all %d", n, jobs)
	}
	if n := from(there, passed); n > 2 {
		t.Errorf("from the last it visits %d entries", n)
	}
	if n := from(there, passed.Add(time.Hour)); n < jobs {
		t.Errorf("while the clock shows less than it must it visits %d entries, want all %d", n, jobs)
	}
	c.finish(last)
}

// A job that came through before the clock was set back still runs, and those that come
// after it are counted.
func TestJ19_ARunFromAheadOfTheClockIsNoPlace(t *testing.T) {
	for _, by := range []time.Duration{600 * time.Millisecond, 3 * time.Second, time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			s := openInternal(t)
			c := hire(t, s)
			rules := job.NewGateRules(map[string]job.LimitSettings{"tenants": {Queue: "q", PerKey: true, Concurrent: 2}})
			add := func() { c.enqueue(someDraft(func(d *job.Draft) { d.Key, d.Gate = "a", rules.Gate("q", "k", "a") })) }
			for range 5 {
				add()
			}
			for range 4 {
				c.finish(c.through(rules))
			}
			running := c.through(rules)
			s.SetClockOffset(-by)
			for range 30 {
				add()
				running = append(running, c.through(rules)...)
			}
			if len(running) > 2 {
				t.Errorf("%d jobs run, the bound is 2", len(running))
			}
			c.finish(running)
		})
	}
}

// What a user's transaction enqueued behind a gate is found with the next look at hints,
// not with the sweep.
func TestJ19_HintsOfUsersTransactionsReachGates(t *testing.T) {
	s := openInternal(t)
	c := hire(t, s)
	users := newPool(t, s.pg.Users.Config().ConnString())
	rules := job.NewGateRules(map[string]job.LimitSettings{"tenants": {Queue: "q", PerKey: true, Concurrent: 1}})
	c.through(rules)
	for n := 1; n <= 3; n++ {
		tx, err := users.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		d := someDraft(func(d *job.Draft) { d.Key, d.Gate = "a", rules.Gate("q", "k", "a") })
		if _, err := s.Within(tx).Enqueue(t.Context(), []job.Draft{d}); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.SetClockOffset(time.Duration(n) * 2 * hints.HintsEvery) // the time of a look, and not of a sweep
		list := c.through(rules)
		if len(list) == 0 {
			list = c.through(rules)
		}
		if len(list) != 1 {
			t.Fatalf("transaction %d: %d jobs", n, len(list))
		}
		c.finish(list)
	}
}
