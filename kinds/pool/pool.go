package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Pauses before a child that follows one which never gave an answer.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 30 * time.Second
)

var (
	errClosed  = errors.New("the pool is closed")
	errNotIdle = errors.New("no child was idle")
)

// A Pool is a number of children that do jobs. Each has a goroutine that keeps it: starts it, lends it to one job at a
// time, and replaces it.
type Pool struct {
	config  Config
	after   func(time.Duration) <-chan time.Time // time.After, but for tests
	idle    chan *child                          // without a buffer: who receives one has it from its keeper, alive
	closing chan struct{}
	once    sync.Once
	keepers sync.WaitGroup

	mu   sync.Mutex
	last error // why the last child was replaced
}

func newPool(c Config, after func(time.Duration) <-chan time.Time) *Pool {
	return &Pool{config: c, after: after, idle: make(chan *child), closing: make(chan struct{})}
}

func (p *Pool) open() {
	for range p.config.Size {
		p.keepers.Go(p.keep)
	}
}

// Close ends all children and waits for them, those that have a job too: close the engine first. It may be called twice.
func (p *Pool) Close() {
	p.once.Do(func() { close(p.closing) })
	p.keepers.Wait()
}

// keep has one child at a time until the pool is closed.
func (p *Pool) keep() {
	for fruitless := 0; ; {
		if wait := pause(fruitless); wait > 0 {
			select {
			case <-p.after(wait):
			case <-p.closing:
			}
		}
		if p.closed() {
			return
		}
		c, err := startChild(p.config)
		answers := 0
		if err == nil {
			answers, err = p.lend(c)
			if left := c.end(p.config.Grace); left != nil {
				p.config.Logger.Error("a child of the pool is not gone", "program", p.config.Path, "error", left)
			}
		}
		switch _, ours := errors.AsType[interruption](err); {
		case err == nil: // closed
			continue
		case ours || answers > 0:
			fruitless = 0
		default:
			fruitless++
		}
		p.replaced(err)
	}
}

// pause is how long to wait after so many children that gave no answer.
func pause(fruitless int) time.Duration {
	if fruitless == 0 {
		return 0
	}
	return min(firstPause<<min(fruitless-1, 20), lastPause)
}

// lend lends a child to one job after the other. It returns how many it answered and why it is of no more use; nil when
// the pool is closed.
func (p *Pool) lend(c *child) (answers int, err error) {
	if p.config.Ready {
		if err := p.ready(c); err != nil {
			return 0, err
		}
	}
	for {
		select {
		case p.idle <- c:
			if err := <-c.back; err != nil {
				return answers, err
			}
			answers++
		case l := <-c.lines:
			if l.err != nil {
				return answers, c.ended(l.err)
			}
			return answers, fmt.Errorf("the child said %.100q, and nobody had asked", l.text)
		case <-p.closing:
			return answers, nil
		}
	}
}

// ready waits until a child says that it is ready, or the pool is closed.
func (p *Pool) ready(c *child) error {
	left := time.NewTimer(p.config.Start)
	defer left.Stop()
	select {
	case l := <-c.lines:
		if l.err != nil {
			return c.ended(l.err)
		}
		var a answer
		if err := json.Unmarshal(l.text, &a); err != nil || a.Status != "ready" {
			return fmt.Errorf("the child said %.100q instead of being ready", l.text)
		}
	case <-left.C:
		return fmt.Errorf("the child was not ready within %v", p.config.Start)
	case <-p.closing:
	}
	return nil
}

// borrow waits for an idle child.
func (p *Pool) borrow(ctx context.Context) (*child, error) {
	left := time.NewTimer(p.config.Wait)
	defer left.Stop()
	select {
	case c := <-p.idle:
		return c, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-p.closing:
		return nil, errClosed
	case <-left.C:
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.last != nil {
			return nil, fmt.Errorf("%w for %v; the last one replaced: %w", errNotIdle, p.config.Wait, p.last)
		}
		return nil, fmt.Errorf("%w for %v", errNotIdle, p.config.Wait)
	}
}

func (p *Pool) replaced(why error) {
	p.mu.Lock()
	p.last = why
	p.mu.Unlock()
	p.config.Logger.Warn("a child of the pool is replaced", "program", p.config.Path, "error", why)
}

func (p *Pool) closed() bool {
	select {
	case <-p.closing:
		return true
	default:
		return false
	}
}
