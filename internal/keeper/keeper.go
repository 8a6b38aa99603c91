// Package keeper keeps a namespace in order: it declares workers lost that no
// longer beat, takes their jobs back, ends jobs past their deadline, applies what
// users' transactions have left, does what operators have begun, removes what is past
// its retention, rolls up what was measured, reports jobs that nobody takes, appends events
// when they are due and removes them when their time is over.
//
// Every tick is one bounded round, safe to run in every process at once: two
// keepers that race do the work once, and the loser finds nothing. So that they
// seldom race, and an idle fleet asks for little, the leader does its rounds every
// period and the others every three; and one look says for several rounds
// whether there is anything to do (look.go).
package keeper

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/pawlwork/pawl/internal/boot"
	"github.com/pawlwork/pawl/internal/wake"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/supervise"
)

// Config says what to keep and how often. Zero fields take the default in brackets.
type Config struct {
	Store  store.Upkeep
	Hub    *wake.Hub    // told of jobs that wait again [nobody is told]
	Logger *slog.Logger // [slog.Default()]

	// Steady is who declares others lost, 0 while not registered, the store's
	// time at its last beat, and how long its beats have succeeded without a gap.
	Steady func() (worker job.WorkerID, beat time.Time, steady time.Duration)
	// Leads says whether this process is the leader, which does its rounds every
	// period; the others do them every three, in case it is stuck [always].
	Leads func() bool
	// Rhythm is that of the store, nil where rounds come by their own clock.
	Rhythm *store.Rhythm
	// Self is this process, and Dead tells which others of its machine are proven
	// dead [boot.Self, boot.Dead].
	Self boot.Identity
	Dead func(boot.Identity) bool

	// Unserved is told what a report found, nothing too [nobody is told].
	Unserved func([]store.Unserved)
	// Died is told of jobs that a round has ended as dead [nobody is].
	Died func([]store.Death)

	// Every is how often a round is done by its settings; 0 means as below [0].
	Every func(round string) time.Duration

	// Gates are the limits on jobs that hold; nil for none [none].
	Gates func() *job.GateRules
	// Topics say what topics keep; nil for all [all].
	Topics func() TopicKeep

	Rescue time.Duration // between rounds of losing and rescuing [1.5 s]
	Expire time.Duration // between rounds of deadlines [5 s]
	// Intents is the time between sweeps for what was not applied after its commit [5 s].
	Intents time.Duration
	// Operations is the time between looks for operations that nobody advances [5 s].
	Operations time.Duration
	Purge      time.Duration // between rounds of removals [60 s]
	Members    time.Duration // between looks for members of groups that a rescue had to leave [60 s]
	Regate     time.Duration // between looks for jobs behind gates of limits that are gone [60 s]
	Report     time.Duration // between reports of jobs that nobody takes [60 s]
	RollUp     time.Duration // between roll-ups of what was measured [60 s]
	Trim       time.Duration // between looks for events whose time is over [30 s]
	Delayed    time.Duration // between looks for delayed events that nobody told of [60 s]
	Limit      int           // rows of one round, at most [500]
}

// Keeper does one round at a time. Its Services do the ticking.
type Keeper struct {
	config     Config
	store      store.Upkeep
	intents    store.Intents    // nil where the store has none
	operations store.Operations // nil where the store has none
	metrics    store.Metrics    // nil where the store keeps none
	groups     store.Groups     // nil where the store has none
	delays     store.Delays     // nil where the store keeps no events
	log        *slog.Logger
	last       lastLook
	trims      trims
	gates      gates
}

// breath is the pause between rounds while there is more to remove, so
// that claims and finishes come between.
const breath = 10 * time.Millisecond

// leftFor is the pause before dead workers are looked at again whose last call
// was still under way in the store.
const leftFor = 100 * time.Millisecond

