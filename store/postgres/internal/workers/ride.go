package workers

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// ridePatience is how long a statement waits for a beat: one of the default period comes by then.
const ridePatience = 6 * time.Second

// Rides are statements that wait for a beat. In a fleet that is nearly idle commits are what
// it costs, so what nobody waits for is committed with what has to be.
type Rides struct {
	Patience time.Duration // how long each waits; set before the first

	mu      sync.Mutex
	waiting []*ride
}

// ride is one of them.
type ride struct {
	step *pg.Statement
	kept chan bool // one answer: whether it was committed, as far as anybody knows
}

// Ride commits a statement with the next beat of this store, and says whether it did. It may have
// been committed also where it says no: the caller sends it again, alone, and it must then do nothing
// twice. No: no beat came in time, or ctx ended, or the beat failed.
func (r *Room) Ride(ctx context.Context, step *pg.Statement) bool {
	if r.meets.beat != nil {
		return false // beats of many namespaces are one statement, in which nobody is to be held up by another's
	}
	own := &ride{step: step, kept: make(chan bool, 1)}
	w := &r.Rides
	w.mu.Lock()
	w.waiting = append(w.waiting, own)
	w.mu.Unlock()
	late := time.NewTimer(w.Patience)
	defer late.Stop()
	select {
	case kept := <-own.kept:
		return kept
	case <-late.C:
	case <-ctx.Done():
	}
	if w.leave(own) {
		return false
	}
	select {
	case kept := <-own.kept: // its beat is on its way
		return kept
	case <-ctx.Done():
		return false
	}
}

// Waiting counts them.
func (w *Rides) Waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting)
}

// leave takes a statement back, unless a beat has taken it.
func (w *Rides) leave(own *ride) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := slices.Index(w.waiting, own)
	if n < 0 {
		return false
	}
	w.waiting = slices.Delete(w.waiting, n, n+1)
	return true
}

// take is for a beat: what waits goes with it, and is answered by what becomes of it.
func (w *Rides) take() []*ride {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.waiting
	w.waiting = nil
	return taken
}

// sendWith sends the steps of a beat together with what rides along. No fault of that is the beat's, nor a lock that it would
// wait for: without it the steps are sent again at once.
func (r *Room) sendWith(ctx context.Context, along []*ride, steps func() []*pg.Statement) error {
	all := steps()
	if len(along) > 0 {
		all = append(all[:len(all):len(all)], pg.WaitForLocks(pg.SharedLimits.Lock))
	}
	for _, a := range along {
		all = append(all, a.step)
	}
	err := r.pg.Send(ctx, r.pg.Reserved, pg.UpkeepLimits, all...)
	for _, a := range along {
		a.kept <- err == nil
	}
	if err == nil || len(along) == 0 || pg.FaultOf(err).Unknown || ctx.Err() != nil {
		return err
	}
	return r.pg.Send(ctx, r.pg.Reserved, pg.UpkeepLimits, steps()...)
}
