package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/claims"
)

// A process that works two thousand queues asks for those in which something waits: what its looks cost is bounded by the
// jobs that came, not by the queues.
func TestP10_ALookAtManyQueuesSeeksThoseThatHaveJobs(t *testing.T) {
	const queues, with = 2000, 10
	s, sent := openTraced(t)
	c := hire(t, s)
	name := func(i int) string { return fmt.Sprintf("q%04d", i) }
	var now time.Duration
	claim := func(ids ...int) []store.LeasedJob {
		t.Helper()
		c.seq++
		asked := store.Claim{Worker: c.worker, Seq: c.seq, Offer: knowsK}
		for _, i := range ids {
			asked.Queues = append(asked.Queues, store.QueueClaim{Queue: name(i), Limit: 4, Start: 4})
		}
		reply, err := s.Claim(context.Background(), asked)
		if err != nil {
			t.Fatal(err)
		}
		return reply.Jobs
	}
	all := make([]int, queues)
	for i := range all {
		all[i] = i
	}
	if n := len(claim(all...)); n > 0 { // what they held before is not known
		t.Fatalf("%d jobs in empty queues", n)
	}
	look := func(want int) int {
		t.Helper()
		now += claims.SkimAgain // a sweep is due in each of them, too; what it skims was slow, on a busy machine
		s.SetClockOffset(now)
		return sent.Scans(s.pg.Texts.Schema, "job_ready", func() {
			if n := len(claim(all...)); n != want {
				t.Fatalf("%d jobs were found, want %d", n, want)
			}
		})
	}
	if n := look(0); n > 2 {
		t.Errorf("a look at %d empty queues seeks %d times, want once", queues, n)
	}
	put := func(queue string, due time.Duration) {
		t.Helper()
		exec(t, s, `INSERT INTO pawl.job (namespace, priority, state, id, due, created, max_attempts, queue, kind, args)
			VALUES ($1, 5, 2, $2, now() + $4, now(), 5, $3, 'k', '{}')`, s.pg.Namespace, job.NewID(), queue, due)
	}
	for i := range with { // later ones, with queues of others between them
		put(name(i*150), 24*time.Hour)
		put(name(i*150)+"-of-others", 24*time.Hour)
	}
	if n := look(0); n > 60*with {
		t.Errorf("a look at %d queues seeks %d times, %d of which have a job", queues, n, with)
	}
	for _, i := range []int{0, 700, 1999} {
		put(name(i), 0)
	}
	s.claims.Frontiers.Lower(name(1999), 5, time.Now().Add(-time.Hour)) // as who was told of it
	if n := len(claim(1999)); n != 1 {
		t.Errorf("%d jobs in the queue that was told of, want 1", n)
	}
	if n := look(2); n > 60*(with+2) {
		t.Errorf("a look that finds jobs which nobody was told of seeks %d times", n)
	}
	put(name(3), 0)
	s.claims.Frontiers.Lower(name(3), 5, time.Now().Add(-time.Hour))
	if n := look(1); n > 60*(with+3) {
		t.Errorf("a look at %d queues one of which is not quiet seeks %d times", queues, n)
	}
}
