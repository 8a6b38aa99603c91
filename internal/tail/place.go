package tail

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// Place is the position of a start.
func Place(ctx context.Context, log store.Log, s stream.Start) (p stream.Position, err error) {
	if at, ok := s.Position(); ok {
		return at, nil
	}
	if s.IsStart() {
		return p, nil
	}
	head, err := log.Head(ctx)
	if err != nil {
		return p, err
	}
	all, err := stream.Filter{}.Matcher()
	if err != nil {
		return p, err
	}
	if s.IsEnd() {
		return newest(ctx, log, all, head)
	}
	t, _ := s.Time()
	// The place is the lowest number behind which the next event is not before t.
	low, high := int64(0), head.Seq()
	for low < high {
		mid := low + (high-low)/2
		next, found, err := firstAfter(ctx, log, all, stream.At(head.Epoch(), mid))
		switch {
		case err != nil:
			return p, err
		case found && next.Appended.Before(t):
			low = min(next.Position.Seq(), high)
		default:
			high = mid
		}
	}
	if low == 0 {
		return p, nil
	}
	return stream.At(head.Epoch(), low), nil
}

// newest is behind the newest event before the head. The head itself is no place to keep: a
// number that no event has may be given again after a crash of the server.
func newest(ctx context.Context, log store.Log, m stream.Matcher, head stream.Position) (stream.Position, error) {
	back, ok := log.(store.LogBack)
	if !ok {
		return head, nil
	}
	page, err := back.EventsBack(ctx, store.EventQuery{Match: m, After: head, Limit: 1})
	switch {
	case err != nil || page.Visited == 0:
		return stream.Position{}, err
	case len(page.Events) == 0:
		return head, nil // the newest is another namespace's, in a store that numbers events alone
	}
	return page.Events[0].Position, nil
}

// firstAfter is the first event behind a position.
func firstAfter(ctx context.Context, log store.Log, m stream.Matcher, p stream.Position) (e stream.Event, found bool, err error) {
	for {
		page, err := log.Events(ctx, store.EventQuery{Match: m, After: p, Limit: 64})
		if err != nil {
			return e, false, err
		}
		if len(page.Events) > 0 {
			return page.Events[0], true, nil
		}
		if !page.More {
			return e, false, nil
		}
		p = page.Next
	}
}
