package pawl

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// EventPage is some events in order, and where to go on.
type EventPage = store.EventPage

// EventPage reads the next events from a start. It visits n rows at most, so that it costs the
// same whatever the filter leaves: a page may be empty, and More says whether to go on at Next.
func (e *Engine) EventPage(ctx context.Context, f stream.Filter, start stream.Start, n int) (EventPage, error) {
	log, err := e.reading(ctx, n)
	if err != nil {
		return EventPage{}, err
	}
	m, err := f.Matcher()
	if err != nil {
		return EventPage{}, err
	}
	at, err := e.placeOf(ctx, start)
	if err != nil {
		return EventPage{}, err
	}
	return log.Events(ctx, store.EventQuery{Match: m, After: at, Limit: n})
}

// LastEvents reads events up to a position, the newest first; from the head with the zero one.
// It visits n rows at most, as EventPage. It is for people who look: what commits late may
// appear before an event that was shown already.
func (e *Engine) LastEvents(ctx context.Context, f stream.Filter, upTo stream.Position, n int) (EventPage, error) {
	log, err := e.reading(ctx, n)
	if err != nil {
		return EventPage{}, err
	}
	m, err := f.Matcher()
	if err != nil {
		return EventPage{}, err
	}
	back, ok := log.(store.LogBack)
	if !ok {
		return EventPage{}, noLog("the store, read backwards,")
	}
	return back.EventsBack(ctx, store.EventQuery{Match: m, After: upTo, Limit: n})
}

// leftRows is how many events behind a cursor are looked at for one that its filter chooses.
const leftRows = 100

// CursorLeft is what a cursor has not passed.
type CursorLeft struct {
	// CaughtUp says that nothing its filter chooses is left before the head.
	CaughtUp bool
	// Next is when the next event that it has not passed was appended; zero when it has caught
	// up, and when there is none among the next 100 events of its topics.
	Next time.Time
}

// CursorLeft says whether a cursor is behind, and since when. It is no count: that would visit
// everything that is left, and the further behind a cursor is, the more often people ask.
func (e *Engine) CursorLeft(ctx context.Context, c *CursorInfo) (CursorLeft, error) {
	page, err := e.EventPage(ctx, c.Filter, stream.FromPosition(c.At), leftRows)
	if err != nil || len(page.Events) == 0 {
		return CursorLeft{CaughtUp: err == nil && !page.More}, err
	}
	return CursorLeft{Next: page.Events[0].Appended}, nil
}
