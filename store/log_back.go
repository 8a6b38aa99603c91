package store

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/stream"
)

// LogBack is a log that is read from its newest event on: what people who look at a topic
// ask for. Programs that must miss nothing read forward (Log).
type LogBack interface {
	// EventsBack reads what lies up to a position (q.After; zero: the head), the newest first.
	// Next is where to go on: before the last that was visited.
	EventsBack(ctx context.Context, q EventQuery) (EventPage, error)
	// NewestEvents says when the newest event of each of some topics was appended, by the
	// topic's number. One row is visited for each.
	NewestEvents(ctx context.Context, topics []TopicInfo) (map[int32]time.Time, error)
}

// BackPage makes a page of rows that were visited backwards. ours says which of them are of
// this namespace, and have not expired.
func BackPage(q *EventQuery, head stream.Position, limit int, all []stream.Event, ours func(i int) bool) EventPage {
	page := EventPage{Next: q.After, Visited: len(all), Head: head}
	for i := range all {
		p := all[i].Position
		page.Next = stream.At(p.Epoch(), p.Seq()-1)
		if ours(i) && q.Match.Match(&all[i]) {
			page.Events = append(page.Events, all[i])
		}
	}
	page.More = len(all) == limit && page.Next.Seq() > 0
	return page
}
