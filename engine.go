package pawl

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl/internal/boot"
	"github.com/pawlwork/pawl/internal/feed"
	"github.com/pawlwork/pawl/internal/keeper"
	"github.com/pawlwork/pawl/internal/meter"
	"github.com/pawlwork/pawl/internal/rate"
	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/internal/schedules"
	"github.com/pawlwork/pawl/internal/settings"
	"github.com/pawlwork/pawl/internal/tail"
	"github.com/pawlwork/pawl/internal/wake"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Engine is one namespace of one store, as one process sees it. It accepts work
// at once, and works itself while Run runs. It is safe for concurrent use.
type Engine struct {
	cfg      Config
	store    store.Store
	hub      *wake.Hub
	handlers Handlers
	argTypes sync.Map // reflect.Type of arguments → what is wrong with it, or nil
	batches  batchSlots
	waits    waits
	followed followed
	unserved atomic.Pointer[[]store.Unserved] // as the last report found it
	limiters *rate.Limiters                   // nil where the store keeps no rates
	tail     *tail.Tail                       // nil where the store keeps no events
	cursors  cursorWorkers
	feeds    *feed.Backend // nil where the store keeps no groups
	// subscriptions have a lock of their own.
	subscriptions subscriptions
	// swallowed counts handlers that went on after their job was given back.
	swallowed atomic.Uint64

	keeping atomic.Pointer[keeper.Keeper] // of Run; nil while Run does not run

	mu      sync.Mutex
	closed  bool
	running *runner.Runner
	remotes remotes
	run     context.Context    // of Run, while it runs; ended when it stops
	stop    context.CancelFunc // of Run
	stopped chan struct{}      // closed when Run has returned
	late    []error            // handlers that were registered while Run runs
	known   chan struct{}      // of Run: closed when its worker is registered
}

// openLimit bounds how long New waits for a store.
const openLimit = time.Minute

// New opens a store and makes an engine of it.
func New(opener Opener, cfg Config) (*Engine, error) {
	ctx, cancel := context.WithTimeout(context.Background(), openLimit)
	defer cancel()
	return open(ctx, opener, cfg)
}

// Open is New by address: "sqlite:work.db", "postgres://…". Import the store's
// package for its scheme. Errors never repeat the address.
func Open(ctx context.Context, address string, cfg Config) (*Engine, error) {
	opener, err := store.Parse(address)
	if err != nil {
		return nil, err
	}
	return open(ctx, opener, cfg)
}

func open(ctx context.Context, opener Opener, cfg Config) (*Engine, error) {
	if opener == nil {
		return nil, job.Invalid("store", "nil", "must be set, for instance sqlite.File(path)")
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, hub: wake.NewHub()}
	e.followed.rules.Store(e.cfg.rulesOf(nil))
	e.followed.limits.Store(e.cfg.limitRulesOf(nil))
	e.followed.topics.Store(e.cfg.topicRulesOf(nil))
	st, err := opener.Open(ctx, store.Settings{
		Namespace: cfg.Namespace,
		Migrate:   cfg.Migrate,
		Logger:    cfg.Logger,
		MaxLost:   cfg.MaxLost,
		LostAfter: cfg.LostAfter,
		Keep:      func(queue string) job.Keep { return e.followed.rules.Load().keep(queue) },
	})
	if err != nil {
		return nil, err
	}
	e.store = st
	if limits, ok := st.(store.Limits); ok {
		e.limiters = rate.New(rate.Config{Store: limits, Find: e.findLimit})
	}
	if log, ok := st.(store.Log); ok {
		e.tail = tail.New(log, e.hub, eventPoll)
	}
	e.feeds = e.newFeeds()
	e.followed.mirror = settings.NewMirror(st, e.hub, cfg.Logger, e.settingsChanged)
	if err := e.followed.mirror.Look(ctx); err != nil {
		cfg.Logger.Debug("the settings are not known yet", "error", err) // who runs or enqueues looks again
	}
	return e, nil
}

