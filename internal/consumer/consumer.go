package consumer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
)

// Consumer is one subscription. It lives once.
type Consumer struct {
	config   Config
	features stream.Features
	kick     chan struct{} // the loop has something to look at
	come     chan struct{} // wakes an idle goroutine of handlers

	// A stop has two steps: begun, handlers may finish; at the bound, they are cancelled.
	stopping, bound   context.Context
	beginStop, atOnce context.CancelFunc
	done              chan struct{} // Run has returned

	mu       sync.Mutex
	phase    phase
	unused   bool // closed before it ran
	err      error
	life     *life // nil while it has no membership
	lines    map[[2]string]*line
	ready    []*task
	queue    [][]*task     // lists that have slots, and no goroutine yet
	coming   bool          // one is on its way
	slots    int           // that deliveries have
	reserved int           // that a Next under way may fill
	alone    bool          // a delivery runs that must be alone
	not      map[int16]int // stripes that are not fetched, and because of how many lines
	unlogged []sending     // dead letters, for the log
	untold   []Trouble     // for the observer
	stats    Stats
}

type phase uint8

const (
	fresh phase = iota
	joining
	active
	over
)

// life is one membership, from a join to a leave or a loss. What is not constant is under
// Consumer.mu.
type life struct {
	feed   stream.Feed
	ctx    context.Context // of handlers
	cancel context.CancelCauseFunc
	calls  context.Context // of Next and Wait
	end    func()
	gone   atomic.Pointer[error] // why no verdict counts any more

	open    []*task // in no order: each knows its place
	pending []sending
	spare   []sending           // what was sent, for the next pending
	said    []stream.Settlement // of the last call, for the next
	more    bool                // Next may have something
	waited  chan error
	waits   bool
}

// sending is a verdict on its way.
type sending struct {
	*task
	stream.Settlement
}

// New checks a config: all its faults at once. What the backend cannot do is refused here;
// what only the group knows, such as that it has another mode, by Run.
func New(c Config) (*Consumer, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	s := &Consumer{
		config: c, features: c.Backend.Features(), kick: make(chan struct{}, 1), done: make(chan struct{}),
		come:  make(chan struct{}),
		lines: map[[2]string]*line{}, not: map[int16]int{},
	}
	s.stopping, s.beginStop = context.WithCancel(context.Background())
	s.bound, s.atOnce = context.WithCancel(context.Background())
	return s, nil
}

// Member is the name that it has in the group.
func (c *Consumer) Member() string { return c.config.Membership.Member }

// Run consumes until Close, Abort or the end of ctx, which is a Close with the bound
// Config.Grace. It returns what Close does, or at once what is refused.
func (c *Consumer) Run(ctx context.Context) (err error) {
	c.mu.Lock()
	if c.phase != fresh {
		defer c.mu.Unlock()
		if c.unused {
			return nil
		}
		return errors.New("pawl: a subscription runs once")
	}
	c.phase = joining
	c.mu.Unlock()
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("pawl: a subscription of %s panicked: %v\n%s", c.config.Membership.Group, value, debug.Stack())
		}
		c.finish(err)
	}()
	stopped := context.AfterFunc(ctx, func() {
		c.beginStop()
		t := time.AfterFunc(c.config.Grace, c.atOnce)
		context.AfterFunc(c.bound, func() { t.Stop() })
	})
	defer stopped()
	ctx = context.WithoutCancel(ctx)
	var p pauses
	for {
		l, err := c.join(ctx, &p)
		if err != nil || l == nil {
			c.awaitHandlers()
			return err
		}
		if err := c.work(l, &p); errors.Is(err, stream.ErrFeedLost) {
			c.forget(l)
			if c.stopping.Err() != nil {
				c.awaitHandlers()
				return fmt.Errorf("pawl: closing a member of %s: %w", c.config.Membership.Group, err)
			}
			c.sleep(p.next())
			continue
		}
		return c.leave(l)
	}
}

// finish says that Run has ended.
func (c *Consumer) finish(err error) {
	c.mu.Lock()
	c.phase, c.err = over, err
	if l := c.life; l != nil { // the loop panicked
		c.life = nil
		l.over(job.ErrStopping)
	}
	c.mu.Unlock()
	c.beginStop()
	c.atOnce()
	close(c.done)
}

// join makes the member one of its group, as often as it takes. nil means that a stop came
// first.
func (c *Consumer) join(ctx context.Context, p *pauses) (*life, error) {
	asking, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(c.stopping, end)()
	for c.stopping.Err() == nil {
		feed, err := c.config.Backend.Join(asking, c.config.Membership)
		if err == nil {
			return c.begin(ctx, feed), nil
		}
		if errors.Is(err, job.ErrInvalid) {
			return nil, err
		}
		if c.stopping.Err() != nil {
			break
		}
		c.mu.Lock()
		scope := Read
		if c.stats.Joins > 0 {
			scope = Reclaim
		}
		c.note(Trouble{Scope: scope, Err: err})
		c.unlock()
		c.config.Logger.Warn("a subscription cannot join its group", "group", c.config.Membership.Group, "error", err)
		c.sleep(p.next())
	}
	return nil, nil
}

// begin begins a life.
func (c *Consumer) begin(ctx context.Context, feed stream.Feed) *life {
	l := &life{feed: feed, more: true, waited: make(chan error, 1)}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	var cancel context.CancelFunc
	l.calls, cancel = context.WithCancel(ctx)
	unhook := context.AfterFunc(c.bound, cancel)
	l.end = func() { unhook(); cancel() }
	c.mu.Lock()
	defer c.mu.Unlock()
	c.life, c.phase = l, active
	c.stats.Joins++
	return l
}

// over ends a life: no verdict counts any more.
func (l *life) over(cause error) {
	l.gone.Store(&cause)
	l.cancel(cause)
	l.end()
}

// Lose gives the membership up, because its lease is over: handlers are cancelled, what they
// come to does not count, and the member joins again as soon as it can.
func (c *Consumer) Lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life != nil {
		c.life.over(stream.ErrFeedLost)
		c.wake()
	}
}

// forget ends a life whose events are others' now. Handlers that run keep their slots, and
// their keys, until they return.
func (c *Consumer) forget(l *life) {
	c.mu.Lock()
	c.life, c.ready, c.phase = nil, nil, joining // before handlers are told: none of them starts the next of its key
	l.over(stream.ErrFeedLost)
	clear(c.not)
	for key, line := range c.lines {
		line.tasks, line.blocked = nil, false
		if line.busy == nil {
			delete(c.lines, key)
		}
	}
	for _, it := range l.open {
		if it.stage == acking { // it never ran
			c.unstart(it)
		}
	}
	c.stats.Lost += uint64(len(l.open))
	c.note(Trouble{Scope: Reclaim, Err: stream.ErrFeedLost})
	c.unlock()
	c.config.Logger.Warn("a member was taken for dead, and joins again",
		"group", c.config.Membership.Group, "member", c.Member(), "open", len(l.open))
}

// sleep lasts for d, or until a stop begins, or, when it has, its bound.
func (c *Consumer) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	sooner := c.stopping
	if sooner.Err() != nil {
		sooner = c.bound
	}
	select {
	case <-t.C:
	case <-sooner.Done():
	}
}
