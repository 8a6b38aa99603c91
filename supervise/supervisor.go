package supervise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Supervisor runs one tree of services, once: it is made by New, started, and stopped. All its
// methods may be called from any goroutine at any time. A service may call Wake and Snapshot; one
// that calls Stop or Wait waits for itself, which Stop's grace period ends and Wait's does not.
type Supervisor struct {
	config  Config
	members []*child        // in start order
	ticks   map[string]*tick // by name

	allEnded  chan struct{} // closed when the last member has ended
	gaveUp    chan struct{} // closed when the first member has failed
	abandoned chan struct{} // closed when a Stop returned with members still running

	mu       sync.Mutex
	started  bool
	stopping bool        // no member is launched any more
	unhook   func() bool // takes the hook off the context of Start
	live     int         // members that have not ended
}

// New checks the whole configuration and returns every fault at once, each with the service,
// the field, its value and its bound.
func New(config Config) (*Supervisor, error) {
	config = config.withDefaults()
	if err := config.check(); err != nil {
		return nil, fmt.Errorf("supervise: %w", err)
	}
	s := &Supervisor{
		config:    config,
		ticks:     make(map[string]*tick),
		allEnded:  make(chan struct{}),
		gaveUp:    make(chan struct{}),
		abandoned: make(chan struct{}),
	}
	s.add("", config.Services)
	s.live = len(s.members)
	return s, nil
}

// add appends services and groups, depth first: a tree's order is the order in which it is written.
func (s *Supervisor) add(path string, services []Service) {
	for _, service := range services {
		name := path + service.name
		if service.kind == kindGroup {
			s.add(name+"/", service.children)
			continue
		}
		m := newMember(name, service, s.config, s.memberEnded)
		if service.kind == KindEvery {
			s.ticks[name] = newTick(m, service, s.config.Floor)
		} else {
			m.plain(service.run)
		}
		s.members = append(s.members, m)
	}
}

// Start starts the services in order and returns when the last one has been started. It waits for
// each Once to succeed before it starts what follows.
//
// Services see the values of ctx, not its end: when ctx ends, the tree is stopped as by Stop, in
// reverse order and within Config.Grace.
//
// Start returns ErrStarted if it was called before; ErrStopped if a Stop came first or cut it
// short, with the cause of ctx if ctx had ended; and the error of a Once that failed for good.
// In all but the first case what had been started has been stopped again, within Config.Grace.
func (s *Supervisor) Start(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	for _, m := range s.members {
		if !s.launch(ctx, m) {
			return s.startCut(ctx)
		}
		if m.kind != KindOnce {
			continue
		}
		select {
		case <-m.ended:
		case <-s.abandoned: // a Once that ignores its context must not hold Start either
			return s.startCut(ctx)
		}
		if m.failure != nil {
			s.Stop(context.WithoutCancel(ctx))
			return s.verdict()
		}
		if m.read().State != StateDone { // a stop cut it short, perhaps with nothing left to launch that would notice
			return s.startCut(ctx)
		}
	}
	return nil
}

func (s *Supervisor) begin(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return ErrStopped
	}
	if s.started {
		return ErrStarted
	}
	s.started = true
	s.unhook = context.AfterFunc(ctx, func() { s.stopByContext(ctx) })
	return nil
}

// launch starts m unless a stop has been asked for. Both sides hold the lock: a member is either
// launched before the stop, and then the stop waits for it, or never (S5).
func (s *Supervisor) launch(ctx context.Context, m *child) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping || ctx.Err() != nil {
		return false
	}
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	m.cancel = cancel
	m.enter(StateRunning, time.Time{})
	go func() {
		defer cancel(ErrStopped)
		m.supervise(own)
	}()
	return true
}

// startCut ends a Start that may not go on: it stops what was started and says why.
func (s *Supervisor) startCut(ctx context.Context) error {
	s.Stop(context.WithoutCancel(ctx))
	reason := ErrStopped
	if ctx.Err() != nil {
		reason = fmt.Errorf("%w: %w", ErrStopped, context.Cause(ctx))
	}
	return errors.Join(reason, s.verdict())
}

