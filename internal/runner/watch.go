package runner

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"time"
)

const (
	// readyFor is how long a prefetched job may wait before it goes back to
	// where an idle process can take it.
	readyFor = time.Second
	maxDump  = 1 << 20  // bytes of all goroutines
	maxStack = 16 << 10 // bytes of the one that is logged
)

// watchOnce looks at what is held, in memory only.
func (r *Runner) watchOnce(context.Context) error {
	now := time.Now()
	r.mu.Lock()
	stuck := r.newlyStuck(now)
	r.staleReady(now)
	r.tooLongAlone(now)
	r.mu.Unlock()
	if len(stuck) > 0 {
		r.reportStuck(stuck)
	}
	return nil
}

// newlyStuck finds handlers that have ignored their cancelled context for too
// long (J13). Go cannot end them: their slots stay taken. The caller holds mu.
func (r *Runner) newlyStuck(now time.Time) []stuckSlot {
	var found []stuckSlot
	for t := range r.handlers() {
		if t.cancelled.IsZero() {
			t.cancelled = t.cancelledBy(now, r.config.Timeout)
			continue
		}
		if !t.stuck && now.Sub(t.cancelled) >= r.config.StuckAfter {
			t.stuck = true
			found = append(found, stuckSlot{task: t, goroutine: t.slot.goroutine})
		}
	}
	return found
}

// cancelledBy is since when the handler's context is cancelled, zero when it is not.
func (t *Task) cancelledBy(now time.Time, fallback time.Duration) time.Time {
	if t.cause() != nil {
		return now
	}
	if timeout := t.timeout(fallback); timeout > 0 && now.Sub(t.began) >= timeout {
		return t.began.Add(timeout)
	}
	if deadline := t.Job.Deadline; !deadline.IsZero() && !now.Add(t.offset).Before(deadline) {
		return now
	}
	return time.Time{}
}

// handlers visits the tasks whose handler has not returned, those that a stop has
// given up too. The caller holds mu.
func (r *Runner) handlers() iter.Seq[*Task] {
	return func(yield func(*Task) bool) {
		for t := range r.tasks.in(placeRunning) {
			if !yield(t) {
				return
			}
		}
		slices.Values(r.abandoned)(yield)
	}
}

func (r *Runner) anyStuck() bool {
	for t := range r.handlers() {
		if t.stuck {
			return true
		}
	}
	return false
}

type stuckSlot struct {
	task      *Task
	goroutine uint64
}

// reportStuck logs each stuck handler with the stack of its goroutine.
func (r *Runner) reportStuck(stuck []stuckSlot) {
	dump := make([]byte, maxDump)
	dump = dump[:runtime.Stack(dump, true)]
	for _, s := range stuck {
		j := &s.task.Job
		r.log.Error("a handler ignores its cancelled context, its slot stays taken", "job", j.ID, "run", j.Run,
			"kind", j.Kind, "queue", j.Queue, "cause", s.task.cause(), "stack", string(goroutineStack(dump, s.goroutine)))
	}
}

// goroutineStack cuts one goroutine out of a dump of all; the beginning of the
// dump when it is not there.
func goroutineStack(dump []byte, number uint64) []byte {
	head := fmt.Appendf(nil, "goroutine %d [", number)
	if i := bytes.Index(dump, head); i >= 0 {
		dump = dump[i:]
		if end := bytes.Index(dump, []byte("\n\n")); end >= 0 {
			dump = dump[:end]
		}
	}
	return dump[:min(len(dump), maxStack)]
}

// staleReady gives prefetched jobs back that were expected to start long ago:
// the handlers before them take longer than those that set the pace, and now
// count so. The caller holds mu.
func (r *Runner) staleReady(now time.Time) {
	if !r.lease.Healthy {
		return // they may still be ours when the store is back
	}
	for _, q := range r.queues {
		late := func(t *Task) bool { return now.Sub(t.claimed) >= readyFor }
		for _, t := range append(q.first.where(late), q.ready.where(late)...) {
			q.mean = max(q.mean, float64(readyFor))
			r.giveBack(t, 0)
			if t == r.suspect.task {
				r.suspect = suspect{}
			}
		}
	}
}
