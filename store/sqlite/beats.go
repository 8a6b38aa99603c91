package sqlite

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/crews"
	"github.com/pawlwork/pawl/store/internal/meet"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/workers"
)

// beats is where the workers of the namespaces of a file beat together: of all
// that an idle one does, a beat alone is written, and has to wait for the disk.
type beats struct {
	*meet.Meeting[beatAsk, store.BeatReply]
	members atomic.Int64 // workers of this process that are registered
}

// beatAsk is a beat of a worker none of whose handlers has begun since the last.
type beatAsk struct {
	of   *Store
	beat store.Beat
}

func newBeats(h *shared) *beats {
	b := &beats{}
	b.Meeting = meet.New(meet.Options[beatAsk, store.BeatReply]{
		Patience: 20 * time.Millisecond, Most: 500, Expected: &b.members, Run: h.beatTogether,
	})
	return b
}

// beatTogether renews the leases of many workers in one commit. One that is lost
// has written nothing, and finds out alone; any other error undoes all of them.
func (h *shared) beatTogether(ctx context.Context, asks []beatAsk) []*store.BeatReply {
	answers := make([]*store.BeatReply, len(asks))
	err := h.writer.do(ctx, asks[0].of, len(asks), func(t *jobs.Transition) error {
		clear(answers)
		for i, a := range asks {
			in := t.Continue(lite.NewSession(t.Conn, a.of.namespace, &a.of.clock), a.of.rules)
			reply, err := beat(&in, &a.beat, &a.of.crews)
			switch {
			case err == nil:
				answers[i] = &reply
			case !errors.Is(err, job.ErrWorkerLost):
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return answers
}

// beatWith beats together with other namespaces, and says whether it did.
func (s *Store) beatWith(ctx context.Context, b store.Beat) (reply store.BeatReply, met bool) {
	if s.beats == nil || len(b.Begun) > 0 {
		return reply, false
	}
	leave, err := s.enter()
	if err != nil {
		return reply, false
	}
	defer leave()
	return s.beats.Do(ctx, beatAsk{s, b})
}

// beat renews a lease, and says what the worker has to know.
func beat(t *jobs.Transition, b *store.Beat, known *crews.Known) (store.BeatReply, error) {
	beaten, err := workers.Beat(&t.Session, b)
	if err != nil {
		return beaten, err
	}
	if err := t.MarkBegun(b.Worker, b.Begun); err != nil {
		return beaten, err
	}
	if beaten.Cancels, err = jobs.Cancels(&t.Snapshot, b.Worker); err != nil {
		return beaten, err
	}
	if b.Splits {
		err = workers.ShareTotals(&t.Session, b, &beaten, known)
	}
	return beaten, err
}

// came notes a worker that is registered here.
func (s *Store) came(w job.WorkerID) {
	if _, known := s.workers.LoadOrStore(w, nil); !known && s.beats != nil {
		s.beats.members.Add(1)
	}
}

// gone notes one that is no more.
func (s *Store) gone(w job.WorkerID) {
	s.crews.Forget(w)
	if _, known := s.workers.LoadAndDelete(w); known && s.beats != nil {
		s.beats.members.Add(-1)
	}
}
