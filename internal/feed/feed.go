package feed

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// Feed is one member of a group: a stream.Feed.
type Feed struct {
	b          *Backend
	membership stream.Membership

	mu   sync.Mutex // Wait, and acknowledgements in transactions, look beside Next
	hand store.Hand
	open []*delivery // by ref
	refs int64
	gone bool
	seen seen

	ahead ahead       // of Next only
	free  []*delivery // of before, for those to come
}

// seen is what the last Next knew that could have taken more.
type seen struct {
	head    stream.Position
	version int64
	next    time.Duration // in how long something was due; negative: nothing
	at      time.Time     // when that was
	any     bool          // there was such a Next
}

// Next implements stream.Feed.
func (f *Feed) Next(ctx context.Context, settled []stream.Settlement, want stream.Want) ([]stream.Delivery, error) {
	f.mu.Lock()
	if err := f.check(settled); err != nil {
		f.mu.Unlock()
		return nil, err
	}
	if f.keepsInDoubt(settled) {
		f.mu.Unlock()
		return nil, f.failed(stream.ErrFeedLost)
	}
	want.N = min(want.N, store.MaxTurn)
	t, after := f.turn(settled)
	if t.Want = want; f.alone(t) {
		t.Want.N = 0
	}
	f.mu.Unlock()
	t.Ahead = f.ahead.take(ctx, t.Want.N)
	sent := time.Now()
	reply, err := f.b.groups.Turn(ctx, t)
	if err != nil {
		return nil, f.failed(err)
	}
	defer f.ahead.taken(ctx, t, &reply)
	f.mu.Lock()
	defer f.mu.Unlock()
	after()
	f.hand = reply.Hand
	switch {
	case reply.More:
		f.seen.any = false
	case len(reply.Given)+reply.Taken < want.N:
		f.seen = seen{reply.Head, reply.Hand.Version, reply.Next, sent, true}
	}
	given := make([]stream.Delivery, 0, len(reply.Given)+reply.Taken)
	for i := range reply.Given {
		given = append(given, f.opened(&reply.Given[i]))
	}
	for i := range reply.Taken {
		given = append(given, f.opened(t.Ahead.Given[i]))
	}
	if len(t.Back)+len(t.Acked) > 0 || reply.Hand.Version != t.Hand.Version {
		f.b.news.changed()
	}
	return given, nil
}

// keepsInDoubt reports whether something is to be kept and tried again here that a transaction
// of unknown outcome may have acknowledged. Only the store can tell, and it does when the
// member joins again: what was acknowledged is done, the rest comes again. f.mu is held.
func (f *Feed) keepsInDoubt(settled []stream.Settlement) bool {
	return slices.ContainsFunc(settled, func(s stream.Settlement) bool {
		if s.Verdict != stream.Kept {
			return false
		}
		d := f.of(s.Ref)
		return d != nil && d.told
	})
}

// check refuses a call before anything of it has happened.
func (f *Feed) check(settled []stream.Settlement) error {
	if f.gone {
		return stream.ErrFeedLost
	}
	for _, d := range f.open {
		d.named = false
	}
	for _, s := range settled {
		d := f.of(s.Ref)
		switch {
		case s.Verdict > stream.Released:
			return job.Invalid("verdict", uint8(s.Verdict), "must be one that there is")
		case s.Verdict == stream.Retried && f.membership.Mode == stream.Ordered:
			return job.Invalid("verdict", s.Verdict, "must be kept in ordered mode: those behind it would overtake it")
		case d == nil:
		case d.named:
			return job.Invalid("ref", s.Ref, "must be settled once in a call")
		default:
			d.named = true
		}
	}
	return nil
}

