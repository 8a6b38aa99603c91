package consumer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/stream"
)

// start gives slots to what is ready, first come first served, and returns what runs now. What
// is given up or has expired needs none. While one that must be alone is ready or runs, nothing
// else starts. c.mu is held.
func (c *Consumer) start() []*task {
	if len(c.ready) == 0 || c.life == nil || c.stopping.Err() != nil {
		return nil
	}
	now := time.Now()
	var alone *task
	for i := 0; i < len(c.ready); {
		it := c.ready[i]
		if ln := it.line; ln != nil && (ln.busy != nil || ln.tasks[0] != it) {
			it.stage = waiting // one that comes before it was given back to us, or still runs
			c.ready = slices.Delete(c.ready, i, i+1)
			continue
		}
		if s, ok := unfit(it.delivery, it.failures, c.config.Deliveries, now); ok {
			c.ready = slices.Delete(c.ready, i, i+1)
			c.giveUp(it, s)
			continue
		}
		if it.delivery.Alone && alone == nil {
			alone = it
		}
		i++
	}
	var list []*task
	switch {
	case c.alone:
	case alone != nil && c.slots+c.reserved == 0:
		c.ready = slices.DeleteFunc(c.ready, func(it *task) bool { return it == alone })
		c.alone = true
		list = []*task{alone}
	case alone != nil:
	default:
		n := min(len(c.ready), c.config.InFlight-c.slots-c.reserved)
		if n > 0 {
			list = slices.Clone(c.ready[:n])
			c.ready = slices.Delete(c.ready, 0, n)
		}
	}
	for _, it := range list {
		c.slots++
		it.stage = running
		if it.line != nil {
			it.line.busy = it
		}
		if c.config.Ack == OnReceive {
			it.stage = acking
			c.life.pending = append(c.life.pending, sending{it, stream.Settlement{Ref: it.delivery.Ref}})
		}
	}
	if c.config.Ack == OnReceive {
		if len(list) > 0 {
			c.wake()
		}
		return nil
	}
	return list
}

// giveUp settles a delivery without its handler. c.mu is held.
func (c *Consumer) giveUp(it *task, s stream.Settlement) {
	switch {
	case it.delivery.Bad != nil:
		c.note(Trouble{Scope: Decode, Err: it.delivery.Bad, Event: it.delivery.Event})
	case s.Verdict == stream.Acked:
		c.stats.Expired++
	}
	c.settle(it, s)
	if it.line != nil {
		c.moved(it.line)
	}
}

// settle puts a verdict on its way. c.mu is held.
func (c *Consumer) settle(it *task, s stream.Settlement) {
	s.Ref = it.delivery.Ref
	it.stage = settling
	it.life.pending = append(it.life.pending, sending{it, s})
	if it.line != nil && s.Verdict != stream.Kept {
		it.line.remove(it)
	}
	c.wake()
}

// launch queues tasks for goroutines that call the handler. c.mu is held.
func (c *Consumer) launch(list []*task) {
	if len(list) == 0 {
		return
	}
	c.stats.Handled += uint64(len(list))
	c.queue = append(c.queue, list)
	c.another()
}

// another has one more goroutine take from the queue, unless one is on its way already: it
// will see to the next. So all that is queued starts at once where handlers wait for something,
// and where they do not a few goroutines, whose stacks have grown, do all of it. c.mu is held.
func (c *Consumer) another() {
	if len(c.queue) == 0 || c.coming {
		return
	}
	c.coming = true
	select {
	case c.come <- struct{}{}: // to one that is idle
	default:
		go c.run(new(flight))
	}
}

// take gives the next lot of the queue, if there is one. c.mu is held.
func (c *Consumer) take() (lot []*task) {
	if len(c.queue) == 0 {
		return nil
	}
	list := c.queue[0]
	n := min(c.config.Lot, len(list))
	if lot, c.queue[0] = list[:n:n], list[n:]; n == len(list) {
		c.queue[0] = nil
		if c.queue = c.queue[1:]; len(c.queue) == 0 {
			c.queue = nil
		}
	}
	c.another()
	return lot
}