// Run works on the engine's queues until ctx ends, then stops gracefully: no new
// claims, prefetched jobs go back, handlers get Config.Grace, then their context
// is cancelled, and what did not finish goes back without burning an attempt.
// Nil means that everything was clean (P7). Faults of handlers are returned at
// once, all of them; so are ErrNoHandlers, a lack of queues, ErrRunning while
// another Run runs, and ErrClosed after Close. A handler that is registered while
// Run runs is not called; that is logged at once and returned in the end.
func (e *Engine) Run(ctx context.Context) error {
	r, ctx, done, err := e.start(ctx)
	if err != nil {
		return err
	}
	defer done()
	keep, err := e.keeper(r)
	if err != nil {
		return err
	}
	defer e.unserved.Store(nil) // nobody looks any more
	e.keeping.Store(keep)
	defer e.keeping.Store(nil)
	beside := append(e.follow(ctx, r), keep.Service())
	if m := r.Meter(); m != nil {
		beside = append(beside, m.Service())
	}
	if l, ok := e.store.(store.Listener); ok {
		beside = append(beside, e.hub.Service(l))
	}
	if _, ok := e.store.(store.Delays); ok {
		beside = append(beside, e.delayService(r))
	}
	beside = append(beside, e.cursors.services(e)...)
	beside = append(beside, e.subscriptions.services(ctx, r.Calm)...)
	return errors.Join(r.Run(ctx, beside...), e.takeLate(), e.cursors.gaveUp(), e.subscriptions.gaveUp())
}

// start makes the runner and marks the engine as running.
func (e *Engine) start(ctx context.Context) (*runner.Runner, context.Context, func(), error) {
	if err := e.usable(ctx); err != nil {
		return nil, nil, nil, fmt.Errorf("run: %w", err)
	}
	kinds, seen, err := e.kinds()
	if err != nil {
		return nil, nil, nil, err
	}
	if err := e.purpose(kinds); err != nil {
		return nil, nil, nil, err
	}
	var r *runner.Runner
	known := make(chan struct{})
	host, _ := os.Hostname()
	cfg := runner.Config{
		Store: e.store, Hub: e.hub, Logger: e.cfg.Logger,
		Label: e.cfg.label(), Owner: e.cfg.Owner, Version: e.cfg.Version, Declares: e.cfg.declares(), Revised: e.followed.mirror.Heard,
		Host: host, Boot: boot.Self(), Kinds: kinds, Capabilities: e.cfg.Capabilities,
		Timeout:    e.cfg.Timeout,
		Registered: func() { e.registered(r, known) },
		Beside:     e.subscriptions.ended, LeaseOver: e.subscriptions.leaseOver,
		Rhythm: store.RhythmOf(e.store), Drain: e.throttledBy,
		Beat: e.cfg.Beat, LostAfter: e.cfg.LostAfter, Grace: e.cfg.Grace, StuckAfter: e.cfg.StuckAfter,
	}
	if st, ok := e.store.(store.Metrics); ok {
		cfg.Meter = meter.New(meter.Config{
			Store: st, Logger: e.cfg.Logger, Label: cfg.Label, Version: cfg.Version, Now: func() time.Time { return r.Now() },
			Every: e.cfg.MetricsEvery,
		})
	}
	for _, name := range e.cfg.patterns() {
		cfg.Patterns = append(cfg.Patterns, runner.Pattern{Name: name, Workers: e.cfg.Queues[name].Workers})
	}
	if hook := e.cfg.Hooks.Finish; hook != nil {
		cfg.Hooks.Finish = func(f runner.Finished) {
			if f.Verdict != job.Applied {
				return
			}
			j := &f.Task.Job
			hook(Finished{ID: j.ID, Kind: j.Kind, Queue: j.Queue, Run: j.Run, State: f.End.To, Took: f.Took, InTx: f.InTx})
		}
	}
	cfg.Queues = e.followed.rules.Load().runnerQueues(nil, func(string) bool { return false })
	if r, err = runner.New(cfg); err != nil {
		return nil, nil, nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, nil, nil, store.ErrClosed
	}
	if e.stop != nil {
		return nil, nil, nil, ErrRunning
	}
	if late := e.handlers.since(seen); len(late) > 0 { // another goroutine's, just now
		return nil, nil, nil, errors.Join(late...)
	}
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	e.running, e.run, e.stop, e.stopped, e.late, e.known = r, ctx, cancel, stopped, nil, known
	done := func() {
		cancel()
		e.unfollow()
		e.mu.Lock()
		e.run, e.stop, e.stopped = nil, nil, nil // running stays, for its counters
		e.mu.Unlock()
		close(stopped)
	}
	return r, ctx, done, nil
}

