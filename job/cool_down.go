package job

import (
	"cmp"
	"fmt"
	"time"
)

// CoolDown is the time in which a queue gives nothing out because a handler was
// throttled, with what is remembered of those before it.
type CoolDown struct {
	Queue string    `json:"queue"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Throttles is the queue's counter: cool-downs that followed each other. It rises
	// when one begins, however many handlers were throttled by then, and falls by one
	// with each CoolDownGrace in which none runs (Counter).
	Throttles int `json:"throttles"`
}

// Bounds of cool-downs.
const (
	MinCoolDown = time.Second
	MaxCoolDown = time.Hour
	// FlatCoolDown is one of a queue whose backoff is off, when the handler does not say
	// how long.
	FlatCoolDown = time.Minute
	// CoolDownGrace is how long a queue goes on without a cool-down before its counter
	// falls by one.
	CoolDownGrace = 2 * time.Minute
	// KeepCoolDown is how long one that is over is remembered, more than it takes the
	// counter of the longest to fall to where it makes no difference.
	KeepCoolDown = 24 * time.Hour
	// MaxThrottles is how many runs of a job may be throttled in a row. The next one
	// counts as a failure: it may never pass.
	MaxThrottles = 100
	maxCounter   = 1000
	// clockSlack is less than any step of a clock. A cool-down that began later than
	// now was written before the clock was set back, and is void: it would last as much
	// longer.
	clockSlack = 10 * time.Second
)

// Throttle is what a throttled handler asks for, and by what its queue grows.
type Throttle struct {
	Hint    time.Duration    // how long the service said; 0 when it did not
	Backoff *BackoffSettings // of the queue; nil means the defaults
}

// Running reports whether the queue gives nothing out. Claims have the same
// condition; a test compares them.
func (c *CoolDown) Running(now time.Time) bool {
	return now.Before(c.Until) && !c.Since.After(now.Add(clockSlack))
}

// Counter is what is left of the queue's counter.
func (c *CoolDown) Counter(now time.Time) int {
	if c.Running(now) || now.Before(c.Until) {
		return c.Throttles
	}
	return max(c.Throttles-int(min(now.Sub(c.Until)/CoolDownGrace, maxCounter)), 0)
}

// Throttled is the cool-down after a handler was throttled, and whether it began now.
//
//   - While one is running the counter stays: that handler was under way when it began,
//     and says nothing new. A hint that goes beyond its end moves the end.
//   - Where backoff is on, it lasts as the backoff of so many attempts would, and not
//     less than the hint: who comes back earlier is refused again.
//   - Where it is off, it lasts as long as the hint, else FlatCoolDown.
func (c CoolDown) Throttled(t Throttle, now time.Time) (next CoolDown, began bool) {
	if c.Running(now) {
		if end := now.Add(bounded(t.Hint)); t.Hint > 0 && end.After(c.Until) {
			c.Until = end
		}
		return c, false
	}
	c.Throttles = min(c.Counter(now)+1, maxCounter)
	c.Since, c.Until = now, now.Add(bounded(max(t.Hint, t.own(c.Throttles))))
	return c, true
}

// own is how long the queue cools down by itself with this counter.
func (t *Throttle) own(counter int) time.Duration {
	var b BackoffSettings
	if t.Backoff != nil {
		b = *t.Backoff
	}
	switch {
	case b.Off && t.Hint > 0:
		return 0
	case b.Off:
		return FlatCoolDown
	}
	return ceiling(cmp.Or(b.Base, BackoffBase), cmp.Or(b.Max, BackoffMax), cmp.Or(b.Factor, 2), counter)
}

// bounded is within the bounds, in microseconds as stores keep it.
func bounded(d time.Duration) time.Duration {
	return min(max(d, MinCoolDown), MaxCoolDown).Truncate(time.Microsecond)
}

// Alone is how long a throttled job waits where no queue cools down for it: its limit
// does, or the store keeps no cool-downs, or could not be asked.
func (t *Throttle) Alone() time.Duration {
	if t.Hint > 0 {
		return bounded(t.Hint)
	}
	return FlatCoolDown
}

// String is "queue mail cools down until 12:04:31 (throttled 3 times)".
func (c *CoolDown) String() string {
	return fmt.Sprintf("queue %s cools down until %s (throttled %s)", c.Queue, stamp(c.Until), times(c.Throttles))
}
