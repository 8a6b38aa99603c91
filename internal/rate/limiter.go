package rate

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

const (
	// idleAfter nobody has come what is left of a block goes back.
	idleAfter = 100 * time.Millisecond
	// usedAfter that a block is settled that is used up, where it is a good part of the
	// burst: others would have to wait until its time is over.
	usedAfter = 20 * time.Millisecond
	// askEvery is the longest time without asking while somebody waits: another process
	// may have ended a drain.
	askEvery = 15 * time.Second
	// askBefore is how old a refusal may be by which one is sent away who then stays away
	// for its whole time: another process may have ended a drain.
	askBefore = time.Second
	// askLimit bounds one question.
	askLimit = 5 * time.Second
)

// limiter hands out the tokens of one bucket.
type limiter struct {
	of    store.BucketName
	all   *Limiters
	woken chan struct{} // holds one token: look again

	mu      sync.Mutex
	line    []*waiter
	runs    bool // its loop does
	closing bool
	block   supply
	again   time.Time     // when to ask again, after a refusal
	next    time.Duration // how long from the refusal until the first in line has its tokens
	refused time.Time
	lacked  int           // tokens that were refused; 0: any number, as by a drain
	booked  time.Time     // until when tokens are spoken for by those who were sent away
	ahead   int           // tokens that are taken beside those that are waited for
	asked   time.Time     // when the last answered question was asked; zero before
	last    int64         // the store's time in that answer
	touched time.Time     // the last use
	pace    job.TakeReply // rate, burst and revision of the last answer
}

// waiter is one who waits for n tokens.
type waiter struct {
	n     int
	by    time.Time // until when it can wait; zero: any time
	books bool      // sent away, it comes back for its tokens
	done  chan struct{}
	wait  time.Duration // with ErrLate
	err   error
}

// acquire waits for n tokens.
func (m *limiter) acquire(ctx context.Context, n int, patience time.Duration, books bool) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	w := &waiter{n: n, books: books, done: make(chan struct{})}
	if by, ok := ctx.Deadline(); ok {
		w.by = by
	}
	if patience >= 0 {
		if by := time.Now().Add(patience); w.by.IsZero() || by.Before(w.by) {
			w.by = by
		}
	}
	if err := m.enter(w); err != nil {
		return 0, err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		m.leave(w, context.Cause(ctx))
	}
	return w.wait, w.err
}

// enter puts one into the line, and has the loop look at it.
func (m *limiter) enter(w *waiter) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return ErrClosed
	}
	now := time.Now()
	if w.books && now.Sub(m.refused) > askBefore {
		m.again = time.Time{}
	}
	if len(m.line) == 0 && w.n < m.lacked { // that others wanted more says nothing of fewer
		m.again = time.Time{}
	}
	m.line = append(m.line, w)
	m.serve(now) // what is there needs no loop
	m.sendAway(now)
	switch {
	case len(m.line) == 0:
	case m.runs:
		m.wake()
	case !m.all.begin():
		m.fail(ErrClosed)
	default:
		m.runs = true
		go m.run()
	}
	return nil
}

// leave takes one out of the line whose context has ended, unless it is done.
func (m *limiter) leave(w *waiter, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.line, w); i >= 0 {
		m.line = slices.Delete(m.line, i, i+1)
		w.err = err
		close(w.done)
		m.wake()
	}
}

// serve hands tokens to those in line, in order. The caller holds mu.
func (m *limiter) serve(now time.Time) {
	for len(m.line) > 0 && m.block.take(m.line[0].n, now) {
		m.touched = now
		m.finish(nil)
	}
}

// finish ends the wait of the first in line. The caller holds mu.
func (m *limiter) finish(err error) {
	w := m.line[0]
	m.line = m.line[1:]
	w.err = err
	close(w.done)
}

// fail ends the wait of all. The caller holds mu.
func (m *limiter) fail(err error) {
	for len(m.line) > 0 {
		m.finish(err)
	}
}

// more takes up to n tokens that are there now.
func (m *limiter) more(n int) (taken int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for taken < n && len(m.line) == 0 && m.block.take(1, now) {
		taken++
	}
	return taken
}

// giveBack returns tokens to the block that is here; those of an earlier one are lost
// with it.
func (m *limiter) giveBack(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.block.used = max(m.block.used-n, 0)
	m.wake()
}

// drained forgets what was taken before a drain.
func (m *limiter) drained(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.block, m.again, m.booked = supply{}, time.Time{}, time.Time{}
	if d > 0 {
		m.refuse(time.Now(), d)
		m.sendAway(time.Now())
	}
	m.wake()
}

// changed forgets a refusal, and what was spoken for: they were by the old rate. Also
// while nobody waits, or the next one would be sent away for as long as the old rate took.
func (m *limiter) changed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.again, m.booked = time.Time{}, time.Time{}
	if len(m.line) > 0 {
		m.wake()
	}
}

func (m *limiter) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closing = true
	m.fail(ErrClosed)
	m.wake()
}

// idle reports whether nobody would miss it.
func (m *limiter) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.runs && len(m.line) == 0
}

func (m *limiter) wake() {
	select {
	case m.woken <- struct{}{}:
	default:
	}
}
