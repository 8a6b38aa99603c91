package commit

import (
	"context"
	"slices"
	"sync"
)

// Options is what a store brings. Commit is needed; without the others, nothing
// has to be done before or after a batch and nobody is waited for.
type Options[C Shareable] struct {
	// MaxRows bounds a batch: more rows per flush gain nothing, and whoever comes
	// next waits for all of them.
	MaxRows int

	// Begin takes what a commit needs, before its batch is closed. Its error is the
	// answer of the whole batch.
	Begin func() error
	// Commit runs a batch, which is never empty, and answers each call, now or later.
	Commit func(batch []C)
	// End follows every Begin: after Commit, or where Begin failed or all callers
	// gave up meanwhile.
	End func()
	// Yield lets others run between two batches.
	Yield Yield

	// Unknown is what a caller is told whose context ends after its call was taken.
	// Without it the answer is waited for.
	Unknown func(cause error) error
	// Closed is what a call is told that comes after Close.
	Closed error
	// Reuse: Commit does not keep the slice of its batch when it returns.
	Reuse bool
}

// Committer commits the calls of many goroutines together.
type Committer[C Shareable] struct {
	options Options[C]

	mu      sync.Mutex
	arrived sync.Cond // something waits, or it closes
	waiting []C       // in order of arrival, with those who left
	left    int       // of them
	busy    bool      // a batch is on its way, or about to be taken
	batch   []C       // the last one; belongs to who made it busy
	closed  bool

	ended chan struct{}
}

// Start begins to commit.
func Start[C Shareable](options Options[C]) *Committer[C] {
	m := &Committer[C]{options: options, ended: make(chan struct{})}
	m.arrived.L = &m.mu
	go m.work()
	return m
}

// Do hands a call in and waits for its answer. A call whose caller gives up before
// it was taken does nothing; afterwards the options decide. A caller that finds nobody
// else there, and cannot give up, commits itself: waking another goroutine and being
// woken by it takes as long as a small commit.
func (m *Committer[C]) Do(ctx context.Context, call C) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c := call.shared()
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return m.options.Closed
	}
	c.place, c.err = waiting, nil
	c.gone.Store(false)
	m.waiting = append(m.waiting, call)
	alone := !m.busy && len(m.waiting) == 1 && ctx.Done() == nil
	m.busy = m.busy || alone
	m.mu.Unlock()
	if alone {
		m.itself()
	} else {
		m.arrived.Signal()
	}

	select {
	case <-c.done:
		return c.answer()
	case <-ctx.Done():
	}
	c.gone.Store(true)
	if m.leave(c) {
		return context.Cause(ctx)
	}
	if m.options.Unknown == nil {
		return c.Wait()
	}
	select {
	case <-c.done: // answered at the same moment
		return c.answer()
	default:
		return m.options.Unknown(context.Cause(ctx))
	}
}

// leave takes a call back, unless it was taken. Those who left are removed when
// they are the larger half, so that many who leave at once cost each a moment.
func (m *Committer[C]) leave(c *Call) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.place != waiting {
		return false
	}
	c.place = left
	m.left++
	if 2*m.left > len(m.waiting) {
		m.dropLeft()
	}
	return true
}

func (m *Committer[C]) dropLeft() {
	m.waiting = slices.DeleteFunc(m.waiting, func(c C) bool { return c.shared().place == left })
	m.left = 0
}

// Waiting counts the calls that wait to be taken.
func (m *Committer[C]) Waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waiting) - m.left
}

// Close refuses new calls, lets those that wait be committed, and ends the
// goroutine.
func (m *Committer[C]) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.arrived.Broadcast()
	<-m.ended
}

// work commits batch after batch, until it is closed and nobody waits any more.
func (m *Committer[C]) work() {
	defer close(m.ended)
	for m.wait() {
		answered := m.round()
		m.yield(answered)
		m.rest()
	}
}

// wait waits until there is something to commit and nobody does, and makes the
// committer busy. False means that it is closed and all is done.
func (m *Committer[C]) wait() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.busy || len(m.waiting) == m.left {
		if m.closed && !m.busy {
			return false
		}
		m.arrived.Wait()
	}
	m.busy = true
	return true
}

// rest ends being busy.
func (m *Committer[C]) rest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy = false; len(m.waiting) > m.left || m.closed {
		m.arrived.Signal() // only work waits
	}
}

// itself commits in the goroutine of a caller, who may outlive a panic of it.
func (m *Committer[C]) itself() {
	defer m.rest()
	m.round()
}

// round commits a batch of those who wait, and says how many they were.
func (m *Committer[C]) round() int {
	var err error
	if m.options.Begin != nil {
		err = m.options.Begin()
	}
	batch := m.take(m.batch[:0])
	switch {
	case err != nil:
		for _, c := range batch {
			c.shared().Answer(err)
		}
	case len(batch) > 0:
		m.options.Commit(batch)
	}
	if m.options.End != nil {
		m.options.End()
	}
	n := len(batch)
	if m.batch = nil; m.options.Reuse {
		clear(batch)
		m.batch = batch
	}
	return n
}

// take moves waiting calls into a batch, up to the bound.
func (m *Committer[C]) take(batch []C) []C {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left > 0 {
		m.dropLeft()
	}
	n := Fit(m.waiting, m.options.MaxRows)
	batch = append(batch, m.waiting[:n]...)
	for _, c := range batch {
		c.shared().place = taken
	}
	m.waiting = slices.Delete(m.waiting, 0, n)
	return batch
}

// Fit is how many of the calls go into one batch: as many as have no more than
// that many rows, and at least one.
func Fit[C Shareable](calls []C, rows int) int {
	for n, c := range calls {
		if rows -= c.Rows(); rows < 0 && n > 0 {
			return n
		}
	}
	return len(calls)
}
