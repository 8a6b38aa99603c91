// Package meet sends calls of several callers that come at about the same moment
// as one: the beats and looks of the namespaces that a process has open. It knows
// no database.
//
// It is not a group commit (package commit), which never waits: here a call waits
// for the others for a few milliseconds, or until all have come that are expected.
// That is only for what is asked rarely and by clockwork, and for nobody's hot path.
//
// A meeting answers those it can. Whoever it leaves out, because the statement for
// all failed or because its row was locked, asks alone, in its own way and with its
// own error (P8):
//
//	    Do ------ nobody else is expected ---------------> alone
//	    |
//	waits: all have come, or nobody came for a while
//	    |
//	    +-------- nobody else came ----------------------> alone
//	    |
//	run(all)  --- failed, or has no answer for this one --> alone
//	    |
//	the answer
package meet

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Options say how callers meet.
type Options[Q, A any] struct {
	// Patience is how long they wait for somebody else to come: it begins anew with
	// each who does, ten times at most. On a machine that is busy they come slowly.
	Patience time.Duration
	// Most is how many meet at once.
	Most int
	// Expected is how many there are: when so many have come, nobody else is waited
	// for. With one or none nobody waits at all.
	Expected *atomic.Int64
	// Run asks for all of them. It returns an answer for each, in order, or nil for
	// one that has to ask alone; no answers at all when it failed. Its context has
	// no caller's end: each of them may give up by itself.
	Run func(ctx context.Context, asks []Q) []*A
}

// Meeting is where callers meet.
type Meeting[Q, A any] struct {
	Options[Q, A]

	mu     sync.Mutex
	now    *circle[Q, A] // that callers join; nil when there is none
	going  sync.WaitGroup
	ending context.Context
	end    context.CancelFunc
}

// circle is those who meet at one moment.
type circle[Q, A any] struct {
	asks    []Q
	came    chan struct{} // holds a token: somebody has come
	full    chan struct{} // closed when nobody else is waited for
	done    chan struct{} // closed when answers are there
	answers []*A
}

// New makes a place to meet.
func New[Q, A any](o Options[Q, A]) *Meeting[Q, A] {
	m := &Meeting[Q, A]{Options: o}
	m.ending, m.end = context.WithCancel(context.Background())
	return m
}

// Do asks together with others. False means: ask alone. That is also the answer to
// a caller whose ctx has ended, who finds out by it.
func (m *Meeting[Q, A]) Do(ctx context.Context, ask Q) (answer A, ok bool) {
	if m == nil || m.Expected.Load() < 2 {
		return answer, false
	}
	t, n := m.join(ask)
	if t == nil {
		return answer, false
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		return answer, false
	}
	if n >= len(t.answers) || t.answers[n] == nil {
		return answer, false
	}
	return *t.answers[n], true
}

// join sits down with those who wait, as the nth.
func (m *Meeting[Q, A]) join(ask Q) (*circle[Q, A], int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ending.Err() != nil {
		return nil, 0
	}
	t := m.now
	if t == nil {
		t = &circle[Q, A]{came: make(chan struct{}, 1), full: make(chan struct{}), done: make(chan struct{})}
		m.now = t
		m.going.Go(func() { m.meet(t) })
	}
	t.asks = append(t.asks, ask)
	select {
	case t.came <- struct{}{}:
	default:
	}
	if len(t.asks) >= m.Most || int64(len(t.asks)) >= m.Expected.Load() {
		m.now = nil
		close(t.full)
	}
	return t, len(t.asks) - 1
}

// meet waits for the others and asks for all.
func (m *Meeting[Q, A]) meet(t *circle[Q, A]) {
	defer close(t.done)
	m.wait(t)
	m.mu.Lock()
	if m.now == t {
		m.now = nil
	}
	asks := t.asks
	m.mu.Unlock()
	if len(asks) > 1 {
		t.answers = m.Run(m.ending, asks)
	}
}

// wait returns when nobody else is waited for.
func (m *Meeting[Q, A]) wait(t *circle[Q, A]) {
	last := time.NewTimer(10 * m.Patience)
	defer last.Stop()
	for {
		next := time.NewTimer(m.Patience)
		select {
		case <-t.came:
			next.Stop()
			continue
		case <-next.C:
		case <-last.C:
		case <-t.full:
		case <-m.ending.Done():
		}
		next.Stop()
		return
	}
}

// Close ends it, and waits for what is under way.
func (m *Meeting[Q, A]) Close() {
	m.mu.Lock()
	m.end()
	m.mu.Unlock()
	m.going.Wait()
}
