package lite

import (
	"sync/atomic"
	"time"
)

// Clock is the store's time: the process's, handed into SQL as a parameter.
// Processes that share a file share a machine and so a clock. SQL's own 'now'
// would be a second clock that tests cannot move.
type Clock struct {
	offset atomic.Int64 // nanoseconds, only ever set by storetest
}

// Now is the time in microseconds since the epoch, the unit of every column.
func (c *Clock) Now() int64 { return time.Now().UnixMicro() + c.offset.Load()/1000 }

// Instant and Since measure how long something in this process takes. A step of
// the clock does not change that.
func (c *Clock) Instant() time.Time { return time.Now() }

func (c *Clock) Since(t time.Time) time.Duration { return time.Since(t) }

// SetOffset moves the clock against the process's.
func (c *Clock) SetOffset(d time.Duration) { c.offset.Store(int64(d)) }

// endOfTime is the last moment a column holds, the end of the year 9999: later
// times are that one, which no job lives to see.
const endOfTime = 253_402_300_799_999_999

// Micros and TimeOf cross the edge between time.Time and the columns. The zero
// time is "none" and never stored.
func Micros(t time.Time) int64 {
	if t.Year() > 9999 {
		return endOfTime
	}
	return t.UnixMicro()
}

func TimeOf(us int64) time.Time { return time.UnixMicro(us).UTC() }

// Later adds a duration to a time.
func Later(now int64, d time.Duration) int64 { return min(now+d.Microseconds(), endOfTime) }
