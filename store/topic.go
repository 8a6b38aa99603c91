package store

import (
	"context"

	"github.com/pawlwork/pawl/stream"
)

// TopicReader is a log that tells more of one topic.
type TopicReader interface {
	// TopicNamed is how a topic stands. ErrNotFound where it has had no event.
	TopicNamed(ctx context.Context, name string) (TopicState, error)
}

// MaxDelayedCount is how many delayed events of a topic are counted.
const MaxDelayedCount = 1000

// TopicState is how a topic stands.
type TopicState struct {
	TopicInfo
	// Low is up to where its events were removed; zero: none were.
	Low stream.Position
	// Kept is how many it has, as far as they were counted: on topics that keep so many.
	Kept int64
	// Delayed is how many events wait for their time, MaxDelayedCount at most.
	Delayed int
}
