package postgres

import (
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/claims"
)

// Hints that never cease, as a process gives them to itself that enqueues beside
// its worker, do not keep claims from getting past jobs that they cannot take.
func TestJ14_HintsThatNeverCeaseDoNotStopTheFrontier(t *testing.T) {
	s := openInternal(t)
	c := hire(t, s)
	const limit, unknown = 10, 5_000
	foreign := many(unknown)
	for i := range foreign {
		foreign[i].Kind = "unknown"
	}
	c.enqueue(foreign...)
	known := someDraft()
	c.enqueue(known)
	s.SetClockOffset(time.Second) // a frontier stays a moment behind now
	from, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	stop, stopped := make(chan struct{}), make(chan struct{})
	defer func() { close(stop); <-stopped }()
	go func() { // stimulus: more hints than claims, whenever a claim looks and ends
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				s.claims.Frontiers.Lower("q", job.DefaultPriority, from.Add(time.Second))
			}
		}
	}()
	enough := 3*unknown/claims.LookBound(limit) + 5 // a sweep begins in front again
	for n := range enough {
		if jobs := c.claim(limit); len(jobs) > 0 {
			if jobs[0].ID != known.ID {
				t.Fatalf("claim %d took %s, want %s", n, jobs[0].ID, known.ID)
			}
			c.finish(jobs)
			return
		}
	}
	t.Fatalf("%d claims have not got past %d jobs of an unknown kind", enough, unknown)
}

// A claim leaves nothing behind at the frontiers, however it ends.
func TestP10_ClaimsLeaveNoViewsBehind(t *testing.T) {
	s := openInternal(t)
	c := hire(t, s)
	c.enqueue(many(20)...)
	c.finish(c.claim(5))
	c.drain(100)
	c.worker++ // nobody
	c.seq++
	if _, err := s.Claim(t.Context(), store.Claim{Worker: c.worker, Seq: c.seq, Offer: knowsK, Queues: []store.QueueClaim{{Queue: "q", Limit: 1, Start: 1}}}); err == nil {
		t.Fatal("a worker that is not registered has claimed")
	}
	for name, l := range s.claims.Frontiers.Fronts {
		if len(l.Views) > 0 {
			t.Errorf("%v has %d views of claims that are over", name, len(l.Views))
		}
	}
}
