package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
)

// What a stop past its bound takes at most.
const (
	lastCallTime = time.Second     // for handlers to notice that they are cancelled
	leaveTime    = 5 * time.Second // for the backend to take the last verdicts
)

// Close fetches nothing more, waits for handlers, settles what they came to, and leaves. When
// ctx ends first, handlers are cancelled; what they do not finish within a second goes back
// uncounted. It returns once Run has, at the latest 6 s after ctx, with the first error of
// what could not be settled or did not end. A handler must not call it: it would wait for
// itself.
func (c *Consumer) Close(ctx context.Context) error {
	c.mu.Lock()
	if c.phase == fresh {
		c.phase, c.unused = over, true
		close(c.done)
	}
	c.mu.Unlock()
	c.beginStop()
	select {
	case <-c.done:
	case <-ctx.Done():
		c.atOnce()
		<-c.done
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Abort is a Close that cancels handlers at once.
func (c *Consumer) Abort() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c.beginStop()
	c.atOnce()
	return c.Close(ctx)
}

// Running reports whether Run has begun and not returned: as long as it does, events are
// consumed, or it tries to.
func (c *Consumer) Running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase == joining || c.phase == active
}

// standing is how far a stop is.
type standing uint8

const (
	goesOn      standing = iota
	handlersRun          // it has begun
	nothingRuns          // what is pending can be said in leaving
	boundIsOver
)

func (c *Consumer) ended(l *life) standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stopping.Err() == nil:
		return goesOn
	case c.slots == 0:
		return nothingRuns
	case c.bound.Err() == nil:
		return handlersRun
	case l.ctx.Err() == nil:
		return handlersRun // not cancelled yet
	}
	return boundIsOver
}

// lastCall cancels handlers and gives them a moment.
func (c *Consumer) lastCall(l *life) {
	l.cancel(job.ErrStopping)
	c.awaitHandlers()
}

// awaitHandlers waits until none runs, for a moment only.
func (c *Consumer) awaitHandlers() {
	t := time.NewTimer(lastCallTime)
	defer t.Stop()
	for {
		c.mu.Lock()
		n := c.slots
		c.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-c.kick:
		case <-t.C:
			return
		}
	}
}

// leave says the last verdicts, gives back what is open, and ends the membership.
func (c *Consumer) leave(l *life) error {
	c.mu.Lock()
	late := c.slots
	cancelled := l.ctx.Err() != nil
	var settled []stream.Settlement
	released := len(l.open)
	for _, s := range l.pending {
		if s.stage == acking { // it never ran: it goes back
			c.unstart(s.task)
			late--
			continue
		}
		settled = append(settled, s.Settlement)
		if s.Verdict != stream.Kept {
			released--
		}
	}
	l.pending, c.life = nil, nil
	c.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), leaveTime)
	defer cancel()
	var first error
	var p pauses
	for {
		err := l.feed.Leave(ctx, settled)
		if err == nil {
			first = nil
			break
		}
		if first == nil {
			first = fmt.Errorf("pawl: leaving the group %s: %w", c.config.Membership.Group, err)
		}
		if errors.Is(err, stream.ErrFeedLost) || ctx.Err() != nil {
			break
		}
		t := time.NewTimer(p.next())
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
	l.over(job.ErrStopping)
	c.mu.Lock()
	defer c.unlock()
	if first != nil {
		c.note(Trouble{Scope: Ack, Err: first})
		return first
	}
	c.stats.Released += uint64(released)
	for _, s := range settled {
		c.stats.count(s.Verdict)
	}
	switch {
	case late > 0:
		return fmt.Errorf("%w, and %d handlers of %s did not return", job.ErrStopping, late, c.config.Membership.Group)
	case cancelled:
		return fmt.Errorf("%w: handlers of %s were cancelled", job.ErrStopping, c.config.Membership.Group)
	}
	return nil
}
