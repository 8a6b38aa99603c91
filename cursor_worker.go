package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
	"github.com/pawlwork/pawl/supervise"
)

// What the handler of a cursor worker may return besides nil and its own errors.
var (
	// ErrStopAfter: the batch is done, and the worker stops with it.
	ErrStopAfter = errors.New("pawl: cursor worker stops after this batch")
	// ErrStopBefore: the worker stops, and the batch comes again when it runs next.
	ErrStopBefore = errors.New("pawl: cursor worker stops before this batch")
)

// Of a cursor worker.
const (
	defaultEventBatch = 64
	defaultDeliveries = 10
	// suspected is how many holders in a row have to be lost for the next events to be
	// handed out one at a time: one of them may end its process.
	suspected = 2
)

// cursorSettings is what options say about a cursor or its worker.
type cursorSettings struct {
	start      stream.Start
	restart    supervise.Policy
	size       int
	deliveries int
	deadLetter string
	worker     []string // options that only a worker has
	errs       []error
}

func workerOption(name string, f func(*cursorSettings)) CursorOption {
	return cursorOption(func(c *cursorSettings) {
		c.worker = append(c.worker, name)
		f(c)
	})
}

// Restart is the policy by which a cursor worker starts again after its handler has
// panicked; always, with a pause, by default. A worker beyond its policy has given up:
// CursorWorker.Wait and Run say so.
func Restart(p supervise.Policy) CursorOption {
	return workerOption("Restart", func(c *cursorSettings) {
		if p == nil {
			c.errs = append(c.errs, job.Invalid("restart policy", "nil", "must be one"))
		}
		c.restart = p
	})
}

// EventBatchSize is how many events the handler of a cursor worker gets at most; 64 by default.
func EventBatchSize(n int) CursorOption {
	return workerOption("EventBatchSize", func(c *cursorSettings) {
		if n < 1 || n > MaxPoll {
			c.errs = append(c.errs, job.Invalid("batch size", n, fmt.Sprintf("must be 1..%d", MaxPoll)))
		}
		c.size = n
	})
}

// CursorSubscribeOption serves cursor workers and subscriptions.
type CursorSubscribeOption interface {
	CursorOption
	SubscribeOption
}

// Deliveries is how often an event may fail before it is a dead letter; 10 by default, and 1
// means at its first failure. Of a cursor worker only failures of an event on its own count.
func Deliveries(n int) CursorSubscribeOption { return deliveriesOption(n) }

type deliveriesOption int

func (n deliveriesOption) cursor(c *cursorSettings) {
	workerOption("Deliveries", func(c *cursorSettings) {
		if n < 1 {
			c.errs = append(c.errs, job.Invalid("deliveries", int(n), "must be at least 1"))
		}
		c.deliveries = int(n)
	}).cursor(c)
}

func (n deliveriesOption) subscribe(s *subscribing) {
	if n < 1 {
		s.fault(job.Invalid("deliveries", int(n), "must be at least 1"))
	}
	s.config.Deliveries = int(n)
}

// DeadLetter is the topic of events that are given up. That of a cursor worker is its name
// with ".dead" by default; a group without one keeps them itself, parked.
func DeadLetter(topic string) CursorSubscribeOption { return deadLetterOption(topic) }

type deadLetterOption string

func (o deadLetterOption) cursor(c *cursorSettings) {
	workerOption("DeadLetter", func(c *cursorSettings) {
		c.errs = append(c.errs, stream.CheckTopic("dead letter topic", string(o)))
		c.deadLetter = string(o)
	}).cursor(c)
}

func (o deadLetterOption) subscribe(s *subscribing) {
	if err := stream.CheckTopic("dead letter topic", string(o)); err != nil {
		s.fault(err)
	}
	s.config.Membership.DeadLetter = string(o)
}

