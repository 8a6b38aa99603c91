package consumer

import (
	"math/rand/v2"
	"time"

	"github.com/pawlwork/pawl/stream"
)

// Scope is where a trouble came from.
type Scope uint8

const (
	Read    Scope = iota // fetching, waiting, joining
	Decode               // an entry that cannot be read
	Failure              // a delivery that failed
	Ack                  // settling
	Reclaim              // the member was lost, or could not join again
	Panic                // of a handler
	scopes
)

func (s Scope) String() string {
	return [...]string{"read", "decode", "handler", "ack", "reclaim", "panic"}[s]
}

// Trouble is something that went wrong and that the subscription lives with.
type Trouble struct {
	Scope Scope
	Err   error
	Event *stream.Event // of Decode, Failure and Panic
	Stack []byte        // of Panic
}

// note counts a trouble and keeps it for the observer, who is told without the lock. c.mu is held.
func (c *Consumer) note(t Trouble) {
	c.stats.Troubles[t.Scope]++
	c.untold = append(c.untold, t)
}

// unlock gives c.mu back and tells the log and the observer. One that panics is its own trouble.
func (c *Consumer) unlock() {
	list, dead := c.untold, c.unlogged
	c.untold, c.unlogged = nil, nil
	c.mu.Unlock()
	for _, s := range dead {
		e := s.delivery.Event
		c.config.Logger.Warn("an event is dead", "group", c.config.Membership.Group, "topic", e.Topic,
			"id", e.ID, "failures", s.Failures, "reason", s.Reason)
	}
	if c.config.Observe == nil || len(list) == 0 {
		return
	}
	defer func() {
		if value := recover(); value != nil {
			c.config.Logger.Error("the observer of a subscription panicked", "group", c.config.Membership.Group, "panic", value)
		}
	}()
	for _, t := range list {
		c.config.Observe(t)
	}
}

// Bounds of the pauses after errors of a backend.
const (
	pauseFirst = 100 * time.Millisecond
	pauseMost  = 5 * time.Second
)

// pauses grow from error to error, with jitter over the upper half, until there was work.
type pauses struct{ last time.Duration }

func (p *pauses) next() time.Duration {
	p.last = min(max(2*p.last, pauseFirst), pauseMost)
	return p.last/2 + rand.N(p.last/2+1)
}

func (p *pauses) reset() { p.last = 0 }
