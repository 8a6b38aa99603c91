package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
)

// commitCareful commits drafts of many callers of which some are unique or sent
// again. It waits only a moment for a key that an open transaction holds; then
// the calls are sorted out beside, and the shared commits go on (P8).
func (s *Store) commitCareful(ctx context.Context, calls []*enqueueCall) {
	if calls = s.turnAway(calls); len(calls) > 0 {
		s.commitAccepted(ctx, calls)
	}
}

// turnAway answers the calls whose key is known to be held, and returns the others.
func (s *Store) turnAway(calls []*enqueueCall) []*enqueueCall {
	if !s.lines.some() {
		return calls
	}
	return slices.DeleteFunc(slices.Clone(calls), func(c *enqueueCall) bool {
		key, held := s.lines.among(c.drafts, c.again)
		if held {
			answer(c, &keyHeld{key})
		}
		return held
	})
}

func (s *Store) commitAccepted(ctx context.Context, calls []*enqueueCall) {
	err := s.acceptTogether(ctx, calls, sharedLimits)
	switch {
	case err == nil:
	case faultOf(err).blocked:
		s.blocked.alone(func() { s.sortOut(ctx, calls) })
	default:
		for _, c := range calls {
			s.blocked.alone(func() { answer(c, s.acceptAlone(ctx, c, sharedLimits)) })
		}
	}
}

// acceptTogether is one try to take the drafts of calls in, and answers them if
// it succeeds.
func (s *Store) acceptTogether(ctx context.Context, calls []*enqueueCall, l *limits) error {
	weight := 0
	again := false
	for _, c := range calls {
		weight += c.weight
		again = again || c.again
		c.tried++
	}
	receipts, err := s.acceptOnce(ctx, draftsOf(calls), s.tryTimeout+loading(weight), l, again)
	if err != nil {
		if faultOf(err).unknown {
			for _, c := range calls {
				c.again = true
			}
		}
		return err
	}
	for _, c := range calls {
		c.receipts, receipts = receipts[:len(c.drafts):len(c.drafts)], receipts[len(c.drafts):]
		answer(c, nil)
	}
	return nil
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

// acceptAlone takes one caller's drafts in by themselves. It waits a moment only
// for a key that somebody holds, and then says which.
func (s *Store) acceptAlone(ctx context.Context, c *enqueueCall, l *limits) error {
	for n := 1; ; n++ {
		c.tried++
		receipts, err := s.acceptOnce(ctx, c.drafts, s.tryTimeout+loading(c.weight), l, c.again)
		if err == nil {
			c.receipts = receipts
			return nil
		}
		f := faultOf(err)
		c.again = c.again || f.unknown
		switch {
		case ctx.Err() != nil:
			return lost("enqueue", context.Cause(ctx), c.again)
		case f.blocked:
			keys := lockKeys(c.drafts, c.again)
			if len(keys) == 0 { // an id that ought to be fresh is being put in by somebody else
				keys = lockKeys(c.drafts, true)
			}
			return &keyHeld{s.firstHeld(ctx, keys)}
		case !f.passing || n >= tries:
			return lost("enqueue", f.err, c.again)
		}
		if !pause(ctx, n) {
			return lost("enqueue", context.Cause(ctx), c.again)
		}
	}
}
