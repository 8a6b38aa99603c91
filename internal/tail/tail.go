// Package tail tells readers of the log in one process that there may be more to read: one
// look at the head for all of them, when a hint comes or a poll is due.
package tail

import (
	"context"
	"errors"
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
	seen  stream.Position
	ready chan struct{}
}

// New makes a tail that looks at the head at least every poll, while somebody waits.
func New(log store.Log, hub *wake.Hub, poll time.Duration) *Tail {
	return &Tail{log: log, hub: hub, poll: poll, waiting: map[*waiter]bool{}, come: make(chan struct{}, 1)}
}

// Wait returns nil when the head is not where the caller has seen it any more, or an error
// with ctx.
func (t *Tail) Wait(ctx context.Context, seen stream.Position) error {
	w := &waiter{seen: seen, ready: make(chan struct{})}
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
		t.mu.Lock()
		if len(t.waiting) == 0 {
			t.looking = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		if due {
			t.lookOnce()
			timer.Reset(t.poll)
		}
		select {
		case <-hints.C():
			due = hints.Take(func(int, time.Time) {}).Topic
		case <-t.come:
			due = true // it may have been appended since the caller looked
		case <-timer.C:
			due = true
		}
	}
}

// lookOnce reads the head and wakes whom it concerns. While the store does not answer,
// nobody is woken: who reads would only learn that, too. Only of its end everybody learns.
func (t *Tail) lookOnce() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	head, err := t.log.Head(ctx)
	closed := errors.Is(err, store.ErrClosed)
	if err != nil && !closed {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for w := range t.waiting {
		if order, ok := head.Compare(w.seen); closed || !ok || order > 0 {
			close(w.ready)
			delete(t.waiting, w)
		}
	}
}
