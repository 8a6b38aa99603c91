package consumer

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/pawlwork/pawl/stream"
)

// work makes turns until the member is lost (stream.ErrFeedLost), or a stop has nothing more
// to wait for.
func (c *Consumer) work(l *life, p *pauses) error {
	last := time.Now()
	for {
		if l.gone.Load() != nil {
			return stream.ErrFeedLost
		}
		now := time.Now()
		every := c.every()
		did, err := c.turn(l, p, every > 0 && now.Sub(last) >= every)
		switch {
		case errors.Is(err, stream.ErrFeedLost):
			return err
		case err != nil && c.bound.Err() == nil:
			if c.ended(l) == nothingRuns {
				return nil // Leave says what is pending
			}
			c.sleep(p.next())
			continue
		case did:
			last = now
			runtime.Gosched() // short handlers end before the next turn, and share it
			continue
		}
		if s := c.ended(l); s != goesOn && s != handlersRun {
			return nil
		}
		if err := c.await(l, p, last); err != nil {
			return err
		}
	}
}

// lookEvery is how often a member whose handlers run says something: it may have been taken for
// dead, and they should know. One whose handlers do not has nothing to lose.
const lookEvery = 5 * time.Second

// every is how often a turn must be made, whether there is something to say or not; 0: never.
func (c *Consumer) every() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.slots == 0:
		return c.features.Extend
	case c.features.Extend == 0:
		return lookEvery
	}
	return min(c.features.Extend, lookEvery)
}

// await returns when there may be something to do.
func (c *Consumer) await(l *life, p *pauses, last time.Time) error {
	c.listen(l)
	var extend <-chan time.Time
	if every := c.every(); every > 0 {
		t := time.NewTimer(time.Until(last.Add(every)))
		defer t.Stop()
		extend = t.C
	}
	sooner := c.stopping.Done()
	if c.stopping.Err() != nil {
		sooner = c.bound.Done()
	}
	if c.bound.Err() != nil {
		c.lastCall(l)
		return nil
	}
	select {
	case <-c.kick:
		runtime.Gosched() // other handlers may be about to end as well, and share the call
	case <-extend:
	case <-sooner:
	case err := <-l.waited:
		c.mu.Lock()
		l.waits, l.more = false, err == nil
		switch {
		case errors.Is(err, stream.ErrFeedLost):
			c.unlock()
			return err
		case err != nil && l.calls.Err() == nil:
			l.more = true // the next Next may know more
			c.note(Trouble{Scope: Read, Err: err})
			c.unlock()
			c.sleep(p.next())
		default:
			c.unlock()
		}
	}
	return nil
}

// listen starts a Wait, unless one is under way or what it would say is known. It is started
// without room for more, too: it may say that the member is lost.
func (c *Consumer) listen(l *life) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.waits || l.more || c.stopping.Err() != nil {
		return
	}
	l.waits = true
	go func() {
		err := errors.New("pawl: a backend panicked")
		defer func() {
			if value := recover(); value != nil {
				err = fmt.Errorf("%w: %v", err, value)
			}
			l.waited <- err
		}()
		err = l.feed.Wait(l.calls)
	}()
}

// turn is one call of Next: it settles what has ended and fetches for the slots that are free.
// It reports false when there was no reason to call.
func (c *Consumer) turn(l *life, p *pauses, must bool) (bool, error) {
	if c.bound.Err() != nil {
		return false, nil
	}
	c.mu.Lock()
	c.launch(c.start())
	want := stream.Want{N: c.room(l), Idle: c.slots == 0}
	if len(l.pending) == 0 && (want.N == 0 || !l.more) && !must {
		c.unlock()
		return false, nil
	}
	for stripe := range c.not {
		want.Not = append(want.Not, stripe)
	}
	sent := l.pending
	l.pending, l.spare = l.spare[:0], nil
	if want.N > 0 {
		l.more = false
	}
	c.reserved = want.N
	c.stats.Turns++
	c.unlock()

	l.said = l.said[:0] // only the loop uses it, and a feed does not keep it
	for i := range sent {
		l.said = append(l.said, sent[i].Settlement)
	}
	got, err := l.feed.Next(l.calls, l.said, want)

	c.mu.Lock()
	defer c.unlock()
	c.reserved = 0
	if err != nil {
		l.pending = append(sent, l.pending...)
		l.more = true
		if scope := Read; !errors.Is(err, stream.ErrFeedLost) && l.calls.Err() == nil {
			if len(sent) > 0 {
				scope = Ack
			}
			c.note(Trouble{Scope: scope, Err: err})
		}
		return true, err
	}
	if len(sent)+len(got) > 0 {
		p.reset()
	}
	c.launch(c.stored(l, sent))
	clear(sent)
	l.spare = sent[:0]
	tasks := make([]task, len(got))
	for i := range got {
		d := &got[i]
		tasks[i] = task{delivery: d, life: l, failures: d.Failures}
		c.accept(l, &tasks[i])
	}
	l.more = l.more || want.N > 0 && len(got) >= want.N
	c.launch(c.start())
	return true, nil
}

