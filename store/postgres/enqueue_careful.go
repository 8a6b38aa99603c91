package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// commitCareful commits drafts of many callers of which some are unique or sent
// again. It waits only a moment for a key that an open transaction holds; then
// each call goes on alone, and the line with the next ones (P8).
func (s *Store) commitCareful(ctx context.Context, calls []*enqueueCall) {
	s.commitAccepted(ctx, calls, false)
}

// commitAccepted is commitCareful for calls of which again says whether they may
// have been committed before.
func (s *Store) commitAccepted(ctx context.Context, calls []*enqueueCall, again bool) {
	receipts, err := s.acceptOnce(ctx, draftsOf(calls), s.patience, sharedLimits, again)
	if err == nil {
		for _, c := range calls {
			c.receipts, receipts = receipts[:len(c.drafts):len(c.drafts)], receipts[len(c.drafts):]
			answer(c, nil)
		}
		return
	}
	again = again || faultOf(err).unknown
	s.each(calls, func(c *enqueueCall) { s.answerAlone(ctx, c, again) })
}

// acceptOnce is one try to take drafts in.
func (s *Store) acceptOnce(ctx context.Context, drafts []job.Draft, limit time.Duration, l *limits, again bool) ([]job.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a := &acceptance{s: s, drafts: drafts, again: again}
	var receipts []job.Receipt
	err := s.transact(ctx, s.work, l, func(t *transaction) (err error) {
		a.session = t
		receipts, err = a.run(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.tell(a.told)
	return receipts, nil
}

func (s *Store) answerAlone(ctx context.Context, c *enqueueCall, again bool) {
	var err error
	c.receipts, err = s.enqueueAlone(ctx, c.drafts, c.weight, again)
	answer(c, err)
}

// enqueueAlone takes one caller's drafts in, and waits for whoever holds one of
// their keys as long as the busy limit allows. again says that they may have
// been committed before.
func (s *Store) enqueueAlone(ctx context.Context, drafts []job.Draft, weight int, again bool) ([]job.Receipt, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.options.BusyLimit+loading(weight), errBusyLimit)
	defer cancel()
	unknown, waits, l := again, false, sharedLimits
	defer func() {
		if waits {
			s.blocked.forget(drafts)
		}
	}()
	for n := 1; ; n++ {
		release, ok := s.blocked.turn(ctx, waits)
		if !ok {
			return nil, lost("enqueue", context.Cause(ctx), unknown)
		}
		receipts, err := s.acceptOnce(ctx, drafts, s.patience+loading(weight), l, unknown)
		release()
		if err == nil {
			return receipts, nil
		}
		f := faultOf(err)
		unknown = unknown || f.unknown
		switch {
		case ctx.Err() != nil:
			return nil, lost("enqueue", context.Cause(ctx), unknown)
		case f.blocked:
			if !waits {
				waits, l = true, aloneLimits
				s.blocked.remember(drafts)
			}
			n = 0
		case !f.passing || n >= tries:
			return nil, lost("enqueue", f.err, unknown)
		}
		if !pause(ctx, max(n, 1)) {
			return nil, lost("enqueue", context.Cause(ctx), unknown)
		}
	}
}

var errBusyLimit = fmt.Errorf("%w: a unique key is held by an open transaction", store.ErrBusy)

// blocked is what is known about keys that open transactions hold, and the few
// connections on which calls wait for them.
type blocked struct {
	mu   sync.Mutex
	keys map[string]int // by hash: how many calls wait for it
	once sync.Once
	// Calls that have waited share one turn, so that however many there are, a
	// call that is here only because of its neighbours finds another turn free.
	first, waiting chan struct{}
	going          sync.WaitGroup
}

func (b *blocked) turns() {
	b.once.Do(func() { b.first, b.waiting = make(chan struct{}, 1), make(chan struct{}, 1) })
}

// alone runs f beside the lines.
func (b *blocked) alone(f func()) { b.going.Go(f) }

// turn waits for one of the connections.
func (b *blocked) turn(ctx context.Context, waits bool) (release func(), ok bool) {
	b.turns()
	turn := b.first
	if waits {
		turn = b.waiting
	}
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, true
	case <-ctx.Done():
		return nil, false
	}
}

// meets reports whether a draft asks for a key that is known to be held.
func (b *blocked) meets(drafts []job.Draft) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.keys) == 0 {
		return false
	}
	for i := range drafts {
		if b.keys[string(drafts[i].Unique.Hash)] > 0 {
			return true
		}
	}
	return false
}

func (b *blocked) remember(drafts []job.Draft) { b.count(drafts, 1) }
func (b *blocked) forget(drafts []job.Draft)   { b.count(drafts, -1) }

func (b *blocked) count(drafts []job.Draft, by int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.keys == nil {
		b.keys = map[string]int{}
	}
	for i := range drafts {
		hash := string(drafts[i].Unique.Hash)
		if hash == "" {
			continue
		}
		if b.keys[hash] += by; b.keys[hash] == 0 {
			delete(b.keys, hash)
		}
	}
}