// New checks the configuration and reports all its faults at once.
func New(c Config) (*Keeper, error) {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.Self = cmp.Or(c.Self, boot.Self())
	if c.Dead == nil {
		c.Dead = boot.Dead
	}
	if c.Leads == nil {
		c.Leads = func() bool { return true }
	}
	if c.Every == nil {
		c.Every = func(string) time.Duration { return 0 }
	}
	if c.Unserved == nil {
		c.Unserved = func([]store.Unserved) {}
	}
	c.Rescue = cmp.Or(c.Rescue, 1500*time.Millisecond)
	c.Expire = cmp.Or(c.Expire, 5*time.Second)
	c.Intents = cmp.Or(c.Intents, 5*time.Second)
	c.Operations = cmp.Or(c.Operations, 5*time.Second)
	c.Members = cmp.Or(c.Members, time.Minute)
	c.Purge = cmp.Or(c.Purge, time.Minute)
	c.Report = cmp.Or(c.Report, time.Minute)
	c.Regate = cmp.Or(c.Regate, time.Minute)
	c.RollUp = cmp.Or(c.RollUp, time.Minute)
	c.Delayed = cmp.Or(c.Delayed, time.Minute)
	c.Trim = cmp.Or(c.Trim, 30*time.Second)
	if c.Died == nil {
		c.Died = func([]store.Death) {}
	}
	if c.Gates == nil {
		c.Gates = func() *job.GateRules { return nil }
	}
	if c.Topics == nil {
		c.Topics = func() TopicKeep { return nil }
	}
	c.Limit = cmp.Or(c.Limit, 500)
	var faults []error
	if c.Store == nil {
		faults = append(faults, job.Invalid("store", nil, "must be given"))
	}
	if c.Steady == nil {
		faults = append(faults, job.Invalid("steady", nil, "must be given"))
	}
	if c.Limit < 1 || c.Limit > 100_000 {
		faults = append(faults, job.Invalid("limit", c.Limit, "must be 1..100000"))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"rescue interval", c.Rescue}, {"expire interval", c.Expire}, {"intents interval", c.Intents},
		{"operations interval", c.Operations}, {"purge interval", c.Purge}, {"report interval", c.Report}, {"gates interval", c.Regate},
		{"roll-up interval", c.RollUp}, {"delayed interval", c.Delayed}, {"trim interval", c.Trim}, {"members interval", c.Members},
	} {
		if d.value < 100*time.Millisecond {
			faults = append(faults, job.Invalid(d.name, d.value, "must be 100ms or more"))
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	intents, _ := c.Store.(store.Intents)
	keeper := &Keeper{config: c, store: c.Store, intents: intents, log: c.Logger}
	keeper.operations, _ = c.Store.(store.Operations)
	keeper.metrics, _ = c.Store.(store.Metrics)
	keeper.gates.store, _ = c.Store.(store.Gatekeeper)
	keeper.groups, _ = c.Store.(store.Groups)
	keeper.delays, _ = c.Store.(store.Delays)
	keeper.trims.store, _ = c.Store.(store.Trimmer)
	return keeper, nil
}

// RescueTick is the name of the tick that loses and rescues. Whoever has just
// registered wakes it, so that a restart does not wait for its turn.
const RescueTick = group + "/" + rescueRound

// Tick is the name of the tick of a round.
func Tick(round string) string { return group + "/" + round }

const group = "keeper"

// The rounds.
const (
	rescueRound   = "rescue"
	expireRound   = "expire"
	intentsRound  = "intents"
	purgeRound    = "purge"
	rollUpRound   = "rollup"
	unservedRound = "unserved"
	gatesRound    = "gates"
	membersRound  = "members"
)

// Names lists the rounds.
func Names() []string {
	return []string{rescueRound, expireRound, intentsRound, OperationsRound, purgeRound, rollUpRound, unservedRound, gatesRound, trimRound, DelayedRound, membersRound}
}

// Service is the keeper as a group of ticks, one for each round.
func (k *Keeper) Service() supervise.Service {
	var ticks []supervise.Service
	for _, r := range k.Rounds() {
		ticks = append(ticks, supervise.Every(r.Name, r.Period, func(ctx context.Context) error { return k.tick(ctx, r) },
			supervise.Timeout(30*time.Second), supervise.StartJitter(r.Period)))
	}
	return supervise.Group(group, ticks...)
}
