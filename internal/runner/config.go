package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/pawlwork/pawl/internal/boot"
	"github.com/pawlwork/pawl/internal/member"
	"github.com/pawlwork/pawl/internal/meter"
	"github.com/pawlwork/pawl/internal/wake"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Handler runs one job.
type Handler interface {
	// Work runs one job and says what it came to. It may panic. The context is
	// cancelled with a cause (job.ErrTimeout, ErrDeadline, ErrCancelled,
	// ErrStopping, ErrLeaseLost), and does not inherit the end of Run's.
	Work(ctx context.Context, t *Task) job.Outcome
}

// Kind is one kind of job that this build knows.
type Kind struct {
	Name    string
	Version int             // newest version of the arguments that Handler reads
	Timeout time.Duration   // of one attempt, when the job says nothing; 0 means Config.Timeout
	Backoff job.BackoffFunc // nil means the queue's
	Handler Handler
}

// QueueConfig is one queue that this process serves.
type QueueConfig struct {
	Name     string
	Workers  int                  // slots of this process
	Total    int                  // at most so many run in the cluster, split over its live workers; 0 means no limit
	Weight   int                  // of this process where the total is split; 0 means 1
	Keep     job.Keep             // zero fields mean the defaults
	Backoff  job.BackoffFunc      // nil means job.Exponential(1 s, 6 h)
	CoolDown *job.BackoffSettings // by what its cool-downs grow; nil means the defaults
	Aging    time.Duration        // see store.QueueClaim
	Found    bool                 // by one of Config.Patterns, not by its own name
	Prefetch int                  // claimed ahead at most; 0 means 8 × slots within 128..1000, and what the pace allows, negative means none
}

// Pattern stands for the queues that it matches.
type Pattern struct {
	Name    string
	Workers int // of each of them
}

// Config says what to run and how. Zero fields take the default in brackets.
type Config struct {
	Store  store.Store
	Hub    *wake.Hub    // [a new one]
	Logger *slog.Logger // [slog.Default()]

	Label        string // of the process in the registry
	Owner        string // of its code
	Version      string // of its build, as it was told
	Declares     []store.Declaration
	Host         string
	Boot         boot.Identity // by which others of this machine see whether it lives
	Queues       []QueueConfig // at first: see SetQueues
	Patterns     []Pattern     // of queues that are served as soon as SetQueues names them
	Kinds        []Kind
	Capabilities []string

	Timeout   time.Duration // of one attempt when neither job nor kind says one [none]
	Beat      time.Duration // between heartbeats [5 s]
	LostAfter time.Duration // without a beat [30 s]
	// Beside reports whether what else works under the worker's lease has ended. A stop waits
	// for it as for handlers; Calm tells it to look again [nothing does].
	Beside func() bool
	// LeaseOver is told that the worker's lease is over, or that it was declared lost. It must
	// not call the runner [nobody is].
	LeaseOver  func()
	Grace      time.Duration // for handlers at a stop [20 s]
	LastWait   time.Duration // for handlers to return once they are cancelled at a stop [5 s]
	Flush      time.Duration // for the last writes at a stop, and for each other step that ends it [5 s]
	Ending     time.Duration // for everything that comes after the grace of a stop, together [LastWait and 3 s]
	Poll       time.Duration // between looks with a healthy listener [5 s]
	PollOnly   time.Duration // between looks without [500 ms]
	StuckAfter time.Duration // a handler that ignores its cancelled context is reported [10 s]
	AloneWait  time.Duration // for others to finish before a suspect job runs alone [10 s]
	AloneDelay time.Duration // before a suspect is offered again when they did not [10 s]
	HoldEvery  time.Duration // between reports of the runs held [30 s]
	NoteEvery  time.Duration // between writes of progress and log lines [2 s]
	Hooks      Hooks
	// Revised is called with the revision of the settings that an answer of the store
	// carries. It must not block.
	Revised func(revision int64)
	// Drain empties the bucket of a limit for a time, since a run was throttled by it;
	// nil where there are no limits.
	Drain func(ctx context.Context, t *Task, limit string, d time.Duration) error
	// Rhythm is that of the store, nil where beats and looks come by their own clock.
	Rhythm *store.Rhythm
	// Meter is told of runs and of calls of the store; nil measures nothing.
	Meter *meter.Meter
	// Registered is called after the first beat of each registration. It must not block.
	Registered func()
}

