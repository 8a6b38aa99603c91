package pawl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Wait returns a job once it has ended, whoever runs it. A job whose queue keeps
// nothing is ErrNotFound then. While the store is unavailable it goes on asking;
// what ends it is the context, or Close.
func (e *Engine) Wait(ctx context.Context, id ID) (JobRecord, error) {
	if err := e.usable(ctx); err != nil {
		return JobRecord{}, err
	}
	w := &wait{id: id, answer: make(chan waited, 1)}
	e.waits.add(e, w)
	select {
	case a := <-w.answer:
		return a.job, a.err
	case <-ctx.Done():
		e.waits.remove(w)
		return JobRecord{}, fmt.Errorf("wait for %s: %w", id, context.Cause(ctx))
	}
}

// waits are the calls of Wait that are under way. One loop asks the store for all
// of them together, while there are any.
type waits struct {
	mu    sync.Mutex
	list  map[*wait]bool
	woken chan struct{} // of the loop; nil while there is none
}

// wait is one call.
type wait struct {
	id     ID
	next   time.Time     // look
	pause  time.Duration // before that
	answer chan waited
}

type waited struct {
	job JobRecord
	err error
}

const (
	// A wait looks soon at first, and then after as long again as it has waited: it
	// never takes twice as long as the job, and more than lastPause longer.
	firstPause = 5 * time.Millisecond
	lastPause  = 500 * time.Millisecond
	// waitedAtOnce is how many jobs one look asks for.
	waitedAtOnce = 500
)

func (ws *waits) add(e *Engine, w *wait) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.next = time.Now() // it may have ended already
	if ws.list == nil {
		ws.list = map[*wait]bool{}
	}
	ws.list[w] = true
	if ws.woken == nil {
		ws.woken = make(chan struct{}, 1)
		go ws.work(e, ws.woken)
	}
	ws.wake()
}

func (ws *waits) remove(w *wait) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.list, w)
	ws.wake()
}

func (ws *waits) wake() {
	select {
	case ws.woken <- struct{}{}:
	default:
	}
}

// work looks when a look is due, until nobody waits.
func (ws *waits) work(e *Engine, woken <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due, pause, over := ws.due(time.Now())
		if over {
			return
		}
		if len(due) > 0 {
			ws.look(e, due)
			continue
		}
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-woken:
		}
	}
}

// due lists the waits whose look is due, or says how long that takes. It is over
// when there are none: the next wait starts a loop of its own.
func (ws *waits) due(now time.Time) (due []*wait, pause time.Duration, over bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if len(ws.list) == 0 {
		ws.woken = nil
		return nil, 0, true
	}
	pause = lastPause
	for w := range ws.list {
		if left := w.next.Sub(now); left > 0 {
			pause = min(pause, left)
		} else if len(due) < waitedAtOnce {
			due = append(due, w)
		}
	}
	return due, pause, false
}

// look asks the store for the jobs of waits, and answers those that have ended.
func (ws *waits) look(e *Engine, due []*wait) {
	ids := make([]ID, len(due))
	for i, w := range due {
		ids[i] = w.id
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	jobs, err := e.store.Get(ctx, ids)
	cancel()
	found := make(map[ID]*job.Job, len(jobs))
	for i := range jobs {
		found[jobs[i].ID] = &jobs[i]
	}
	passing := errors.Is(err, ErrUnavailable) || errors.Is(err, ErrBusy) || errors.Is(err, context.DeadlineExceeded)
	now := time.Now()
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range due {
		j := found[w.id]
		switch {
		case err != nil && !passing:
			w.answer <- waited{err: err}
		case err == nil && j == nil:
			w.answer <- waited{err: fmt.Errorf("%w: %s", ErrNotFound, w.id)}
		case err == nil && j.State.Final():
			w.answer <- waited{job: *j}
		default:
			w.pause = min(max(2*w.pause, firstPause), lastPause)
			w.next = now.Add(w.pause)
			continue
		}
		delete(ws.list, w)
	}
}

// waitLimit bounds one look.
const waitLimit = 10 * time.Second
