package supervise

import (
	"context"
	"slices"
	"time"
)

// Kind tells the three kinds of service apart.
type Kind string

// The kinds, named after their constructors. A sharded tick is an Every too.
const (
	KindEvery Kind = "every"
	KindLoop  Kind = "loop"
	KindOnce  Kind = "once"

	kindGroup Kind = "group"
)

// Service describes one service or one group. It is a description only: it can be copied, and one
// Service may be given to several Supervisors, which then share nothing.
// Faults are not reported here but by New, all at once.
type Service struct {
	name     string
	kind     Kind
	interval time.Duration
	run      func(context.Context) error
	sharded  bool
	runShard func(context.Context, string) error
	shards   []string
	children []Service

	policy      Policy
	startJitter time.Duration
	timeout     time.Duration
	leadership  Leadership
	given       []string // names of the options given, to refuse what the kind cannot honour
}

// Every is a tick: runOnce runs at once, then every interval, measured from start to start.
// Runs never overlap. A run that outlasts the interval delays the next tick, which then starts
// right after it; the ticks after that count from there, so missed ticks never come as a burst.
// An error is logged and counted and the ticking goes on. NextIn lets a run choose the next start,
// Supervisor.Wake asks for one now. Its policy, Always unless Restart says otherwise, is for panics.
func Every(name string, interval time.Duration, runOnce func(ctx context.Context) error, options ...Option) Service {
	return describe(Service{name: name, kind: KindEvery, interval: interval, run: runOnce}, options)
}

// EveryShard is a tick over shards: each cycle runs runShard for every shard, one after the
// other, in the order given. A shard that fails leaves the others alone. One that fails three times in
// a row is skipped for ten cycles, then tried again; it is skipped for ten more if that fails
// as well, and is a normal shard again once it succeeds.
func EveryShard(name string, interval time.Duration, shards []string, runShard func(ctx context.Context, shard string) error, options ...Option) Service {
	return describe(Service{name: name, kind: KindEvery, interval: interval, sharded: true, shards: slices.Clone(shards), runShard: runShard}, options)
}

// Loop is a service that runs until its context ends. Returning nil earlier is its clean end;
// an error or a panic goes to its policy, Always unless Restart says otherwise.
func Loop(name string, fn func(ctx context.Context) error, options ...Option) Service {
	return describe(Service{name: name, kind: KindLoop, run: fn}, options)
}

// Once is a step that must have succeeded before what comes after it is started: Start waits for
// it. An error or a panic goes to its policy, Never unless Restart says otherwise; when that
// gives up, Start stops what it had started and returns the error.
func Once(name string, fn func(ctx context.Context) error, options ...Option) Service {
	return describe(Service{name: name, kind: KindOnce, run: fn}, options)
}

// Group gives services a common place in the order and a common name: the service "rescue" in
// the group "keeper" is "keeper/rescue" in logs, snapshots and answers. Groups nest.
func Group(name string, services ...Service) Service {
	return Service{name: name, kind: kindGroup, children: slices.Clone(services)}
}

func describe(s Service, options []Option) Service {
	for _, option := range options {
		if option == nil {
			s.given = append(s.given, "nil")
			continue
		}
		option(&s)
	}
	return s
}

// Option changes one service. An option that its kind cannot honour is a fault that New reports.
type Option func(*Service)

// Restart sets the policy. [Always{} for Every, EveryShard and Loop, Never{} for Once]
func Restart(policy Policy) Option {
	return func(s *Service) { s.policy = policy; s.given = append(s.given, "Restart") }
}

// StartJitter delays a tick's first run by a random part of at most, so that processes started
// together do not tick together. [0: the first run is at once]
func StartJitter(atMost time.Duration) Option {
	return func(s *Service) { s.startJitter = atMost; s.given = append(s.given, "StartJitter") }
}

// Timeout ends the context of each single run of a tick (of each shard) after d. It is how one hung
// shard is kept from holding up the others. [none]
func Timeout(d time.Duration) Option {
	return func(s *Service) { s.timeout = d; s.given = append(s.given, "Timeout") }
}

// OnlyIfMine makes a tick ask before each cycle, also one asked for by Wake, whether to run it. [always]
func OnlyIfMine(leadership Leadership) Option {
	return func(s *Service) { s.leadership = leadership; s.given = append(s.given, "OnlyIfMine") }
}

// nextIn is a success that chooses the start of the next run.
type nextIn time.Duration

func (n nextIn) Error() string { return "next run in " + time.Duration(n).String() }

// NextIn is what a tick's function returns to say: all went well, run me again in d, counted from now,
// instead of after the interval. 0 means at once, to go on draining; the floor of intervals does not
// apply. Of several shards the soonest wish counts, and one without a wish wishes for the interval.
// Return it as it is: wrapped or joined it is an error like any other, lest it hide one.
func NextIn(d time.Duration) error { return nextIn(max(d, 0)) }