// CursorWorker is a cursor with a handler, which one process of the cluster works on.
type CursorWorker struct {
	engine   *Engine
	cursor   *Cursor
	handle   func(ctx context.Context, b *EventBatch) error
	settings cursorSettings
	fault    error

	limit    int             // of the next batch; less than the size after a failure
	front    stream.Position // of what failed last
	failures int             // of one event, alone, at front
	suspects int             // events that are still handed out alone, after losses
	pause    time.Duration   // after the last failure

	mu    sync.Mutex
	ended chan struct{}
	err   error
}

// HandleCursor works on events in order, a batch at a time, in one process of the cluster:
// while Run runs, the others wait to take over. The cursor is moved when the handler
// returns nil; what it does in the batch's transaction (EventBatch.Tx) commits with that,
// so its effects are there exactly once. A batch that fails comes again, in halves until
// the event is found that fails on its own; after its deliveries that one is a dead letter.
//
// Faults are reported by Run.
func HandleCursor(
	e *Engine, name string, f stream.Filter, handle func(ctx context.Context, b *EventBatch) error, opts ...CursorOption,
) *CursorWorker {
	w := &CursorWorker{engine: e, handle: handle, ended: make(chan struct{})}
	s := &w.settings
	*s = cursorSettings{size: defaultEventBatch, deliveries: defaultDeliveries, restart: supervise.Always{}, deadLetter: name + ".dead"}
	for _, o := range opts {
		if o == nil {
			s.errs = append(s.errs, job.Invalid("option", "nil", "must be one"))
			continue
		}
		o.cursor(s)
	}
	if name == "" {
		s.errs = append(s.errs, job.Invalid("cursor", name, "must have a name: a worker's position is kept"))
	}
	if handle == nil {
		s.errs = append(s.errs, job.Invalid("handler", "nil", "must be a function"))
	}
	c, err := e.newCursor(name, f)
	if err == nil {
		err = stream.CheckTopic("dead letter topic", s.deadLetter)
	}
	if err = errors.Join(append(s.errs, err)...); err != nil {
		w.fault = fmt.Errorf("cursor %q: %w", name, err)
	} else {
		c.lease = e.cfg.LostAfter
	}
	w.cursor, w.limit = c, s.size
	e.cursors.add(e, w, name)
	return w
}

// Wait returns when the worker has stopped because its handler said so, with nil, or because
// it has given up, with the reason. It also returns with ctx.
func (w *CursorWorker) Wait(ctx context.Context) error {
	select {
	case <-w.ended:
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *CursorWorker) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.ended:
	default:
		w.err = err
		close(w.ended)
	}
}

// cursorWorkers are those of an engine.
type cursorWorkers struct {
	mu   sync.Mutex
	list []*CursorWorker
}

func (c *cursorWorkers) add(e *Engine, w *CursorWorker, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.list, func(o *CursorWorker) bool { return o.cursor != nil && o.cursor.name == name }) && w.fault == nil {
		w.fault = fmt.Errorf("cursor %q has two handlers in this engine", name)
	}
	e.mu.Lock()
	if e.stop != nil {
		late := fmt.Errorf("cursor %q was given a handler while Run runs: it is not called", name)
		e.cfg.Logger.Error("a handler came too late", "error", late)
		e.late = append(e.late, late)
	}
	e.mu.Unlock()
	c.list = append(c.list, w)
}

// check says whether there are some, and everything that is wrong with them.
func (c *cursorWorkers) check(e *Engine) (some bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, w := range c.list {
		errs = append(errs, w.fault)
	}
	if len(c.list) > 0 {
		_, err := e.log()
		errs = append(errs, err)
	}
	return len(c.list) > 0, errors.Join(errs...)
}

// services are what Run runs beside the rest.
func (c *cursorWorkers) services(e *Engine) (list []supervise.Service) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, w := range c.list {
		list = append(list, supervise.Loop(serviceName("cursor", i, w.cursor.name), w.supervised, supervise.Restart(supervise.Never{})))
	}
	return list
}

// gaveUp is what Run returns about those that have.
func (c *cursorWorkers) gaveUp() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, w := range c.list {
		w.mu.Lock()
		errs = append(errs, w.err)
		w.mu.Unlock()
	}
	return errors.Join(errs...)
}
