package consumer

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pawlwork/pawl/stream"
)

// Stats are what a subscription does now and has done.
type Stats struct {
	Running int // handlers
	Waiting int // events behind another of their key
	Resting int // events that failed and are tried again here
	Open    int // all of them, and verdicts on their way
	// Full: as many are open as may be, so nothing is fetched before some are done.
	Full bool
	// Blocked are the keys that keep their stripes from being fetched, by topic and key.
	Blocked []Blocked

	Handled  uint64 // given to a handler
	Acked    uint64 // settled so, as all the following
	Retried  uint64
	Kept     uint64
	Dead     uint64
	Released uint64
	Expired  uint64         // acked without a handler
	Dropped  uint64         // without a verdict
	Lost     uint64         // open when the member was taken for dead
	Twice    uint64         // verdicts on a delivery that had one, or whose handler had returned
	Joins    uint64         // memberships
	Turns    uint64         // calls of Next
	Troubles [scopes]uint64 // by Scope
}

func (s *Stats) count(v stream.Verdict) {
	*[...]*uint64{&s.Acked, &s.Retried, &s.Kept, &s.Dead, &s.Released}[v]++
}

// Why says what keeps the subscription from taking more, in sentences.
func (s *Stats) Why() (list []string) {
	if s.Full {
		list = append(list, fmt.Sprintf("nothing is read: %d events are open, of which %d wait behind one of their key and %d failed and are tried again later",
			s.Open, s.Waiting, s.Resting))
	}
	for _, b := range s.Blocked {
		list = append(list, b.String())
	}
	return list
}

// Stats reads them.
func (c *Consumer) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Running = c.slots
	if c.life != nil {
		s.Open = len(c.life.open)
		s.Full = s.Open >= c.config.Open
		for _, it := range c.life.open {
			switch it.stage {
			case waiting:
				s.Waiting++
			case resting:
				s.Resting++
			}
		}
	}
	for _, ln := range c.lines {
		if ln.blocked {
			s.Blocked = append(s.Blocked, ln.why())
		}
	}
	slices.SortFunc(s.Blocked, func(a, b Blocked) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Key, b.Key))
	})
	return s
}
