package store

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/stream"
)

// Trimmer is a log that removes events whose time is over: by age, by count, and those that
// have expired. Positions survive: nothing gets a number a second time.
type Trimmer interface {
	// Trim removes from the topics that follow a name, within its bounds, and says where to
	// go on. It is safe in every process at once, and never removes what nobody could have
	// read yet. What a topic keeps is what TrimRequest.Keep says.
	Trim(ctx context.Context, q TrimRequest) (TrimReply, error)
}

// Bounds of one Trim.
const (
	MaxTrimTopics = 500     // that are looked at
	MaxTrimBytes  = 8 << 20 // of data, about
	// TrimCounts is how many events are counted for each that may be removed.
	TrimCounts = 20
)

// TrimRequest says what is kept.
type TrimRequest struct {
	// Keep is what holds for a topic; nil: all of it is kept, and only what has expired goes.
	Keep  func(topic string) stream.TopicSettings
	After string // the topic by which the last one ended
	Limit int    // events that are removed, at most
}

// TrimReply is what a Trim did.
type TrimReply struct {
	Removed int // by age or count
	Expired int
	Counted int // events that were counted on the way
	// Next is the topic to go on behind; "": it was the last. A topic with more to remove than
	// a Trim may waits until the others have had their turn.
	Next string
	// More says that it came to a bound: there is more to remove when all had their turn.
	More bool
}

// TrimState is what is kept of a topic's retention.
type TrimState struct {
	Low  int64 // every event up to it is gone: readers seek from here
	Lost int64 // the newest that went by age or count: who has not read it will not
	// Counted is how far events were counted, and Kept how many there are from Low to there.
	Counted, Kept int64
}

// TrimRow is one of the oldest events of a topic.
type TrimRow struct {
	Seq               int64
	Appended, Expires time.Time
	Bytes             int
}

// Cut says how many of the oldest events go, and moves the state behind them. rows are those
// behind Low, in order: what is kept ends it, so that nothing is removed out of order. bytes
// is how many may go, but for the first, and is none when that is why it ends.
func (s *TrimState) Cut(rows []TrimRow, keep stream.TopicSettings, now time.Time, bytes *int) (n int) {
	for i := range rows {
		r := &rows[i]
		expired := !r.Expires.IsZero() && !now.Before(r.Expires)
		old := keep.KeepFor > 0 && !now.Before(r.Appended.Add(keep.KeepFor))
		counted := r.Seq <= s.Counted
		over := keep.KeepCount > 0 && counted && s.Kept > int64(keep.KeepCount)
		if !expired && !old && !over {
			break
		}
		if n > 0 && *bytes < r.Bytes {
			*bytes = 0
			break
		}
		*bytes -= r.Bytes
		if counted {
			s.Kept--
		}
		if !expired {
			s.Lost = r.Seq
		}
		s.Low = r.Seq
		n++
	}
	if s.Counted < s.Low {
		s.Counted, s.Kept = s.Low, 0
	}
	return n
}