// turn is what the store is told of settlements, and after does what follows from it here
// when the store has. f.mu is held, for after too.
func (f *Feed) turn(settled []stream.Settlement) (t *store.Turn, after func()) {
	t = &store.Turn{Hand: f.hand, Letters: f.membership.DeadLetter, Match: &f.membership.Match, Settles: len(settled) > 0}
	closed := make([]*delivery, 0, len(settled))
	var kept []*delivery
	for _, s := range settled {
		d := f.of(s.Ref)
		if d == nil {
			continue
		}
		if d.told {
			t.Acked = append(t.Acked, store.Ack{Seq: d.seq(), Row: d.row, Sure: s.Verdict == stream.Acked})
		}
		if s.Verdict == stream.Kept {
			kept = append(kept, d)
			d.kept = true
			t.Back = append(t.Back, store.Returned{
				Seq: d.seq(), Stripe: d.stripe, Failures: d.failures + 1, Losses: d.losses, Reason: stream.CutReason(s.Reason), Kept: true,
			})
			continue
		}
		closed = append(closed, d)
		d.closed, d.free = true, s.Free
		f.say(t, d, &s)
	}
	t.Open = make([]int64, 0, len(f.open)-len(closed))
	for _, d := range f.open {
		closed, kept := d.closed, d.kept
		d.closed, d.kept = false, false // another turn may say something else
		switch {
		case closed:
			continue
		case kept:
		case d.row:
			t.Rows = append(t.Rows, d.seq())
		default:
			t.Open = append(t.Open, d.seq())
		}
		if f.membership.Mode == stream.Ordered {
			if t.Busy == nil {
				t.Busy = map[int16]bool{}
			}
			t.Busy[d.stripe] = true
		}
	}
	slices.Sort(t.Open)
	return t, func() {
		for _, d := range closed {
			d.closed = true
		}
		f.open = slices.DeleteFunc(f.open, func(d *delivery) bool { return d.closed })
		for _, d := range closed {
			if d.free {
				f.ahead.use(d.given)
			}
			*d = delivery{}
		}
		f.free = append(f.free, closed...)
		for _, d := range kept {
			d.failures++
			d.row, d.alone = true, false
		}
	}
}

// alone reports whether one that came alone stays open: nothing more comes beside it. f.mu is
// held.
func (f *Feed) alone(t *store.Turn) bool {
	for _, d := range f.open {
		if d.alone && slices.Contains(t.Rows, d.seq()) {
			return true
		}
	}
	return false
}

// say puts a verdict that closes a delivery into a turn.
func (f *Feed) say(t *store.Turn, d *delivery, s *stream.Settlement) {
	back := store.Returned{Seq: d.seq(), Stripe: d.stripe, Failures: d.failures, Losses: d.losses, Delay: max(s.Delay, 0), Reason: stream.CutReason(s.Reason)}
	switch s.Verdict {
	case stream.Acked:
		if d.row {
			t.Done = append(t.Done, d.seq())
		}
	case stream.Retried:
		back.Failures++
		t.Back = append(t.Back, back)
	case stream.Released:
		t.Back = append(t.Back, back)
	case stream.Dead:
		given := stream.Delivery{Event: &d.given.Event, Failures: max(d.failures, s.Failures), Losses: d.losses}
		b := store.Buried{Seq: d.seq(), Stripe: d.stripe, Losses: d.losses, Failures: given.Failures, Reason: stream.CutReason(s.Reason)}
		if t.Letters != "" {
			b.Letter = given.Letter(t.Letters, f.membership.Group, s.Reason, time.Time{})
		}
		t.Dead = append(t.Dead, b)
	}
}

// failed is what an error of the store means for the feed.
func (f *Feed) failed(err error) error {
	if !errors.Is(err, stream.ErrFeedLost) {
		return err
	}
	f.mu.Lock()
	f.gone = true
	f.mu.Unlock()
	f.b.lost(&f.membership, f.hand.ID)
	return err
}

// Leave implements stream.Feed.
func (f *Feed) Leave(ctx context.Context, settled []stream.Settlement) error {
	f.mu.Lock()
	if err := f.check(settled); err != nil {
		f.mu.Unlock()
		return err
	}
	t, _ := f.turn(settled)
	f.mu.Unlock()
	f.ahead.drop()
	if err := f.b.groups.LeaveGroup(ctx, t); err != nil {
		return f.failed(err)
	}
	f.mu.Lock()
	f.gone = true
	f.mu.Unlock()
	f.b.news.changed()
	return nil
}

// Ack acknowledges an open delivery in a transaction, which takes effect when that commits.
// The handler's own verdict is asked for all the same, and counts when it does not.
func (f *Feed) Ack(ctx context.Context, tx store.TxGroups, ref int64) error {
	f.mu.Lock()
	d := f.of(ref)
	if f.gone || d == nil {
		f.mu.Unlock()
		return stream.ErrFeedLost
	}
	d.told = true
	hand, seq := f.hand, d.seq()
	f.mu.Unlock()
	return tx.AckDelivery(ctx, hand, seq)
}

// Unack says that the transaction of an Ack was rolled back.
func (f *Feed) Unack(ref int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d := f.of(ref); d != nil {
		d.told = false
	}
}

// Hand is what the store knows the member by.
func (f *Feed) Hand() store.Hand {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hand
}
