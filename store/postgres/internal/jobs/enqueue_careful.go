package jobs

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// CommitCareful commits drafts of many callers of which some are unique or sent
// again. It waits only a moment for a key that an open transaction holds; then
// the calls are sorted out beside, and the shared commits go on (P8).
func (r *Room) CommitCareful(ctx context.Context, calls []*EnqueueCall) {
	if calls = r.turnAway(calls); len(calls) > 0 {
		r.commitAccepted(ctx, calls)
	}
}

// turnAway answers the calls whose key is known to be held, and returns the others.
func (r *Room) turnAway(calls []*EnqueueCall) []*EnqueueCall {
	if !r.Lines.some() {
		return calls
	}
	return slices.DeleteFunc(slices.Clone(calls), func(c *EnqueueCall) bool {
		key, held := r.Lines.among(c.Drafts, c.again)
		if held {
			c.Answer(&keyHeld{key})
		}
		return held
	})
}

func (r *Room) commitAccepted(ctx context.Context, calls []*EnqueueCall) {
	err := r.acceptTogether(ctx, calls, pg.SharedLimits)
	switch {
	case err == nil:
	case pg.FaultOf(err).Blocked:
		r.blocked.alone(func() { r.sortOut(ctx, calls) })
	default:
		for _, c := range calls {
			r.blocked.alone(func() { c.Answer(r.acceptAlone(ctx, c, pg.SharedLimits)) })
		}
	}
}

// acceptTogether is one try to take the drafts of calls in, and answers them if
// it succeeds.
func (r *Room) acceptTogether(ctx context.Context, calls []*EnqueueCall, l *pg.Limits) error {
	weight := 0
	again := false
	for _, c := range calls {
		weight += c.weight
		again = again || c.again
		c.Tried++
	}
	receipts, err := r.acceptOnce(ctx, draftsOf(calls), r.pg.TryTimeout+loading(weight), l, again)
	if err != nil {
		if pg.FaultOf(err).Unknown {
			for _, c := range calls {
				c.again = true
			}
		}
		return err
	}
	for _, c := range calls {
		c.Receipts, receipts = receipts[:len(c.Drafts):len(c.Drafts)], receipts[len(c.Drafts):]
		c.Answer(nil)
	}
	return nil
}

