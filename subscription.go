package pawl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/pawlwork/pawl/internal/consumer"
	"github.com/pawlwork/pawl/internal/feed"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
	"github.com/pawlwork/pawl/supervise"
)

// Subscription is this process as a member of a group.
type Subscription struct {
	engine *Engine
	group  string
	topics string
	config consumer.Config
	fault  error

	mu     sync.Mutex
	runs   *consumer.Consumer // of this Run
	closed bool
	err    error
}

// SubscriptionStats are what a subscription does now and has done, in this Run.
type SubscriptionStats = consumer.Stats

// Group is the name of the group.
func (s *Subscription) Group() string { return s.group }

// Running reports whether events are consumed, or it is tried to: from the start of Run until
// it stops, the subscription is closed, or it was refused.
func (s *Subscription) Running() bool {
	c := s.consumer()
	return c != nil && c.Running()
}

// Stats are what it does now and has done.
func (s *Subscription) Stats() SubscriptionStats {
	if c := s.consumer(); c != nil {
		return c.Stats()
	}
	return SubscriptionStats{}
}

// Why says what keeps it from taking more, in sentences.
func (s *Subscription) Why() []string {
	stats := s.Stats()
	return stats.Why()
}

func (s *Subscription) consumer() *consumer.Consumer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs
}

// Close stops the subscription for good: nothing more is fetched, handlers may finish until ctx
// ends, then they are cancelled, and what they had goes back uncounted. It returns the first
// error of what could not be stored or did not end. A handler must not call it.
func (s *Subscription) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	c := s.runs
	s.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.Close(ctx)
}

// Abort is a Close that cancels handlers at once.
func (s *Subscription) Abort() error {
	s.mu.Lock()
	s.closed = true
	c := s.runs
	s.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.Abort()
}

// serve consumes until ctx ends, or for good. A subscription that is refused gives up: Run
// says so.
func (s *Subscription) serve(ctx context.Context) error {
	for trouble := 0; ; trouble++ {
		c, err := consumer.New(s.config)
		if err != nil {
			return s.gaveUp(err)
		}
		s.mu.Lock()
		closed := s.closed
		s.runs = c
		s.mu.Unlock()
		if closed {
			return nil
		}
		err = c.Run(context.WithValue(ctx, engineKey{}, s.engine)) // handlers get it
		s.mu.Lock()
		closed = s.closed
		s.mu.Unlock()
		switch {
		case closed:
			return nil // Close returns it
		case errors.Is(err, job.ErrInvalid):
			return s.gaveUp(err)
		case ctx.Err() != nil:
			if err != nil {
				_ = s.gaveUp(err)
			}
			return nil
		}
		s.engine.cfg.Logger.Error("a subscription begins anew", "group", s.group, "error", err)
		sleep(ctx, min(100*time.Millisecond<<min(trouble, 6), 5*time.Second))
	}
}

func (s *Subscription) gaveUp(err error) error {
	err = fmt.Errorf("group %q: %w", s.group, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	return err
}

// subscriptions are those of an engine.
type subscriptions struct {
	mu      sync.Mutex
	list    []*Subscription
	running int // in this Run
}

func (l *subscriptions) add(e *Engine, b *subscribing) *Subscription {
	m := &b.config.Membership
	s := &Subscription{engine: e, group: m.Group, topics: m.Match.Topic, config: b.config}
	s.config.Logger, s.config.Grace = e.cfg.Logger, e.cfg.Grace
	if e.feeds == nil {
		b.fault(fmt.Errorf("%w: the store keeps no groups", errors.ErrUnsupported))
	} else {
		s.config.Backend = e.feeds
		check := s.config
		if _, err := consumer.New(check); err != nil && check.Handler != nil {
			b.fault(err)
		}
	}
	if err := errors.Join(b.errs...); err != nil {
		s.fault = fmt.Errorf("group %q: %w", m.Group, err)
	}
	e.mu.Lock()
	if e.stop != nil {
		late := fmt.Errorf("group %q was subscribed to while Run runs: it is not consumed", m.Group)
		e.cfg.Logger.Error("a subscription came too late", "error", late)
		e.late = append(e.late, late)
	}
	e.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, s)
	return s
}

// check says whether there are some, and everything that is wrong with them.
func (l *subscriptions) check() (some bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, s := range l.list {
		errs = append(errs, s.fault)
	}
	return len(l.list) > 0, errors.Join(errs...)
}

// services are what Run runs beside the rest. Their stop begins with that of Run, and the
// worker stays registered until they have ended (runner.Config.Beside).
func (l *subscriptions) services(run context.Context, calm func()) (list []supervise.Service) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = len(l.list)
	for i, s := range l.list {
		list = append(list, supervise.Loop(serviceName("group", i, s.group+" "+s.topics), func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(run, cancel)()
			defer func() {
				l.mu.Lock()
				l.running--
				l.mu.Unlock()
				calm()
			}()
			return s.serve(ctx)
		}, supervise.Restart(supervise.Never{})))
	}
	return list
}

// serviceName makes a name for a service of one that users have given: any text, of any length,
// that may be there twice.
func serviceName(what string, i int, given string) string {
	given = strings.Map(func(r rune) rune {
		if r == '/' || unicode.IsControl(r) {
			return '_'
		}
		return r
	}, given)
	if most := 60; len(given) > most {
		given = strings.ToValidUTF8(given[:most], "")
	}
	return fmt.Sprintf("%s %d %s", what, i+1, given)
}

// ended reports whether none runs.
func (l *subscriptions) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running == 0
}

// leaseOver lets members join again: others may have what they work on, so their handlers are
// cancelled.
func (l *subscriptions) leaseOver() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.list {
		if c := s.consumer(); c != nil {
			c.Lose()
		}
	}
}

// gaveUp is what Run returns about those that have.
func (l *subscriptions) gaveUp() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, s := range l.list {
		s.mu.Lock()
		errs = append(errs, s.err)
		s.err = nil
		s.mu.Unlock()
	}
	return errors.Join(errs...)
}

// newFeeds makes the store's groups a backend; nil where it has none.
func (e *Engine) newFeeds() *feed.Backend {
	groups, ok := e.store.(store.Groups)
	if !ok {
		return nil
	}
	return feed.New(feed.Config{
		Store: groups, Tail: e.tail, Hub: e.hub, Bounds: stream.Bounds{Data: e.cfg.Bounds.Event}, Worker: e.registeredWorker,
	})
}

// registeredWorker is whose lease memberships have, as soon as it is registered.
func (e *Engine) registeredWorker(ctx context.Context) (job.WorkerID, error) {
	for {
		e.mu.Lock()
		r, known := e.running, e.known
		e.mu.Unlock()
		if r == nil || known == nil {
			return 0, errors.New("pawl: Run does not run")
		}
		if id := r.Member().Worker(); id != 0 {
			return id, nil
		}
		select {
		case <-known:
			sleep(ctx, 100*time.Millisecond) // its lease was lost, and the next beat registers anew
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	}
}
