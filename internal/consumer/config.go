package consumer

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
)

// Defaults of a subscription.
const (
	DefaultInFlight   = 16
	DefaultFetch      = 64
	DefaultDeliveries = 10
	DefaultBehind     = 64
	DefaultOpen       = 1024
	DefaultGrace      = 30 * time.Second

	maxInFlight   = 10_000
	maxFetch      = 10_000
	maxDeliveries = 1_000_000
	maxOpen       = 100_000
)

// AckMode says when a delivery is acknowledged.
type AckMode uint8

const (
	// OnSuccess: by what the handler said, or else by what it returned.
	OnSuccess AckMode = iota
	// OnReceive: before the handler starts. An event is delivered at most once.
	OnReceive
	// Manual: by what the handler said, only.
	Manual
)

// Config says what to run. Zero fields have the defaults in brackets.
type Config struct {
	Backend    stream.Backend
	Membership stream.Membership // a blank member gets a name, which it keeps
	Handler    Handler
	Lot        int     // deliveries of one call of the handler at most [1]
	InFlight   int     // deliveries that handlers work on at once, exactly [16]
	Fetch      int     // deliveries of one Next at most [64]
	Ack        AckMode // [OnSuccess]
	Deliveries int     // failed ones until an event is dead [10]; 1: at the first failure
	Backoff    BackoffFunc
	Behind     int // in ordered mode: events of one key that may wait for one before them [64]
	// Open is how many deliveries the member has open at most: running, waiting, resting
	// [1,024, or InFlight]. Without it, as many keys might wait as there are.
	Open    int
	Grace   time.Duration // how long handlers may go on when the context of Run has ended [30 s]
	Observe func(Trouble) // told of troubles; it must not block
	Logger  *slog.Logger  // [none]
}

// BackoffFunc gives the wait before a failed event is tried again. It depends on nothing else.
type BackoffFunc func(f Failed) time.Duration

// Failed is what a backoff function sees.
type Failed struct {
	Failures int // deliveries that failed, from 1
	Err      error
	Event    *stream.Event
}

// DefaultBackoff doubles from a second up to five minutes, spread over the upper half.
func DefaultBackoff(f Failed) time.Duration {
	return job.Exponential(time.Second, 5*time.Minute)(job.FailedAttempt{Attempt: f.Failures})
}

// complete fills in defaults and reports all faults at once.
func (c *Config) complete() error {
	var errs []error
	refuse := func(is bool, field string, value any, rule string) {
		if is {
			errs = append(errs, job.Invalid(field, value, rule))
		}
	}
	refuse(c.Handler == nil, "handler", nil, "must be set")
	if c.Backend == nil {
		refuse(true, "backend", nil, "must be set")
	} else {
		errs = append(errs, c.Membership.Check(c.Backend.Features()))
	}
	refuse(c.Behind != 0 && c.Membership.Mode != stream.Ordered, "behind", c.Behind, "can be had in ordered mode only")
	refuse(c.Ack == OnReceive && c.Backoff != nil, "backoff", "a function", "cannot be had when events are acknowledged on receive")
	c.Lot = cmp.Or(c.Lot, 1)
	c.InFlight = cmp.Or(c.InFlight, DefaultInFlight)
	c.Fetch = cmp.Or(c.Fetch, DefaultFetch)
	c.Deliveries = cmp.Or(c.Deliveries, DefaultDeliveries)
	c.Behind = cmp.Or(c.Behind, DefaultBehind)
	c.Open = cmp.Or(c.Open, max(DefaultOpen, c.InFlight))
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	for _, n := range []struct {
		field      string
		value, max int
	}{
		{"lot", c.Lot, maxInFlight}, {"in flight", c.InFlight, maxInFlight}, {"fetch", c.Fetch, maxFetch},
		{"deliveries", c.Deliveries, maxDeliveries}, {"behind", c.Behind, maxOpen}, {"open", c.Open, maxOpen},
	} {
		refuse(n.value < 1 || n.value > n.max, n.field, n.value, fmt.Sprintf("must be 1..%d", n.max))
	}
	refuse(c.Lot > c.InFlight, "lot", c.Lot, fmt.Sprintf("must be at most what is in flight, %d", c.InFlight))
	refuse(c.Open < c.InFlight, "open", c.Open, fmt.Sprintf("must be at least what is in flight, %d", c.InFlight))
	refuse(c.Ack > Manual, "acknowledgement", uint8(c.Ack), "must be on success, on receive or manual")
	refuse(c.Grace < 0, "grace", c.Grace, "must be 0 (the default) or more")
	refuse(c.Ack == OnReceive && c.Membership.DeadLetter != "", "dead-letter topic", c.Membership.DeadLetter,
		"cannot be had when events are acknowledged on receive: none fails")
	if c.Backoff == nil {
		c.Backoff = DefaultBackoff
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Membership.Member == "" {
		c.Membership.Member = "member-" + rand.Text()
	}
	return errors.Join(errs...)
}