// registered acts on a registration: who died here before may have left jobs, and the
// leader looks after schedules.
func (e *Engine) registered(r *runner.Runner, known chan struct{}) {
	e.mu.Lock()
	select {
	case <-known:
	default:
		close(known)
	}
	e.mu.Unlock()
	r.Wake(keeper.RescueTick)
	if _, ok := e.store.(store.Schedules); ok {
		r.Wake(schedules.Tick)
	}
}

// purpose says what a process that runs is for, or that there is nothing: it needs
// schedules, or handlers and queues, by name or pattern, to take their jobs from.
func (e *Engine) purpose(kinds []runner.Kind) error {
	if len(e.cfg.Schedules) > 0 {
		if _, ok := e.store.(store.Schedules); !ok {
			return fmt.Errorf("%w: Config.Schedules: the store keeps no schedules", errors.ErrUnsupported)
		}
		if len(kinds) == 0 {
			return nil
		}
	}
	cursors, err := e.cursors.check(e)
	groups, fault := e.subscriptions.check()
	if err = errors.Join(err, fault); err != nil || (cursors || groups) && len(kinds) == 0 {
		return err
	}
	if len(kinds) == 0 {
		return fmt.Errorf("%w, so Run has nothing to do: call pawl.Handle before it (a process that only enqueues needs no Run)", ErrNoHandlers)
	}
	if len(e.cfg.Queues) == 0 {
		return job.Invalid("Config.Queues", "none", "a process that handles jobs needs at least one, by name or pattern, here or in PAWL_QUEUES")
	}
	return nil
}

// takeLate is what was registered while Run ran, as one error.
func (e *Engine) takeLate() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Join(e.late...)
}

// Close stops Run, if it runs, and closes the store. It is idempotent.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	stop, stopped := e.stop, e.stopped
	e.mu.Unlock()
	if stop != nil {
		stop()
		<-stopped
	}
	if e.limiters != nil {
		e.limiters.Close()
	}
	e.followed.mirror.Close()
	return e.store.Close()
}

// usable refuses calls on a closed engine and calls that would wait for the
// transaction they are made in.
func (e *Engine) usable(ctx context.Context) error {
	if ctx.Value(txKey{e}) != nil {
		return store.ErrInsideTx
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return store.ErrClosed
	}
	return nil
}

// Store is the engine's store, for packages that extend it.
func (e *Engine) Store() store.Store { return e.store }

// DB is the store's own database, for the user's tables. On SQLite only
// transactions of this handle can be given to Within; on Postgres those of any
// pgx pool on the same database. It is nil for a store that has none.
func (e *Engine) DB() *sql.DB {
	if s, ok := e.store.(interface{ DB() *sql.DB }); ok {
		return s.DB()
	}
	return nil
}

// Ready is nil when this process can do its part: the store answers and, where
// handlers are registered or schedules declared, Run runs, is not stopping, and its lease is fresh.
// Otherwise it is ErrNotReady, or the store's own error. It answers a readiness
// probe. For a liveness probe it is wrong: a restart does not mend a store.
func (e *Engine) Ready(ctx context.Context) error {
	if err := e.answers(ctx); err != nil {
		return err
	}
	e.handlers.mu.Lock()
	worker := len(e.handlers.list) > 0 || len(e.cfg.Schedules) > 0
	e.handlers.mu.Unlock()
	if !worker {
		return nil
	}
	e.mu.Lock()
	r, run := e.running, e.run
	e.mu.Unlock()
	switch {
	case run == nil:
		return fmt.Errorf("%w: Run does not run", ErrNotReady)
	case run.Err() != nil:
		return fmt.Errorf("%w: Run is stopping", ErrNotReady)
	case !r.Stats().Healthy:
		return fmt.Errorf("%w: the worker is not registered, or its lease is not fresh", ErrNotReady)
	}
	return nil
}

// Health is nil when the store answers and nothing needs anybody's attention
// (ErrLogHeld, ErrConflict). See Ready for whether this process can work.
func (e *Engine) Health(ctx context.Context) error {
	if err := e.answers(ctx); err != nil {
		return err
	}
	if s, ok := e.store.(store.Examiner); ok {
		if err := s.Health(ctx); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	if err := e.followed.mirror.Look(ctx); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if list := e.conflicts(e.followed.mirror.Known()); len(list) > 0 {
		return fmt.Errorf("%w: %s", ErrConflict, strings.Join(list, "; "))
	}
	return nil
}

// answers asks the store for the time.
func (e *Engine) answers(ctx context.Context) error {
	if err := e.usable(ctx); err != nil {
		return err
	}
	if _, err := e.store.Now(ctx); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
