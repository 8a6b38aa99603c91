package runner

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/pawlwork/pawl/internal/member"
	"github.com/pawlwork/pawl/internal/wake"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/supervise"
)

// ErrRunning is the answer to a second Run: a Runner lives once.
var ErrRunning = errors.New("pawl: Run was called twice")

// Runner works the queues of one process. Make it with New, then call Run once.
type Runner struct {
	config Config
	store  store.Store
	log    *slog.Logger
	kinds  map[string]*Kind
	member *member.Member
	hints  *wake.Subscription

	claimWanted  chan struct{} // each of these three holds one token
	finishWanted chan struct{}
	calm         chan struct{}

	fatal    chan error // holds one: why Run has to end by itself
	services services   // has a lock of its own

	// Of one loop each, which needs no lock for it.
	claims   claims // but for two fields
	finishes finishes
	noteLoad load

	mu      sync.Mutex // guards what follows, and what doc.go says
	phase   phase
	base    context.Context // of handlers: Run's values, not its end
	lease   member.Lease    // as the member told it
	offset  time.Duration   // the store's clock minus ours
	horizon time.Duration   // how far ahead to claim

	offer  job.Offer // of claims: without the kinds that are paused
	pauses Pauses
	// revision is that of the settings from which all of this is made; 0: not known.
	revision  int64
	reporting bool     // a report is under way: what is leased meanwhile would not be in it
	queues    []*queue // in the order of the hints' places
	named     map[string]*queue
	removed   int           // of the queues: not served any more
	serves    *store.Serves // what the store is to know of them; another one after each change

	tasks     tasks
	abandoned []*Task // their handlers have not returned, long after the stop
	parked    []*slot
	suspect   suspect
	emptying  emptying
	ends      ends
	gates     gates
	stats     counters
}

// phase is how far a runner's one life is.
type phase uint8

const (
	phaseNew      phase = iota
	phaseWorking        // Run was called
	phaseStopping       // no handler starts any more
	phaseStopped        // Run is over
)

// stopping reports whether no handler starts any more. The caller holds mu.
func (r *Runner) stopping() bool { return r.phase >= phaseStopping }

var defaultBackoff = job.Exponential(job.BackoffBase, job.BackoffMax)

// New checks the configuration and reports all its faults at once.
func New(c Config) (*Runner, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	r := &Runner{
		config: c, store: c.Store, log: c.Logger,
		kinds:        make(map[string]*Kind, len(c.Kinds)),
		named:        make(map[string]*queue, len(c.Queues)),
		claimWanted:  make(chan struct{}, 1),
		finishWanted: make(chan struct{}, 1),
		calm:         make(chan struct{}, 1),
		fatal:        make(chan error, 1),
		base:         context.Background(),
		finishes:     finishes{size: maxFinish, load: newLoad(maxLoad)},
		noteLoad:     newLoad(maxNoteLoad),
	}
	for _, k := range c.Kinds {
		r.kinds[k.Name] = &k
	}
	r.setOffer(nil)
	r.setQueues(c.Queues)
	r.serves = r.servesNow()
	r.member = member.New(member.Config{
		Store: c.Store, Host: host{r}, Logger: c.Logger, Beat: c.Beat, Rhythm: c.Rhythm, Registered: c.Registered, Called: c.Meter.Call,
		Worker: store.Worker{
			Label: c.Label, Owner: c.Owner, Version: c.Version, Declares: c.Declares,
			Host: c.Host, Process: c.Boot.Process, Machine: c.Boot.Machine, Start: c.Boot.Start,
			Offer: r.offer, LostAfter: c.LostAfter, // the offer is without pauses, also later
		},
	})
	return r, nil
}

// Run works until ctx ends, then stops gracefully. It returns nil when every
// handler returned and every outcome was stored, else what was not, joined. The
// services beside are started last and stopped first.
func (r *Runner) Run(ctx context.Context, beside ...supervise.Service) error {
	r.mu.Lock()
	if r.phase != phaseNew {
		r.mu.Unlock()
		return ErrRunning
	}
	r.phase = phaseWorking
	r.base = context.WithoutCancel(ctx)
	r.hints = r.config.Hub.Subscribe(r.queueNames()...)
	r.mu.Unlock()
	defer r.hints.Close()

	tree, err := supervise.New(supervise.Config{Logger: r.log, Grace: r.config.Flush, Services: append(r.loops(), beside...)})
	if err != nil {
		return err
	}
	r.services.set(tree)
	if err := tree.Start(r.base); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return r.stop(tree)
	case cause := <-r.fatal:
		return errors.Join(cause, r.stop(tree))
	}
}

// loops are the runner's own services, in the order in which they start.
func (r *Runner) loops() []supervise.Service {
	again := supervise.Restart(supervise.Always{First: 50 * time.Millisecond, Limit: 2 * time.Second})
	limit := supervise.Timeout(r.config.callLimit())
	return []supervise.Service{
		supervise.Every("beat", r.config.Beat, r.member.BeatOnce, limit),
		supervise.Loop("finish", r.finishLoop, again),
		supervise.Loop("claim", r.claimLoop, again),
		supervise.Every("note", r.config.NoteEvery, r.noteOnce),
		supervise.Every("watch", time.Second, r.watchOnce),
	}
}

// empty reports whether nothing is held. The caller holds mu.
func (r *Runner) empty() bool {
	return r.tasks.held == 0 && len(r.abandoned) == 0 && !r.claims.underWay
}

// signal puts a token into a channel that holds one.
func (r *Runner) signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// call bounds for one call of the store.
func (r *Runner) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, r.config.callLimit())
}
