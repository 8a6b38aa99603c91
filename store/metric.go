package store

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
)

// Metrics is a store that keeps what processes measure (J20). Rows come as parts: a
// minute of one process. They are rolled up into minutes of all processes, and those
// into hours; a row is always in one of the three, so that a sum over all rows of a
// range counts everything once, whatever has been rolled up.
type Metrics interface {
	// AddMetrics keeps what a process has measured. A flush is kept once, however
	// often it is sent and whatever has been rolled up meanwhile: its number must be
	// higher than that of every flush of its source that was kept before.
	AddMetrics(ctx context.Context, f MetricFlush) error
	// ReadMetrics adds up the rows of a range, all of one moment.
	ReadMetrics(ctx context.Context, q MetricQuery) (MetricReply, error)
	// RollUp merges up to limit rows whose time has come. It is safe in every process
	// at once: where another is at it, nothing is done.
	RollUp(ctx context.Context, limit int) (RollUpReply, error)
}

// MetricWidth is what a row is of. The numbers are stored: never renumber.
type MetricWidth int16

// The widths.
const (
	MetricPart   MetricWidth = 1 // a minute, or what is left of it, as one process flushed it
	MetricMinute MetricWidth = 2 // a minute of all processes
	MetricHour   MetricWidth = 3 // an hour of all processes
)

func (w MetricWidth) String() string {
	switch w {
	case MetricPart:
		return "part"
	case MetricMinute:
		return "minute"
	case MetricHour:
		return "hour"
	}
	return fmt.Sprintf("width(%d)", int16(w))
}

// Span is how much time a row is of.
func (w MetricWidth) Span() time.Duration {
	if w == MetricHour {
		return time.Hour
	}
	return time.Minute
}

// When rows are rolled up, and how long they are kept.
const (
	MetricMergeAfter = 10 * time.Minute    // the end of a minute, over processes
	MetricHoursAfter = 48 * time.Hour      // the end of an hour, its minutes into it
	LoadHoursAfter   = 6 * time.Hour       // of workers: there may be more of them than kinds
	KeepMetrics      = 30 * 24 * time.Hour // from the beginning of the row
	// KeepFlush is how long the number of a source's last flush is kept: longer than
	// its rows, and than anybody sends a flush again.
	KeepFlush = KeepMetrics + 24*time.Hour
)

// Bounds of metrics.
const (
	MaxFlushRows  = 4_000     // of one flush
	MaxFlushBytes = 8 << 20   // of one flush
	MaxMetricName = 255       // bytes, of a name or kind
	MaxMetricRows = 1_000_000 // that one call reads
	MaxPoints     = 100_000   // that one call answers
)

// MetricFlush is what one process has measured since its last one.
type MetricFlush struct {
	Source job.ID // of one life of one process
	Number int64  // from 1, ascending
	// Unhurried: nobody waits for it. A store may keep it seconds later, together with something else.
	Unhurried bool
	// Rows are each of another class, minute, name or kind.
	Rows []MetricRow
}

// MetricRow is a value of metric.Class, for a time.
type MetricRow struct {
	Class metric.Class
	// Start is when its time begins. One that a store is given is that of a minute; one
	// ahead of the store's clock counts from its current minute.
	Start time.Time
	Name  string
	Kind  string
	Data  []byte // as metric.Value.Append writes it
}

// MetricQuery asks for the rows of a range.
type MetricQuery struct {
	Class metric.Class
	// From and To are the range; a row that reaches into it counts wholly.
	From, To time.Time
	Name     string        // or a pattern, such as "mail.*"; empty means all
	Kind     string        // or a pattern
	Step     time.Duration // what one point is of, whole minutes; 0 means one point for all
}

// MetricReply is the answer to ReadMetrics.
type MetricReply struct {
	Points []MetricPoint // by name, kind and start
	// Unreadable is how many rows were left out because this build cannot read them.
	Unreadable int
}

// MetricPoint is what rows of one name and kind add up to.
type MetricPoint struct {
	Name, Kind string
	Start      time.Time
	Span       time.Duration // a step, or an hour where the rows are of hours and the step is shorter
	Value      metric.Value
}

// RollUpReply is what RollUp did.
type RollUpReply struct {
	Merged int  // rows that went into others
	More   bool // it came to its bound
}

// CheckFlush refuses what no store can keep.
func CheckFlush(f MetricFlush) error {
	if f.Source == (job.ID{}) {
		return job.Invalid("source of metrics", f.Source, "must be set")
	}
	if f.Number < 1 {
		return job.Invalid("number of a flush", f.Number, "must be 1 or more")
	}
	if len(f.Rows) > MaxFlushRows {
		return job.Invalid("metrics", fmt.Sprintf("%d rows", len(f.Rows)), fmt.Sprintf("must be at most %d in one flush", MaxFlushRows))
	}
	bytes := 0
	type key struct {
		class      metric.Class
		start      int64
		name, kind string
	}
	seen := make(map[key]bool, len(f.Rows))
	for i := range f.Rows {
		r := &f.Rows[i]
		bytes += len(r.Data)
		k := key{r.Class, r.Start.UnixMicro(), r.Name, r.Kind}
		switch {
		case seen[k]:
			return job.Invalid("metric", fmt.Sprintf("%v %s %s", r.Class, r.Name, r.Kind), "must be in a flush once for each minute")
		case r.Class < 1:
			return job.Invalid("class of a metric", r.Class, "must be 1 or more")
		case r.Start.IsZero() || !r.Start.Equal(r.Start.Truncate(time.Minute)):
			return job.Invalid("start of a metric", r.Start, "must be that of a minute")
		case len(r.Data) == 0 || len(r.Data) > metric.MaxData:
			return job.Invalid("data of a metric", fmt.Sprintf("%d bytes", len(r.Data)), fmt.Sprintf("must be 1..%d", metric.MaxData))
		}
		seen[k] = true
		for field, name := range map[string]string{"name of a metric": r.Name, "kind of a metric": r.Kind} {
			if len(name) > MaxMetricName || !utf8.ValidString(name) {
				return job.Invalid(field, name, fmt.Sprintf("must be UTF-8 of at most %d bytes", MaxMetricName))
			}
		}
	}
	if bytes > MaxFlushBytes {
		return job.Invalid("metrics", fmt.Sprintf("%d bytes", bytes), fmt.Sprintf("must be at most %d in one flush", MaxFlushBytes))
	}
	return nil
}

// AheadFlush is the flush number of the nth row of a flush that is ahead of the store's
// clock: one of its own, because several come to the same minute.
func AheadFlush(number int64, n int) int64 { return -(number*aheadFlushes + int64(n)) }

const aheadFlushes = 10_000 // more than MaxFlushRows

// CheckMetricQuery refuses ranges that have no end, or too many points.
func CheckMetricQuery(q MetricQuery) error {
	switch {
	case metric.New(q.Class) == nil:
		return job.Invalid("class of metrics", q.Class, "is not known")
	case q.From.IsZero() || !q.From.Before(q.To):
		return job.Invalid("range of metrics", fmt.Sprintf("%v to %v", q.From, q.To), "must end after it begins")
	case q.Step < 0 || q.Step%time.Minute != 0:
		return job.Invalid("step of metrics", q.Step, "must be whole minutes, or 0 for one point")
	case q.Step > 0 && int64(q.To.Sub(q.From)/q.Step) > MaxPoints:
		return job.Invalid("step of metrics", q.Step, fmt.Sprintf("makes more than %d points", MaxPoints))
	}
	return nil
}