// acceptOnce is one try to take drafts in.
func (r *Room) acceptOnce(ctx context.Context, drafts []job.Draft, limit time.Duration, l *pg.Limits, again bool) ([]job.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a := &Acceptance{Room: r, Drafts: drafts, again: again}
	var receipts []job.Receipt
	err := r.pg.Transact(ctx, r.pg.Work, l, func(t *pg.Transaction) (err error) {
		a.Session = t
		receipts, err = a.Run(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.hints.Tell(a.told)
	a.begun.settle()
	return receipts, nil
}

// acceptAlone takes one caller's drafts in by themselves. It waits a moment only
// for a key that somebody holds, and then says which.
func (r *Room) acceptAlone(ctx context.Context, c *EnqueueCall, l *pg.Limits) error {
	for n := 1; ; n++ {
		c.Tried++
		receipts, err := r.acceptOnce(ctx, c.Drafts, r.pg.TryTimeout+loading(c.weight), l, c.again)
		if err == nil {
			c.Receipts = receipts
			return nil
		}
		f := pg.FaultOf(err)
		c.again = c.again || f.Unknown
		switch {
		case ctx.Err() != nil:
			return pg.Failure("enqueue", context.Cause(ctx), c.again)
		case f.Blocked:
			keys := lockKeys(c.Drafts, c.again)
			if len(keys) == 0 { // an id that ought to be fresh is being put in by somebody else
				keys = lockKeys(c.Drafts, true)
			}
			return &keyHeld{r.firstHeld(ctx, keys)}
		case !f.Passing || n >= pg.Tries:
			return pg.Failure("enqueue", f.Err, c.again)
		}
		if !pg.Pause(ctx, n) {
			return pg.Failure("enqueue", context.Cause(ctx), c.again)
		}
	}
}

// sortOut answers calls whose shared commit met a held key: those that need it are
// told so, the others are taken in. Nothing tells which keys are held but an
// insert that waits a moment, so calls are tried in parts. A part that went in
// doubles the next one and a part that met a held key halves it: one held key
// among many costs a few looks, however many calls want it, and where nearly all
// are held each costs one look. A part that was blocked goes to the back, and no
// call is tried with others for ever: whoever wants a free key is tried a bounded
// number of times, however many keys are held. The looks of all that is sorted
// out take turns, so that nobody stands behind the whole of another commit.
func (r *Room) sortOut(ctx context.Context, calls []*EnqueueCall) {
	r.Turns()
	o := &sorting{room: r, left: byKey(calls)}
	workers := min(cap(r.Lines.sorting), len(o.left))
	o.size = max(len(o.left)/(2*workers), 1) // enough parts for all of them
	for range workers {
		r.blocked.alone(func() { o.work(ctx) })
	}
}

// sorting is calls that are being sorted out.
type sorting struct {
	room *Room

	mu   sync.Mutex
	left [][]*EnqueueCall // by the key they ask for first
	size int              // of the next part
}

// MostTogether is how often a call is tried with others before it is tried alone.
const MostTogether = 8

// work tries parts until none is left. One that is taken up again was put back by
// a worker that goes on.
func (o *sorting) work(ctx context.Context) {
	for {
		release, ok := take(ctx, o.room.Lines.sorting)
		part := o.next()
		if !ok {
			for _, c := range slices.Concat(part...) {
				c.Answer(pg.Failure("enqueue", context.Cause(ctx), c.again))
			}
		} else {
			o.try(ctx, part)
			release()
		}
		if len(part) == 0 {
			return
		}
	}
}

// next takes the next part. Calls that were tried often are a part of their own.
func (o *sorting) next() [][]*EnqueueCall {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(o.size, len(o.left))
	for i, group := range o.left[:n] {
		if group[0].Tried > MostTogether {
			n = max(i, 1)
			break
		}
	}
	part := o.left[:n:n]
	o.left = o.left[n:]
	return part
}

// try answers a part, or puts it back.
func (o *sorting) try(ctx context.Context, part [][]*EnqueueCall) {
	part = o.room.turnGroupsAway(part)
	if len(part) == 0 {
		return
	}
	var err error
	if len(part) == 1 {
		err = o.room.answerGroup(ctx, part[0])
	} else {
		err = o.room.acceptTogether(ctx, slices.Concat(part...), probeLimits)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err == nil:
		o.size = max(o.size, 2*len(part)) // others may have come further meanwhile
	case len(part) > 1:
		o.size = min(o.size, len(part)/2)
		o.left = append(o.left, part...)
	}
}

// turnGroupsAway is turnAway for groups: others may have found out by now.
func (r *Room) turnGroupsAway(groups [][]*EnqueueCall) [][]*EnqueueCall {
	var rest [][]*EnqueueCall
	for _, group := range groups {
		if group = r.turnAway(group); len(group) > 0 {
			rest = append(rest, group)
		}
	}
	return rest
}

// byKey puts calls together that ask for the same key first.
func byKey(calls []*EnqueueCall) [][]*EnqueueCall {
	var groups [][]*EnqueueCall
	at := map[LockKey]int{}
	for _, c := range calls {
		keys := lockKeys(c.Drafts, c.again)
		if len(keys) == 0 { // needs nothing that could be held
			groups = append(groups, []*EnqueueCall{c})
			continue
		}
		n, ok := at[keys[0]]
		if !ok {
			n = len(groups)
			at[keys[0]], groups = n, append(groups, nil)
		}
		groups[n] = append(groups[n], c)
	}
	return groups
}

// answerGroup answers calls that ask for the same key first. One of them finds
// out; if that key is held, the others are not tried. The error is the last one's.
func (r *Room) answerGroup(ctx context.Context, calls []*EnqueueCall) (err error) {
	for i, c := range calls {
		keys := lockKeys(c.Drafts, c.again)
		err = r.acceptAlone(ctx, c, probeLimits)
		c.Answer(err)
		held := HeldBy(err)
		if held == nil || len(keys) == 0 || held.Key != keys[0] {
			continue
		}
		for _, c := range calls[i+1:] {
			c.Answer(held)
		}
		return held
	}
	return err
}
