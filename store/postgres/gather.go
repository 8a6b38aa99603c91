package postgres

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/pawlwork/pawl/job"
)

// maxGathered bounds the rows of one shared commit.
const maxGathered = 4096

// gather lets calls of many goroutines share a commit. One goroutine takes what
// is waiting and commits it; what arrives meanwhile is the next commit. An idle
// store answers a call at once and a busy one makes large commits, without a
// timer between.
type gather[C shareable] struct {
	s      *Store
	most   int // rows
	commit func(context.Context, []C)

	mu      sync.Mutex
	waiting []C
	wake    chan struct{} // holds one token when something may be waiting
	stopped chan struct{}
}

// shareable is a call that can share a commit.
type shareable interface {
	rows() int
	state() *callState
}

// callState is the part of a call that its gather and its caller share.
type callState struct {
	done  chan struct{} // closed when the call is answered
	taken bool          // guarded by the gather's lock
	left  bool          // its caller is gone, and it was not taken
	gone  atomic.Bool   // its caller is gone
	err   error
}

func newGather[C shareable](s *Store, most int, commit func(context.Context, []C)) *gather[C] {
	g := &gather[C]{s: s, most: most, commit: commit, wake: make(chan struct{}, 1), stopped: make(chan struct{})}
	go g.work()
	return g
}

// do hands a call in and waits for its answer. A call whose caller gives up
// before it was taken does nothing; afterwards its outcome is unknown.
func (g *gather[C]) do(ctx context.Context, c C) error {
	st := c.state()
	g.mu.Lock()
	g.waiting = append(g.waiting, c)
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default:
	}
	select {
	case <-st.done:
		return st.err
	case <-ctx.Done():
	}
	st.gone.Store(true)
	g.mu.Lock()
	st.left = !st.taken
	g.mu.Unlock()
	if st.left {
		return context.Cause(ctx)
	}
	select {
	case <-st.done: // answered at the same moment
		return st.err
	default:
		return fmt.Errorf("%w: %w", job.ErrOutcomeUnknown, context.Cause(ctx))
	}
}

// take removes the next share of calls, in order.
func (g *gather[C]) take() []C {
	g.mu.Lock()
	defer g.mu.Unlock()
	var share []C
	rows, n := 0, 0
	for _, c := range g.waiting {
		if len(share) > 0 && rows+c.rows() > g.most {
			break
		}
		n++
		if st := c.state(); !st.left {
			st.taken = true
			share = append(share, c)
			rows += c.rows()
		}
	}
	clear(g.waiting[:n])
	g.waiting = g.waiting[n:]
	if len(g.waiting) == 0 {
		g.waiting = nil
	}
	return share
}

func (g *gather[C]) work() {
	defer close(g.stopped)
	for range g.wake {
		for share := g.take(); len(share) > 0; share = g.take() {
			g.commit(g.s.pg.Ending, share)
			g.yield(len(share))
		}
	}
}

// yield lets those who were just answered run before the next share is taken:
// most of them ask again at once, and would otherwise miss it by a moment, for
// ever: half of the callers would be committed while the other half waits. (16
// callers: 15 instead of 8 in a commit.) A lone caller is not waited for.
func (g *gather[C]) yield(answered int) {
	all := answered
	for round := range 8 {
		g.mu.Lock()
		waiting := len(g.waiting)
		g.mu.Unlock()
		if round == 0 {
			all += waiting
		}
		if all == 1 || round > 0 && waiting >= all {
			return
		}
		runtime.Gosched()
	}
}

// stop ends the goroutine. No call is under way any more.
func (g *gather[C]) stop() {
	close(g.wake)
	<-g.stopped
}

// answer ends a call.
func answer[C shareable](c C, err error) {
	st := c.state()
	st.err = err
	close(st.done)
}
