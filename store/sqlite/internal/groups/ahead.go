package groups

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/log"
	"github.com/pawlwork/pawl/stream"
)

// ReadAhead reads what lies behind a place of a shelf, in a snapshot: there is one writer, so what
// comes later has higher numbers.
func ReadAhead(c *lite.Snapshot, match *stream.Matcher, place int64, room []*store.Given) (store.Ahead, error) {
	n, bytes := 0, 0
	b := log.Behind{Pattern: match.Pattern, From: place, Limit: visits(match, len(room))}
	_, err := log.Read(c, b, func(at log.Number, e *log.Entry) bool {
		if at.Stripe == log.NotTaken || e.Bad == nil && !match.Match(&e.Event) {
			return true
		}
		if bytes += len(e.Data); bytes > store.TurnBytes {
			return false // a turn that reads takes it
		}
		*room[n] = store.Given{Event: e.Event, Bad: e.Bad, Stripe: at.Stripe}
		n++
		return n < len(room)
	})
	return store.Ahead{Place: place, Given: room[:n]}, err
}

// visits is how many events are looked at for so many that are wanted.
func visits(m *stream.Matcher, n int) int {
	if m.Narrow() {
		return max(n, store.TurnVisits)
	}
	return n
}

// takeAhead takes what was read behind the place at which the shelf is, and says how far that is.
func (u *turn) takeAhead(from int64) (upto int64) {
	a := u.Ahead
	if a == nil || a.Place != from {
		return from
	}
	wanted := u.Want.N - len(u.reply.Given)
	if u.reply.Taken = min(wanted, len(a.Given)); u.reply.Taken == 0 {
		return from
	}
	u.reply.More = u.reply.Taken < wanted
	return a.Given[u.reply.Taken-1].Event.Position.Seq()
}
