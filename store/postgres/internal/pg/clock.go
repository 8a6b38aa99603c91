package pg

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Clock is the server's clock, read by each statement for itself.
// statement_timestamp is the same throughout a statement, which makes it usable
// as the bound of an index scan; clock_timestamp is not, and the transaction's
// own start would be stale in a user's long transaction.
type Clock struct {
	offset atomic.Int64 // microseconds, 0 outside tests

	mu   sync.Mutex
	read time.Time // the server's time, without the offset, as last read
	when time.Time // this process's time then
}

// expression is the SQL that reads the clock.
func (c *Clock) expression() string {
	offset := c.offset.Load()
	if offset == 0 {
		return "statement_timestamp()"
	}
	return fmt.Sprintf("(statement_timestamp() + interval '%d microseconds')", offset)
}

// instant is the SQL that reads the clock where a lock has been waited for: the
// statement began before that, and what others have changed since would lie ahead.
func (c *Clock) instant() string {
	offset := c.offset.Load()
	if offset == 0 {
		return "clock_timestamp()"
	}
	return fmt.Sprintf("(clock_timestamp() + interval '%d microseconds')", offset)
}

// SetClockOffset shifts the store's clock in this process. It is for tests: no
// other part of Pawl calls it.
func (s *Link) SetClockOffset(d time.Duration) {
	s.Clock.offset.Store(d.Microseconds())
	s.Texts.forget()
}

// Note keeps the store's time that an answer told.
func (c *Clock) Note(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read, c.when = now.Add(-time.Duration(c.offset.Load())*time.Microsecond), time.Now()
}

// Estimate is what the store's clock should show now, without asking it. It only
// decides when to look again, never what is due.
func (c *Clock) Estimate() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read.IsZero() {
		return time.Time{}
	}
	return c.read.Add(time.Since(c.when) + time.Duration(c.offset.Load())*time.Microsecond)
}

// Instant is this process's time, from which a rhythm begins.
func Instant() time.Time { return time.Now() }

// Stopwatch measures how long a statement took. It is not the store's time: it
// only decides how much work the next one gets.
func Stopwatch() func() time.Duration {
	begin := time.Now()
	return func() time.Duration { return time.Since(begin) }
}
