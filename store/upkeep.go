package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Upkeep is what keeps a namespace in order. Every call is bounded, safe to
// repeat, and safe in every process at once.
type Upkeep interface {
	// Due says which rounds have something to do, by one look that seeks and changes
	// nothing. Whether workers are late or runs orphaned, MarkLost answers.
	Due(ctx context.Context) (Due, error)
	// MarkLost declares workers lost whose last beat is older than their own
	// LostAfter, if the caller's own beats have succeeded throughout that time: a
	// store outage must not lose the fleet. Nor must a step of the clock: unless
	// MarkLostRequest.Beat is what is stored for the caller, and no older than half its
	// LostAfter, nobody is lost. A beat that lies ahead of the clock counts from
	// now. It also answers which workers the caller can tell to be dead.
	//
	// A store with many workers looks at some of them, and with the next call at those
	// behind them: every process asks, and none has to know all.
	MarkLost(ctx context.Context, l MarkLostRequest) (MarkLostReply, error)
	// MarkDead declares workers lost that are proven dead, whenever they beat. It
	// is for proof only: a number is never given twice, so proof stays proof. One
	// that is busy with its row at this moment may be left out: ask again.
	MarkDead(ctx context.Context, dead []job.WorkerID) (int, error)
	// Rescue ends up to limit runs whose worker is absent or lost, by job.Rescue.
	Rescue(ctx context.Context, limit int) (RescueReply, error)
	// Expire ends up to limit jobs that are not running and past their deadline.
	Expire(ctx context.Context, limit int) (ExpireReply, error)
	// Purge removes up to limit rows of each kind whose time is over: archived
	// jobs with their logs, tombstones, unique keys, audit entries, and lost
	// workers that hold nothing. Log lines are up to PurgeLines × limit: a job with
	// more of them stays until the last of them has gone with a later call. It
	// answers how many rows it removed without counting lines, and limit or more
	// while there may be more to remove.
	Purge(ctx context.Context, limit int) (int, error)
	// MakeDueAgain makes up to limit waiting jobs ready that would be, had the store's
	// clock not been set back: their due times lie ahead of it again.
	MakeDueAgain(ctx context.Context, s ClockStep, limit int) (int, error)
	// Unserved finds jobs that have been ready for longer than older and that no
	// live worker takes: nobody serves their queue, or nobody there knows their
	// kind (P5). It looks at the first few of each queue that is not paused, and
	// answers only the first of the live workers, so that a fleet looks once.
	Unserved(ctx context.Context, by job.WorkerID, older time.Duration) ([]Unserved, error)
	// Check looks for broken rules (P6) in short snapshots and changes nothing.
	Check(ctx context.Context, c Check) (CheckReport, error)
}

// Due is what a look found: a round of which it says false would change nothing.
type Due struct {
	Expire bool // jobs that are not running are past their deadline
	Purge  bool // the time of rows is over, or there are log lines to look through
	// Intents: some of the kinds this build knows are to be applied.
	Intents bool
	// Operations: one of those that operators have begun may take its next page.
	Operations bool
	RollUp     bool // metrics can be rolled up
	Trim       bool // events have expired
	Gates      bool // jobs wait behind gates, or something is remembered of them
}

// PurgeLines is how many log lines a purge removes for each row it may remove.
const PurgeLines = 20

// DropLines is how many log lines one transaction removes with jobs that are
// deleted, or that end and are not kept. Where there are more, the others go in
// further transactions: of the same call, or of the purge.
const DropLines = 10_000

// MarkLostRequest says who declares others lost.
type MarkLostRequest struct {
	By     job.WorkerID
	Beat   time.Time     // the store's time at its last beat, as far as it knows
	Steady time.Duration // how long its beats have succeeded without a gap
	// Machine is where it runs, as in Worker; empty when that cannot be told.
	Machine string
}

// MarkLostReply is the answer to MarkLost.
type MarkLostReply struct {
	Workers int // declared lost
	// Orphans says that there may be something to rescue, also without them.
	Orphans bool
	// More says that some were lost and that there are others, at which this call has
	// not looked.
	More bool
	// Neighbours are live workers besides the caller that it may be able to tell
	// to be dead: those of its machine, and those the store has proof of. Of many they
	// are the newest.
	Neighbours []Neighbour
}

// Neighbour is a worker as others of its machine see it.
type Neighbour struct {
	ID      job.WorkerID
	Label   string
	Machine string
	Process int
	Start   string
	Dead    bool // the store has proof
}

// ClockStep is a step of the store's clock to an earlier time, as a worker has
// noticed it.
type ClockStep struct {
	Queues []string
	// Was is what the clock would show by now without it.
	Was time.Time
	// Within is how long ago it happened, at most. Jobs that were created since
	// may have been created after it: they stay as they are.
	Within time.Duration
}

// RescueReply counts what a rescue did.
type RescueReply struct {
	Waiting, Dead, Cancelled int
	Deaths                   []Death // the first MaxDeaths of the dead
}

// Total is the number of runs that were ended.
func (r RescueReply) Total() int { return r.Waiting + r.Dead + r.Cancelled }

