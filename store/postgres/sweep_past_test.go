package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/claims"
)

// beforeStrangers is a queue in front of which so many jobs stand that nobody here takes, one a millisecond, an hour old; a
// worker has looked at all of them once.
func beforeStrangers(t *testing.T, strangers int) (*crew, *sentStatements) {
	t.Helper()
	s, sent := openTraced(t)
	s.claims.Frontiers.Timed = func(time.Duration) time.Duration { return 0 }
	c := hire(t, s)
	exec(t, s, `INSERT INTO pawl.job (namespace, priority, state, id, due, created, max_attempts, queue, kind, args)
		SELECT $1, 5, 2, gen_random_uuid(), now() - interval '1 hour' + n * interval '1 millisecond', now(), 5, 'q', 'unknown', '{}'
		FROM generate_series(1, $2::int) AS n`, s.pg.Namespace, strangers)
	exec(t, s, "ANALYZE pawl.job")
	for more := true; more; {
		more = c.look().More
	}
	return c, sent
}

// look is a claim that has to find nothing.
func (c *crew) look() store.ClaimReply {
	c.t.Helper()
	c.seq++
	reply, err := c.s.Claim(context.Background(), store.Claim{
		Worker: c.worker, Seq: c.seq, Offer: knowsK, Queues: []store.QueueClaim{{Queue: "q", Limit: 10, Start: 10}},
	})
	if err != nil || len(reply.Jobs) > 0 {
		c.t.Fatalf("%d jobs, %v; want none", len(reply.Jobs), err)
	}
	return reply
}

// hidden puts a job of a known kind into the queue that nobody is told of, so long behind the first of the strangers.
func hidden(t *testing.T, s *Store, behind time.Duration) {
	t.Helper()
	exec(t, s, `INSERT INTO pawl.job (namespace, priority, state, id, due, created, max_attempts, queue, kind, args)
		SELECT $1, 5, 2, $2, min(due) + $3::interval, now(), 5, 'q', 'k', '{}' FROM pawl.job WHERE namespace = $1 AND kind = 'unknown'`,
		s.pg.Namespace, job.NewID(), behind)
}

// What an offer has passed because it does not take it is not looked at again by each sweep: a sweep goes on where the last
// one ended, and the claims between them look at none of it.
func TestJ14_ASweepPassesWhatItsOfferDoesNotTakeInParts(t *testing.T) {
	const strangers = 3*claims.SweptAtOnce - 100
	c, sent := beforeStrangers(t, strangers)
	for sweep := range 7 { // two laps
		c.s.SetClockOffset(time.Duration(sweep+1) * claims.SweepEvery)
		if n := sent.visits(func() { c.look() }); n > claims.SweptAtOnce+1000 {
			t.Errorf("sweep %d visits %d of %d jobs that the worker does not take, want %d at most", sweep, n, strangers, claims.SweptAtOnce)
		} else if sweep < 3 && n < claims.SweptAtOnce-1000 {
			t.Errorf("sweep %d visits %d: the test does not hold what it is about", sweep, n)
		}
		if n := sent.visits(func() { c.look() }); n > 100 {
			t.Errorf("a claim after sweep %d visits %d entries", sweep, n)
		}
	}
}

// A job that nobody was told of is found among them within a lap, and one that is new with the next sweep, also while a lap
// is under way.
func TestJ14_ASweepFindsOwnWorkAmongWhatItsOfferDoesNotTake(t *testing.T) {
	const strangers = 3*claims.SweptAtOnce - 100
	c, _ := beforeStrangers(t, strangers)
	var now time.Duration
	sweep := func() int {
		now += claims.SweepEvery
		c.s.SetClockOffset(now)
		found := c.claim(10)
		c.finish(found)
		return len(found)
	}
	if n := sweep(); n > 0 {
		t.Fatalf("%d were found where none is", n)
	}
	hidden(t, c.s, 45*time.Second)          // ahead of the lap
	hidden(t, c.s, 10*time.Second)          // where the lap has been
	hidden(t, c.s, time.Hour-3*time.Second) // new
	if n := sweep(); n != 1 {
		t.Fatalf("the next sweep found %d, want the one that is new", n)
	}
	if n := sweep(); n != 1 { // the one before read half as much of the lap, beside what was new
		t.Fatalf("the lap found %d, want the one in front of it", n)
	}
	if n := sweep(); n != 0 {
		t.Fatalf("the end of the lap found %d, where none is", n)
	}
	if n := sweep(); n != 1 {
		t.Fatalf("the next lap found %d, want the one that it begins with", n)
	}
	for range 4 {
		if n := sweep(); n > 0 {
			t.Fatalf("%d were found where none is left", n)
		}
	}
}

// More of its own than it has slots for: what a sweep does not lease it leaves to the claims that follow.
func TestJ14_ASweepLeavesWhatItHasNoSlotFor(t *testing.T) {
	c, _ := beforeStrangers(t, 1000)
	for i := range 25 {
		hidden(t, c.s, time.Duration(i+1)*10*time.Millisecond)
	}
	c.s.SetClockOffset(claims.SweepEvery)
	for _, want := range []int{10, 10, 5, 0} {
		found := c.claim(10)
		if c.finish(found); len(found) != want {
			t.Fatalf("a claim of ten gave %d, want %d", len(found), want)
		}
	}
}
