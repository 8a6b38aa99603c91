package pawltest

import (
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// Option changes how Run, Real and Work set the engine up.
type Option func(*settings)

// settings are the options of one test.
type settings struct {
	changes    []func(*pawl.Config)
	standstill time.Duration
	handling   []pawl.HandleOption
	enqueuing  []pawl.EnqueueOption
}

// How long a test may stand still unless Standstill says otherwise: in virtual
// time nothing should take real time, in real time a handler may.
const (
	virtualStandstill = 10 * time.Second
	realStandstill    = time.Minute
)

func settingsOf(opts []Option, standstill time.Duration) *settings {
	s := &settings{standstill: standstill}
	for _, o := range opts {
		o(s)
	}
	return s
}

func (s *settings) check(t *testing.T) {
	t.Helper()
	if s.standstill <= 0 {
		t.Fatal(job.Invalid("pawltest.Standstill", s.standstill, "must be above 0"))
	}
}

// Config changes the engine's configuration. By default it serves queue
// "default" with 10 workers and logs warnings to the test.
func Config(change func(*pawl.Config)) Option {
	return func(s *settings) { s.changes = append(s.changes, change) }
}

// Standstill is how long, in real time, nothing may move before the test fails.
//
// In virtual time [10 s]: no job began or ended, no call of this package
// returned, and every goroutine of the test was blocked, at least one of them by
// something outside of the test. In real time [1 min]: RunUntilIdle, Advance or
// Work waits, and no handler began or ended.
func Standstill(limit time.Duration) Option {
	return func(s *settings) { s.standstill = limit }
}

// Handling gives options to the handler of Work, as pawl.Handle takes them.
func Handling(opts ...pawl.HandleOption) Option {
	return func(s *settings) { s.handling = append(s.handling, opts...) }
}

// Enqueuing gives options to the job of Work, as Enqueue takes them.
func Enqueuing(opts ...pawl.EnqueueOption) Option {
	return func(s *settings) { s.enqueuing = append(s.enqueuing, opts...) }
}
