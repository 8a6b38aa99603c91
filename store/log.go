package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
)

// Log is a store that keeps events. Nobody reads past the head: before it all events are
// there that will ever be, so a reader that goes from position to position skips nothing,
// whatever commits late.
type Log interface {
	// Append accepts events, all or none, in order. Those of one call are in one commit.
	Append(ctx context.Context, drafts []stream.Publication) ([]stream.PublishReply, error)
	// Head is how far may be read now.
	Head(ctx context.Context) (stream.Position, error)
	// Events reads what lies behind a position, not past the head. Events that have expired,
	// by the store's clock, are passed over.
	Events(ctx context.Context, q EventQuery) (EventPage, error)
	// Topics lists up to n topics that match, by name, after one.
	Topics(ctx context.Context, pattern stream.TopicPattern, after string, n int) ([]TopicInfo, error)
}

// LogTopics is a log that tells which topics have new events.
type LogTopics interface {
	// TopicsBetween names the topics of events behind one position up to another. It looks at
	// the first limit of them, and all says whether that was all.
	TopicsBetween(ctx context.Context, after, upto stream.Position, limit int) (topics []string, all bool, err error)
}

// TxLog is a transaction that takes events along: they are there when it commits.
type TxLog interface {
	Append(ctx context.Context, drafts []stream.Publication) ([]stream.PublishReply, error)
}

// EventQuery asks for events in order.
type EventQuery struct {
	Match stream.Matcher
	After stream.Position
	// Limit bounds the rows that are visited, and so those that are answered. 0 means
	// MaxEventPage.
	Limit int
}

// MaxEventPage is how many rows one query visits, at most.
const MaxEventPage = 1000

// EventPage is some events in order.
type EventPage struct {
	Events []stream.Event
	// Next is where to go on: behind the last that was visited, also where it did not match.
	Next stream.Position
	// More says that there may be more before the head.
	More bool
	// Visited is how many rows were looked at.
	Visited int
	// Trimmed says that retention has removed events of these topics behind where the query
	// began, which its reader has not seen. It goes on with what is kept.
	Trimmed bool
	// Head is how far could be read: there is nothing new before it has moved on.
	Head stream.Position
}

// Check refuses what cannot be asked.
func (q *EventQuery) Check() error {
	if q.Limit < 0 || q.Limit > MaxEventPage {
		return job.Invalid("limit", q.Limit, fmt.Sprintf("must be 1..%d, or 0 for that", MaxEventPage))
	}
	return nil
}

// TopicInfo is a topic that has had an event.
type TopicInfo struct {
	Name string
	ID   int32
	// Newest is when its newest event was appended, where a log tells (LogBack).
	Newest time.Time
	// Versioned topics count the events of each key.
	Versioned bool
}

var (
	// ErrPosition: a position is of another life of the log, which was restored or lost
	// its last moments since, or it lies behind the newest event.
	ErrPosition = errors.New("pawl: position is not of this log")
)