// How often queues are looked at when nothing asks for it, with and without a
// healthy listener.
const (
	DefaultPoll     = 5 * time.Second
	DefaultPollOnly = 500 * time.Millisecond
)

// Hooks are told what happens. They are called one at a time and must be quick:
// the runs behind them wait. A panic in a hook is logged and costs nothing else.
type Hooks struct {
	// Finish is called once the store has answered for the end of a run.
	Finish func(Finished)
}

// Finished is one run that has ended.
type Finished struct {
	Task    *Task
	Outcome job.Outcome
	End     job.End
	Verdict job.Verdict // Stale: another run owns the job, nothing was changed
	Took    time.Duration
	InTx    bool // the handler finished it in its own transaction; Outcome and End are those of the transaction
}

func (c Config) withDefaults() Config {
	if c.Hub == nil {
		c.Hub = wake.NewHub()
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	for field, value := range map[*time.Duration]time.Duration{
		&c.Beat:       5 * time.Second,
		&c.LostAfter:  30 * time.Second,
		&c.Grace:      20 * time.Second,
		&c.LastWait:   5 * time.Second,
		&c.Flush:      5 * time.Second,
		&c.Poll:       DefaultPoll,
		&c.PollOnly:   DefaultPollOnly,
		&c.StuckAfter: 10 * time.Second,
		&c.AloneWait:  10 * time.Second,
		&c.AloneDelay: 10 * time.Second,
		&c.HoldEvery:  30 * time.Second,
		&c.NoteEvery:  2 * time.Second,
	} {
		*field = cmp.Or(*field, value)
	}
	c.Ending = cmp.Or(c.Ending, c.LastWait+3*time.Second)
	return c
}

// check reports every fault at once.
func (c Config) check() error {
	var faults []error
	add := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	if c.Store == nil {
		add(job.Invalid("store", nil, "must be given"))
	}
	add(checkQueues(c.Queues))
	var names []string
	for _, k := range c.Kinds {
		add(job.CheckName("kind", k.Name))
		if slices.Contains(names, k.Name) {
			add(job.Invalid("kind", k.Name, "has two handlers"))
		}
		names = append(names, k.Name)
		if k.Handler == nil {
			add(job.Invalid("handler of kind", k.Name, "must not be nil"))
		}
		if k.Version < 0 {
			add(job.Invalid(fmt.Sprintf("version of kind %s", k.Name), k.Version, "must be 0 or more"))
		}
		if k.Timeout < 0 {
			add(job.Invalid(fmt.Sprintf("timeout of kind %s", k.Name), k.Timeout, "must be 0 (none) or more"))
		}
	}
	for _, name := range c.Capabilities {
		add(job.CheckName("capability", name))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{
		{"timeout", c.Timeout, 0},
		{"beat", c.Beat, 100 * time.Millisecond},
		{"lost after", c.LostAfter, member.LeastLostAfter(c.Beat)},
		{"grace", c.Grace, 0},
		{"last wait", c.LastWait, 0},
		{"flush", c.Flush, 0},
		{"ending", c.Ending, c.LastWait},
		{"poll", c.Poll, time.Millisecond},
		{"poll only", c.PollOnly, time.Millisecond},
		{"stuck after", c.StuckAfter, 0},
		{"alone wait", c.AloneWait, 0},
		{"alone delay", c.AloneDelay, 0},
		{"hold every", c.HoldEvery, 0},
		{"note every", c.NoteEvery, 100 * time.Millisecond},
	} {
		if d.value < d.least {
			add(job.Invalid(d.name, d.value, fmt.Sprintf("must be %v or more", d.least)))
		}
	}
	return errors.Join(faults...)
}

// callLimit bounds one call of the store: one that takes longer is as good as lost.
func (c Config) callLimit() time.Duration { return 2 * c.Beat }
