package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/supervise"
)

// What a stop could not do. Run's error wraps them.
var (
	ErrNotStopped  = errors.New("pawl: handlers did not stop")
	ErrNotFinished = errors.New("pawl: outcomes were not stored")
)

// stop ends the run gracefully (P7). Every phase is bounded, also when the
// store is down, and so are all of them: the grace and Config.Ending, which is
// what who kills processes has to leave them. Nil means that nothing was left
// behind.
//
//	Grace          LastWait           Flush        Flush       Flush
//	handlers go on they are cancelled ends stored  loops stop  the worker leaves
//	               |------------------- Ending, together --------------------|
func (r *Runner) stop(tree *supervise.Supervisor) error {
	within := r.stopBudget(time.Now())
	r.beginStop()
	var faults []error

	if !r.wait(r.config.Grace, r.noneRunning) {
		r.mu.Lock()
		for t := range r.tasks.in(placeRunning) {
			t.cancel(job.ErrStopping)
		}
		r.mu.Unlock()
		if !r.wait(r.config.LastWait, r.noneRunning) {
			faults = append(faults, r.abandon())
		}
	}
	flush := within(2)
	stored := r.wait(flush, r.noneEnding)
	stopping, cancel := context.WithTimeout(context.Background(), within(1))
	defer cancel()
	names := tree.Stop(stopping)
	measured := r.flushMeter(within(0)) // now: the loops measure until they end
	if len(names) > 0 {
		faults = append(faults, fmt.Errorf("%w: %s", supervise.ErrStuck, strings.Join(names, ", ")))
	} else { // now: it may have registered anew until the last beat ended
		faults = append(faults, r.member.Leave(within(0)))
	}
	<-measured
	if !stored {
		faults = append(faults, r.unstored(flush))
	}
	r.member.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ends.timer != nil {
		r.ends.timer.Stop()
	}
	r.phase = phaseStopped
	for _, s := range r.parked {
		close(s.next)
	}
	r.parked = nil
	return errors.Join(faults...)
}

// stopBudget says how long a phase after LastWait may take: Flush, unless that
// would take the time of the phases after it, of which there are so many. A third
// of what Ending has besides LastWait is kept for each.
func (r *Runner) stopBudget(begin time.Time) func(later int) time.Duration {
	end := begin.Add(r.config.Grace + r.config.Ending)
	part := (r.config.Ending - r.config.LastWait) / 3
	return func(later int) time.Duration {
		return max(0, min(r.config.Flush, time.Until(end)-time.Duration(later)*part))
	}
}

// beginStop ends claims and gives back what has not started.
func (r *Runner) beginStop() {
	r.member.Leaving()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phase = phaseStopping
	r.services.end()
	for _, t := range r.takeUnstarted(func(*Task) bool { return true }) {
		r.giveBack(t, 0)
	}
}

// wait waits until done, for at most the time given, and says whether it was.
func (r *Runner) wait(atMost time.Duration, done func() bool) bool {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	for {
		if done() {
			return true
		}
		select {
		case <-r.calm:
		case <-timer.C:
			return done()
		}
	}
}

// Calm lets a stop look again at what it waits for.
func (r *Runner) Calm() { r.signal(r.calm) }

func (r *Runner) noneRunning() bool {
	if r.config.Beside != nil && !r.config.Beside() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tasks.count(placeRunning, placeReserved) == 0 && !r.claims.underWay
}

func (r *Runner) noneEnding() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tasks.ends+r.tasks.counts[placeOver] == 0
}

// abandon gives back, on their behalf, the runs that did not stop: another
// process may run them; what they come to here is dropped.
func (r *Runner) abandon() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for t := range r.tasks.in(placeRunning) {
		names = append(names, fmt.Sprintf("%s %s (run %d)", t.Job.Kind, t.Job.ID, t.Job.Run))
		counts := t.ownership == owned
		t.ownership = abandoned
		r.abandoned = append(r.abandoned, t)
		inTx := t.tx()
		if !counts || inTx == txDone {
			r.tasks.move(t, placeNone)
			continue
		}
		t.doubt = inTx.doubt()
		t.outcome = job.Outcome{Kind: job.Released}
		t.end = t.decide(t.outcome)
		t.mu.Lock()
		t.journal.close(&t.end)
		t.mu.Unlock()
		r.hand(t)
	}
	if len(names) == 0 {
		return nil // only a claim was still under way
	}
	return fmt.Errorf("%w within %v: %s", ErrNotStopped, r.config.Grace+r.config.LastWait, strings.Join(names, ", "))
}

// unstored names the runs whose end did not reach the store. Their jobs go back
// with the rest, or are rescued when the worker is declared lost.
func (r *Runner) unstored(flush time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.Concat(r.tasks.lists[placeInflight].copy(), r.tasks.lists[placeWaiting].copy(), r.tasks.lists[placeEnding].copy())
	var names []string
	for i, t := range left {
		if i == 10 {
			names = append(names, fmt.Sprintf("and %d more", len(left)-i))
			break
		}
		names = append(names, fmt.Sprintf("%s %s (run %d, %s)", t.Job.Kind, t.Job.ID, t.Job.Run, t.end.To))
	}
	return fmt.Errorf("%w within %v: %s", ErrNotFinished, flush, strings.Join(names, ", "))
}