// Stop asks the services to stop in reverse order, each after those started later have ended.
// It returns the names of the services that are still running when it returns, in start order. None
// means that every service has ended and that no function of the tree runs any more.
//
// Stop returns when all have ended, when ctx ends, or after Config.Grace, whatever comes first. The
// order is kept for three quarters of that time; then all the rest are asked at once, so that one
// stuck service does not use up the time of the others.
//
// A stop cannot be taken back: nothing is started after it, not even by a Start that is under way
// or still to come. Stop may be called again and from several goroutines; each call is bounded by
// its own ctx and answers for the moment it returns.
func (s *Supervisor) Stop(ctx context.Context) []string {
	s.refuseLaunches()

	ctx, cancel := context.WithTimeout(ctx, s.config.Grace)
	defer cancel()
	deadline, _ := ctx.Deadline()
	inOrder, cancelOrder := context.WithTimeout(ctx, time.Until(deadline)*3/4)
	defer cancelOrder()

	for _, m := range slices.Backward(s.members) {
		m.askToStop()
		select {
		case <-m.ended:
		case <-inOrder.Done():
		}
	}
	for _, m := range s.members {
		select {
		case <-m.ended:
		case <-ctx.Done():
		}
	}
	stuck := s.running()
	if len(stuck) > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		closeOnce(s.abandoned)
	}
	return stuck
}

// refuseLaunches makes sure that no member is launched from now on and ends those that never were.
func (s *Supervisor) refuseLaunches() {
	s.mu.Lock()
	first := !s.stopping
	s.stopping = true
	unhook := s.unhook
	s.mu.Unlock()
	if unhook != nil {
		unhook()
	}
	if !first {
		return
	}
	for _, m := range s.members {
		if m.cancel == nil { // settled: launch writes it under the lock, before stopping is set
			m.end(StateStopped, nil)
		}
	}
}

// stopByContext is the Stop that nobody called, so it logs what a caller would have been told.
func (s *Supervisor) stopByContext(ctx context.Context) {
	if stuck := s.Stop(context.WithoutCancel(ctx)); len(stuck) > 0 {
		s.config.Logger.ErrorContext(ctx, "services did not stop in time", "services", stuck, "grace", s.config.Grace)
	}
}

// Wait blocks until there is nothing left to wait for and returns what became of the tree: nil when
// every service has ended well. It returns an error as soon as a service's policy gives up
// (ErrGaveUp); the other services run on, and it is the caller's turn to Stop. It returns an error too
// when a Stop ran out of time (ErrStuck). Errors of several services are joined in start order.
func (s *Supervisor) Wait() error {
	select {
	case <-s.gaveUp:
	case <-s.allEnded:
	case <-s.abandoned:
	}
	return s.verdict()
}

func (s *Supervisor) verdict() error {
	var faults []error
	for _, m := range s.members {
		if m.hasEnded() && m.failure != nil {
			faults = append(faults, m.failure)
		}
	}
	select {
	case <-s.abandoned:
		if stuck := s.running(); len(stuck) > 0 {
			faults = append(faults, fmt.Errorf("%w: %s", ErrStuck, strings.Join(stuck, ", ")))
		}
	default:
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("supervise: %w", errors.Join(faults...))
}

// Wake asks the tick of that name to run now. The run that answers starts after the call: at once,
// after the run under way, or after the pause of a restart. Wakes that come before it are one wake.
// The next tick then counts from that run. Wake never blocks; it returns ErrNoSuchTick for a
// name that is not a tick's, and for a tick that has ended.
func (s *Supervisor) Wake(name string) error {
	t, found := s.ticks[name]
	if !found || t.member.hasEnded() {
		return fmt.Errorf("%w: %q", ErrNoSuchTick, name)
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
	return nil
}

// Snapshot returns the status of every service, in start order. Each status is consistent in itself.
func (s *Supervisor) Snapshot() []Status {
	statuses := make([]Status, len(s.members))
	for i, m := range s.members {
		statuses[i] = m.read()
	}
	return statuses
}

// running returns the names of the members that have not ended, in start order.
func (s *Supervisor) running() []string {
	var names []string
	for _, m := range s.members {
		if !m.hasEnded() {
			names = append(names, m.name)
		}
	}
	return names
}

func (s *Supervisor) memberEnded(failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if failed {
		closeOnce(s.gaveUp)
	}
	s.live--
	if s.live == 0 {
		close(s.allEnded)
		if s.unhook != nil {
			s.unhook() // a long-lived context must not hold on to an ended tree
		}
	}
}

// closeOnce closes an open channel. The caller holds the lock that guards it.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}
