// Package meter measures what one process does (J20): it is told of each run that
// begins and ends, of failures and of calls of the store, adds them up by minute, and
// hands them to the store once a minute and when the process stops.
//
// Being told costs a lock, a look into a map and a few additions, and allocates
// nothing once a queue and kind are known. Everything has a bound: names beyond it are
// counted as metric.Other, and minutes that cannot be handed over are kept for a
// while, then added up with each other.
package meter

import (
	"cmp"
	"log/slog"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/histogram"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
)

// Config says what to measure for whom. Zero fields take the default in brackets.
type Config struct {
	Store   store.Metrics
	Logger  *slog.Logger     // [slog.Default()]
	Label   string           // of the worker
	Version string           // of its build
	Now     func() time.Time // the store's clock, as far as this process knows [time.Now]

	Every time.Duration // between flushes [1 min]; below it the minute that is not over goes in parts
	Idle  time.Duration // between those of a process that has nothing to tell but its load [10 min]

	Names    int // queues and kinds of one minute, at most [200]
	Failures int // fingerprints and kinds of one minute, at most [100]
	Minutes  int // kept while they cannot be handed over, at most [15]
}

// Meter measures one process. Make it with New. A nil one measures nothing.
type Meter struct {
	config Config
	source job.ID

	mu    sync.Mutex // guards what follows
	open  *minute    // nil before the first
	full  []*minute  // those before it, which wait for a flush; the oldest first
	spare *minute    // one that was flushed, for its room
	calls histogram.Histogram

	flushing sync.Mutex // guards what follows; taken before mu
	number   int64      // of the last flush
	pending  *store.MetricFlush
	load     loads
}

// New makes a meter; nil without a store.
func New(c Config) *Meter {
	if c.Store == nil {
		return nil
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Every = cmp.Or(c.Every, time.Minute)
	c.Idle = cmp.Or(c.Idle, 10*time.Minute)
	c.Names = cmp.Or(c.Names, 200)
	c.Failures = cmp.Or(c.Failures, 100)
	c.Minutes = cmp.Or(c.Minutes, 15)
	return &Meter{config: c, source: job.NewID(), load: newLoads()}
}

// EndedRun is one run that has ended.
type EndedRun struct {
	Queue, Kind string
	Count       metric.Count // what it came to
	// QueueTime is how long it waited, Took its handler's time, and Total the time since
	// the enqueue, of a job that is over. A negative one is none.
	QueueTime, Took, Total time.Duration
}

// Ended counts a run at the store's time.
func (m *Meter) Ended(now time.Time, r EndedRun) {
	if m == nil {
		return
	}
	m.mu.Lock()
	m.at(now).jobs(r.Queue, r.Kind, m.config.Names).Ended(r.Count, r.QueueTime, r.Took, r.Total)
	m.mu.Unlock()
}

// Count counts something that has no times.
func (m *Meter) Count(now time.Time, queue, kind string, c metric.Count) {
	if m == nil {
		return
	}
	m.mu.Lock()
	m.at(now).jobs(queue, kind, m.config.Names).Add(c)
	m.mu.Unlock()
}

// Failed counts a failure among those that are alike.
func (m *Meter) Failed(kind string, s metric.Sample) {
	if m == nil {
		return
	}
	fingerprint := job.Fingerprint(s.Message)
	s.Version = cmp.Or(s.Version, m.config.Version)
	m.alike(fingerprint, kind, s)
}

func (m *Meter) alike(fingerprint, kind string, s metric.Sample) {
	m.mu.Lock()
	m.at(s.Time).alike(fingerprint, kind, m.config.Failures).Add(s)
	m.mu.Unlock()
}

// Died counts jobs that upkeep has ended as dead: no run of theirs tells of it. They have no version: that of the process that found them
// is not to blame.
func (m *Meter) Died(deaths []store.Death) {
	if m == nil || len(deaths) == 0 {
		return
	}
	now := m.config.Now()
	for _, d := range deaths {
		m.Count(now, d.Queue, d.Kind, metric.Dead)
		m.alike(job.Fingerprint(d.Reason), d.Kind, metric.Sample{FailedJob: metric.FailedJob{Job: d.ID, Time: now}, Dead: true, Message: d.Reason})
	}
}

// Call counts a call of the store.
func (m *Meter) Call(took time.Duration) {
	if m == nil {
		return
	}
	m.mu.Lock()
	m.calls.Add(took)
	m.mu.Unlock()
}

// at is the minute of a time; one that is over goes to those that wait. What comes a
// little late belongs to the one that is open. The caller holds mu.
func (m *Meter) at(now time.Time) *minute {
	if m.open != nil && now.Before(m.open.end) {
		return m.open
	}
	m.shut()
	m.open, m.spare = m.spare, nil
	if m.open == nil {
		m.open = newMinute()
	}
	m.open.start = now.UTC().Truncate(time.Minute)
	m.open.end = m.open.start.Add(time.Minute)
	return m.open
}

// shut ends the open minute. The caller holds mu.
func (m *Meter) shut() {
	if m.open == nil {
		return
	}
	m.full = append(m.full, m.open)
	m.open = nil
	if len(m.full) > m.config.Minutes {
		m.full[0].merge(m.full[1], m.config.Names, m.config.Failures)
		m.full = append(m.full[:1], m.full[2:]...)
	}
}