// run calls the handler with one lot after another, until Run has ended and none is left.
func (c *Consumer) run(f *flight) {
	called := false
	defer func() {
		if called {
			go c.run(f) // the handler has ended this goroutine
		}
	}()
	for {
		if f.lot == nil {
			c.mu.Lock()
			c.coming = false
			lot := c.take()
			c.mu.Unlock()
			f.board(c, lot)
		}
		for f.lot != nil {
			l := f.lot[0].life
			called = true
			f.call(l.ctx, c.config.Handler)
			called = false
			var cause error
			if l.ctx.Err() != nil {
				cause = context.Cause(l.ctx)
			}
			f.board(c, c.returned(f, cause))
		}
		select {
		case <-c.come:
		case <-c.done:
			return
		}
	}
}

// judged is what becomes of one of a lot.
func (c *Consumer) judged(f *flight, i int, cause error) decision {
	it := f.lot[i]
	return judge(ended{
		ack: c.config.Ack, ordered: it.line != nil, said: f.messages[i].close(), result: f.results[i], cause: cause,
		failures: it.failures, most: c.config.Deliveries,
		backoff: func(err error) time.Duration { return c.backoff(Failed{it.failures + 1, err, it.delivery.Event}) },
	})
}

// backoff asks the user's function; one that panics, or gives less than nothing, is not asked.
func (c *Consumer) backoff(f Failed) (d time.Duration) {
	defer func() {
		if value := recover(); value != nil {
			c.config.Logger.Error("the backoff of a subscription panicked", "group", c.config.Membership.Group, "panic", value)
			d = DefaultBackoff(f)
		}
	}()
	return max(0, c.config.Backoff(f))
}

// returned takes in what handlers came to, and gives back a lot that this goroutine may run.
func (c *Consumer) returned(f *flight, cause error) []*task {
	decisions := make([]decision, 0, 8) // the user's backoff is asked without the lock
	for i := range f.lot {
		decisions = append(decisions, c.judged(f, i, cause))
	}
	c.mu.Lock()
	defer c.unlock()
	for i, it := range f.lot {
		c.slots--
		d := &decisions[i]
		switch r := f.results[i]; {
		case r.stack != nil:
			c.note(Trouble{Scope: Panic, Err: r.err, Event: it.delivery.Event, Stack: r.stack})
		case d.failed != nil:
			c.note(Trouble{Scope: Failure, Err: d.failed, Event: it.delivery.Event})
		default: // whoever had the event was the handler
			d.verdict.Free = d.verdict.Verdict == stream.Acked
		}
		if it.delivery.Alone {
			c.alone = false
		}
		if it.life == c.life {
			c.decided(it, d)
		}
		c.free(it)
	}
	c.wake()
	c.launch(c.start()) // the next of a key does not wait for the loop
	return c.take()
}

// free gives a line back whose task does not run any more. c.mu is held.
func (c *Consumer) free(it *task) {
	if it.line != nil {
		if it.line.busy == it {
			it.line.busy = nil
		}
		if c.lines[it.line.key] == it.line {
			c.moved(it.line)
		}
	}
}

// unstart takes the slot back of one that never ran. c.mu is held.
func (c *Consumer) unstart(it *task) {
	c.slots--
	if it.delivery.Alone {
		c.alone = false
	}
	c.free(it)
}

// decided does what was decided. c.mu is held.
func (c *Consumer) decided(it *task, d *decision) {
	if d.dropped {
		c.stats.Dropped++
	}
	switch {
	case c.config.Ack == OnReceive: // it is settled
		if it.line != nil {
			it.line.remove(it)
		}
	case !d.settle:
		it.life.more = true
		c.rest(it, d.rest)
	case d.verdict.Verdict == stream.Released && c.stopping.Err() != nil:
		it.stage = settling // Leave gives it back
	default:
		if d.verdict.Verdict == stream.Kept {
			it.failures++
			it.rest = d.rest
		}
		c.settle(it, d.verdict)
	}
}

func (c *Consumer) twice() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Twice++
}

// lost is why no verdict counts any more, if it is so.
func (l *life) lost() error {
	if cause := l.gone.Load(); cause != nil {
		return fmt.Errorf("this delivery is not the member's any more: %w", *cause)
	}
	return nil
}
