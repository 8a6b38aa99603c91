package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pawlwork/pawl"
)

// Bounds of subjects that are kept for those who come back.
const (
	keptIdle = time.Minute // after the last reader left
	maxIdle  = 100         // subjects without a reader
)

// Times of looks.
const (
	lookEvery = time.Second
	lookLimit = 10 * time.Second // of one
	// A look that takes long is followed by a rest that is so many times as long, so that
	// watching takes no more than a small part of the store.
	restFactor = 10
)

// watches are the subjects of one sort that are watched. One loop looks at all of them
// together while anybody reads, whoever and how many they are, and each event is made once.
//
//	subscribe --> first look --> reset event
//	loop: look --> since the last view --> change event --> ring --> every reader's own place in it
//
// A reader has no queue of its own: one that falls behind the ring is given the whole view
// again. So a slow one costs nothing but its connection.
type watches struct {
	log *slog.Logger
	// read looks at subjects, all in one. One that is not in its answer is gone.
	read func(ctx context.Context, subjects []string) (map[string]view, error)

	mu   sync.Mutex
	list map[string]*watch
	stop context.CancelFunc // of the loop; nil while nobody reads
}

// firstLook is a look that others wait for.
type firstLook struct {
	done chan struct{}
	err  error
}

// subscribe begins to read a subject, after a look where nobody has looked lately.
func (ws *watches) subscribe(ctx context.Context, subject string) (*watch, error) {
	for {
		ws.mu.Lock()
		ws.forget()
		w := ws.list[subject]
		if w == nil || w.ended {
			w = &watch{epoch: rand.Text()[:10], changed: make(chan struct{}), idle: time.Now()}
			if ws.list == nil {
				ws.list = map[string]*watch{}
			}
			ws.list[subject] = w
		}
		if w.now != nil && (w.readers > 0 || time.Since(w.looked) < lookEvery) {
			ws.enter(w)
			ws.mu.Unlock()
			return w, nil
		}
		first, mine := w.first, w.first == nil
		if mine {
			first = &firstLook{done: make(chan struct{})}
			w.first = first
		}
		ws.mu.Unlock()
		if mine {
			return ws.lookFirst(ctx, subject, w, first)
		}
		select {
		case <-first.done:
			if err := first.err; err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
				return nil, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lookFirst looks for who subscribes, and for those who wait for it.
func (ws *watches) lookFirst(ctx context.Context, subject string, w *watch, first *firstLook) (*watch, error) {
	views, err := ws.read(ctx, []string{subject})
	if err == nil && views[subject] == nil {
		err = fmt.Errorf("%w: %s", pawl.ErrNotFound, subject)
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	defer close(first.done)
	w.first, first.err = nil, err
	if err != nil {
		if w.readers == 0 && ws.list[subject] == w {
			delete(ws.list, subject)
		}
		return nil, err
	}
	ws.advance(w, views[subject])
	ws.enter(w)
	return w, nil
}

// enter counts a reader, and starts the loop for the first. The caller has locked.
func (ws *watches) enter(w *watch) {
	w.readers++
	if ws.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		ws.stop = stop
		go ws.work(ctx)
	}
}

// leave is the end of a reader. Without any the loop ends.
func (ws *watches) leave(w *watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.readers--; w.readers == 0 {
		w.idle = time.Now()
	}
	if ws.stop != nil && len(ws.watched()) == 0 {
		ws.stop()
		ws.stop = nil
	}
	ws.forget()
}

// watched lists what somebody reads.
func (ws *watches) watched() (subjects []string) {
	for subject, w := range ws.list {
		if w.readers > 0 {
			subjects = append(subjects, subject)
		}
	}
	return subjects
}

// forget drops subjects that nobody has read for a while, and those beyond the bound.
func (ws *watches) forget() {
	var idle []string
	for subject, w := range ws.list {
		switch {
		case w.readers > 0 || w.first != nil:
		case w.ended || time.Since(w.idle) > keptIdle:
			delete(ws.list, subject)
		default:
			idle = append(idle, subject)
		}
	}
	if len(idle) > maxIdle {
		slices.SortFunc(idle, func(a, b string) int { return ws.list[a].idle.Compare(ws.list[b].idle) })
		for _, subject := range idle[:len(idle)-maxIdle] {
			delete(ws.list, subject)
		}
	}
}

// work looks until nobody reads.
func (ws *watches) work(ctx context.Context) {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	failed := false
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		err := ws.look(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			ws.log.WarnContext(ctx, "those who watch are told nothing new: a look failed", "error", err)
		}
		failed = err != nil
		timer.Reset(max(lookEvery, restFactor*time.Since(began)))
	}
}

// look looks once at everything that is read.
func (ws *watches) look(ctx context.Context) error {
	ws.mu.Lock()
	subjects := ws.watched()
	ws.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, lookLimit)
	views, err := ws.read(limited, subjects)
	cancel()
	ws.mu.Lock()
	defer ws.mu.Unlock()
	closed := errors.Is(err, pawl.ErrClosed)
	if err != nil && !closed || ctx.Err() != nil {
		return err
	}
	for _, subject := range subjects {
		w := ws.list[subject]
		switch {
		case w == nil:
		case closed:
			w.end()
		case views[subject] == nil:
			w.add("gone", struct{}{})
			w.end()
		default:
			ws.advance(w, views[subject])
		}
	}
	return nil
}

// advance takes a new view. The caller has locked.
func (ws *watches) advance(w *watch, now view) {
	w.looked = time.Now()
	older := w.now
	w.now = now
	if older == nil {
		w.version++
		return
	}
	if change := now.since(older); change != nil {
		w.add("change", change)
	}
}

// next is what a reader has to be sent who has seen so much, and when more comes: changed is
// closed then.
func (ws *watches) next(w *watch, seen place) (frames [][]byte, now place, changed <-chan struct{}, ended bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return w.after(seen), place{w.epoch, w.version}, w.changed, w.ended
}