// room is how many deliveries may be fetched: for each there is a slot. c.mu is held.
func (c *Consumer) room(l *life) int {
	if c.alone || c.stopping.Err() != nil {
		return 0
	}
	open := len(l.open)
	for _, s := range l.pending {
		if s.Verdict != stream.Kept {
			open--
		}
	}
	return max(0, min(c.config.Fetch, c.config.InFlight-c.slots-len(c.ready), c.config.Open-open))
}

// accept takes a delivery in. c.mu is held.
func (c *Consumer) accept(l *life, it *task) {
	d := it.delivery
	it.place = len(l.open)
	l.open = append(l.open, it)
	if c.config.Membership.Mode != stream.Ordered {
		it.stage = ready
		c.ready = append(c.ready, it)
		return
	}
	key := [2]string{d.Event.Topic, d.Event.Key}
	it.line = c.lines[key]
	if it.line == nil {
		it.line = &line{key: key, stripe: stream.Stripe(d.Event.Topic, d.Event.Key)}
		c.lines[key] = it.line
	}
	it.line.insert(it)
	c.moved(it.line)
}

// moved looks at a line that has changed: who is first, and whether too many wait. c.mu is held.
func (c *Consumer) moved(ln *line) {
	if it := ln.next(); it != nil {
		it.stage = ready
		c.ready = append(c.ready, it)
	}
	switch n := ln.behind(); {
	case !ln.blocked && n > c.config.Behind:
		ln.blocked = true
		c.not[ln.stripe]++
	case ln.blocked && n < c.config.Behind:
		ln.blocked = false
		if c.not[ln.stripe]--; c.not[ln.stripe] == 0 {
			delete(c.not, ln.stripe)
		}
		if c.life != nil {
			c.life.more = true
		}
	}
	if len(ln.tasks) == 0 && ln.busy == nil {
		delete(c.lines, ln.key)
	}
}

// stored is told that verdicts are stored, and gives what may run because of it. c.mu is held.
func (c *Consumer) stored(l *life, sent []sending) (run []*task) {
	for _, s := range sent {
		it := s.task
		c.stats.count(s.Verdict)
		switch {
		case s.Verdict == stream.Kept:
			c.rest(it, it.rest)
			continue
		case s.Verdict == stream.Dead:
			c.unlogged = append(c.unlogged, s)
		case it.stage == acking:
			it.stage = running
			run = append(run, it)
		}
		l.close(it)
	}
	return run
}

// close takes a task out of those that are open: the last takes its place.
func (l *life) close(it *task) {
	if it.place < 0 {
		return
	}
	end := len(l.open) - 1
	last := l.open[end]
	l.open[it.place], last.place = last, it.place
	l.open[end] = nil
	l.open, it.place = l.open[:end], -1
}

// rest lets a task wait here for its next try. c.mu is held.
func (c *Consumer) rest(it *task, d time.Duration) {
	if d <= 0 {
		it.stage = ready
		c.ready = append(c.ready, it)
		return
	}
	it.stage, it.until = resting, time.Now().Add(d)
	time.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if it.life == c.life && it.stage == resting {
			it.stage, it.until = ready, time.Time{}
			c.ready = append(c.ready, it)
			c.wake()
		}
	})
}

// wake lets the loop look again.
func (c *Consumer) wake() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}