// ExpireReply counts what a round of deadlines did.
type ExpireReply struct {
	Dead, Cancelled int
	Deaths          []Death // the first MaxDeaths of the dead
}

// Total is the number of jobs that were ended.
func (e ExpireReply) Total() int { return e.Dead + e.Cancelled }

// Death names a job that upkeep has ended as dead. No handler's end tells of it,
// so whoever did the upkeep must (J28). When the answer of a commit was lost, a
// job may be named that this call did not end; it is dead all the same.
type Death struct {
	ID          job.ID
	Kind, Queue string
	Run         int64 // its last one, 0 when it never ran
	Attempt     int   // the one it died in or before, from 1
	MaxAttempts int
	Reason      string
}

// MaxDeaths is how many dead jobs one answer names, so that it stays small.
const MaxDeaths = 200

// AddDeaths adds those that are not in the list yet, while it has room.
func AddDeaths(list []Death, more ...Death) []Death {
	for _, d := range more {
		if len(list) >= MaxDeaths {
			break
		}
		if !slices.ContainsFunc(list, func(known Death) bool { return known.ID == d.ID }) {
			list = append(list, d)
		}
	}
	return list
}

// UpkeepReport is what one round of upkeep did.
type UpkeepReport struct {
	Round string        `json:"round"`
	Did   []UpkeepDid   `json:"did,omitempty"`  // empty when there was nothing to do
	More  bool          `json:"more,omitempty"` // it came to its bound, or had to leave something for later
	Pause time.Duration `json:"-"`              // before the next one, where there is more
	Took  time.Duration `json:"took"`
}

// UpkeepDid is one thing that a round did, so often.
type UpkeepDid struct {
	What string `json:"what"`
	N    int    `json:"n"`
}

// Add notes that something was done, unless it was done zero times.
func (r *UpkeepReport) Add(what string, n int) {
	if n > 0 {
		r.Did = append(r.Did, UpkeepDid{what, n})
	}
}

// UpkeepAction is what an audit entry calls a round that was run by hand.
const UpkeepAction = "run upkeep"

// Detail is what an audit entry says of it.
func (r *UpkeepReport) Detail(fault error) string {
	var did []string
	for _, d := range r.Did {
		did = append(did, fmt.Sprintf("%d %s", d.N, d.What))
	}
	if fault != nil {
		did = append(did, "failed: "+fault.Error())
	}
	if len(did) == 0 {
		return "nothing to do"
	}
	return Details(strings.Join(did, ", "))
}

// Total is how often the round did anything.
func (r *UpkeepReport) Total() (n int) {
	for _, d := range r.Did {
		n += d.N
	}
	return n
}

// Unserved is some jobs of a queue that nobody takes, for one reason.
type Unserved struct {
	Queue  string
	Kind   string // of one of them
	Jobs   int
	More   bool // there may be more: a look is bounded
	Oldest time.Time
	Why    string
}

// Bounds of one look for unserved jobs.
const (
	UnservedQueues = 500 // that nobody serves
	UnservedHead   = 200 // jobs of each queue and priority
	UnservedGated  = 500 // jobs of each queue behind gates, whether they are due or not: no index has them by due
	UnservedLook   = 20_000
)

// Ready is the ready jobs at the front of a queue that are alike.
type Ready struct {
	Queue        string
	Kind         string
	Version      int
	Capabilities []string
	Jobs         int
	Most         int // of one priority
	Oldest       time.Time
}

// Served is what live workers offer, by the queue or pattern that they serve.
type Served map[string][]job.Offer

// Of are the offers of those who serve a queue: by its name, or by a pattern.
func (s Served) Of(queue string) []job.Offer {
	offers := s[queue]
	for pattern, more := range s {
		if pattern != queue && job.Matches(pattern, queue) {
			offers = append(slices.Clip(offers), more...)
		}
	}
	return offers
}

// FindUnserved tells which ready jobs nobody takes, by the offers of the live
// workers of each queue. The longest wait comes first.
func FindUnserved(ready []Ready, served Served) []Unserved {
	var list []Unserved
	place, offers := map[string]int{}, map[string][]job.Offer{}
	for _, r := range ready {
		j := job.Job{Queue: r.Queue, Kind: r.Kind, Version: r.Version, Capabilities: r.Capabilities}
		if _, known := offers[r.Queue]; !known {
			offers[r.Queue] = served.Of(r.Queue)
		}
		why := job.NoWorker(&j, offers[r.Queue])
		if why == "" {
			continue
		}
		i, ok := place[why]
		if !ok {
			i = len(list)
			place[why] = i
			list = append(list, Unserved{Queue: r.Queue, Kind: r.Kind, Oldest: r.Oldest, Why: why})
		}
		u := &list[i]
		u.Jobs += r.Jobs
		u.More = u.More || r.Most >= UnservedHead
		if r.Oldest.Before(u.Oldest) {
			u.Oldest = r.Oldest
		}
	}
	slices.SortFunc(list, func(a, b Unserved) int { return cmp.Or(a.Oldest.Compare(b.Oldest), cmp.Compare(a.Why, b.Why)) })
	return list
}
