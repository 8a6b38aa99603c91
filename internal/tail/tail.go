// Package tail tells readers of the log in one process that there may be more to read: one
// look at the head for all of them, when a hint comes or a poll is due.
package tail

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pawlwork/pawl/internal/wake"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// Tail is one for a process. Its loop runs while somebody waits.
type Tail struct {
	log  store.Log
	hub  *wake.Hub
	poll time.Duration

	mu      sync.Mutex
	waiting map[*waiter]bool
	looking bool
	come    chan struct{} // somebody waits since the last look
}

// waiter is one call of Wait.
type waiter struct {
	seen   stream.Position
	topics stream.TopicPattern
	ready  chan struct{}
}

// few is how many readers are woken without asking which topics have new events: the
// question costs as much as one of them that finds nothing.
const few = 4

// maxNew is how many new events are looked at for that. Behind more, everybody is woken.
const maxNew = 256

// New makes a tail that looks at the head at least every poll, while somebody waits.
func New(log store.Log, hub *wake.Hub, poll time.Duration) *Tail {
	return &Tail{log: log, hub: hub, poll: poll, waiting: map[*waiter]bool{}, come: make(chan struct{}, 1)}
}

// Wait returns nil when there may be events of some topics behind where the caller has seen the
// head, or an error with ctx.
func (t *Tail) Wait(ctx context.Context, seen stream.Position, topics stream.TopicPattern) error {
	w := &waiter{seen: seen, topics: topics, ready: make(chan struct{})}
	t.mu.Lock()
	t.waiting[w] = true
	if !t.looking {
		t.looking = true
		go t.look()
	}
	t.mu.Unlock()
	select {
	case t.come <- struct{}{}:
	default:
	}
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		t.mu.Lock()
		delete(t.waiting, w)
		t.mu.Unlock()
		select { // the loop ends when nobody is left
		case t.come <- struct{}{}:
		default:
		}
		return context.Cause(ctx)
	}
}

// look looks at the head until nobody waits.
func (t *Tail) look() {
	hints := t.hub.Subscribe()
	defer hints.Close()
	timer := time.NewTimer(t.poll)
	defer timer.Stop()
	due := true
	for {
		if due {
			t.lookOnce()
			timer.Reset(t.poll)
		}
		t.mu.Lock()
		if len(t.waiting) == 0 { // also when all were just woken
			t.looking = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		select {
		case <-hints.C():
			due = hints.Take(nil).Topic
		case <-t.come:
			due = true // it may have been appended since the caller looked
		case <-timer.C:
			due = true
		}
	}
}

// lookOnce reads the head and wakes whom it concerns: also when it went back, because a server
// that has crashed may have forgotten numbers that nobody used. While the store does not answer,
// nobody is woken: who reads would only learn that, too. Only of its end everybody learns.
func (t *Tail) lookOnce() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	head, err := t.log.Head(ctx)
	closed := errors.Is(err, store.ErrClosed)
	if err != nil && !closed {
		return
	}
	news := t.news(ctx, head, closed)
	t.mu.Lock()
	defer t.mu.Unlock()
	for w := range t.waiting {
		order, ok := head.Compare(w.seen)
		switch {
		case closed || !ok || order < 0 || order > 0 && news.concern(w):
			close(w.ready)
			delete(t.waiting, w)
		case order > 0:
			w.seen = head // nothing of it was for this one
		}
	}
}

// news is what was appended since somebody has looked; nil topics: nobody knows.
type news struct {
	from   stream.Position
	topics []string
	known  bool
}

// concern reports whether there may be something for a reader.
func (n news) concern(w *waiter) bool {
	if order, ok := w.seen.Compare(n.from); !n.known || !ok || order < 0 {
		return true
	}
	return slices.ContainsFunc(n.topics, w.topics.Match)
}

// news asks which topics have new events, where many wait.
func (t *Tail) news(ctx context.Context, head stream.Position, closed bool) (n news) {
	names, ok := t.log.(store.LogTopics)
	if !ok || closed {
		return n
	}
	t.mu.Lock()
	behind := 0
	for w := range t.waiting {
		if order, ok := head.Compare(w.seen); ok && order > 0 {
			if low, ok := w.seen.Compare(n.from); behind == 0 || ok && low < 0 {
				n.from = w.seen
			}
			behind++
		}
	}
	t.mu.Unlock()
	if behind <= few {
		return news{}
	}
	topics, all, err := names.TopicsBetween(ctx, n.from, head, maxNew)
	n.topics, n.known = topics, err == nil && all
	return n
}
