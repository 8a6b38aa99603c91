package pawltest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// RunUntilIdle works until nothing is running and nothing is ready that anybody
// takes, and no schedule is due: what is left is due later, paused, of a queue that cools down, or of a
// queue or kind that no live worker serves. The log says what is left though it is ready, and why.
func (e *Engine) RunUntilIdle() {
	e.t.Helper()
	e.work(func() bool { return false }, e.tellLeft)
}

// Advance works while time passes: what falls due meanwhile runs at its time, also
// the jobs of schedules. In real time it takes that long.
func (e *Engine) Advance(d time.Duration) {
	e.t.Helper()
	if !e.virtual {
		e.advanceReal(d)
		return
	}
	end := time.Now().Add(d)
	for {
		e.RunUntilIdle()
		next := e.nextDue()
		if next.IsZero() || next.After(end) {
			break
		}
		time.Sleep(time.Until(next)) // virtual
	}
	if left := time.Until(end); left > 0 {
		time.Sleep(left) // virtual
		e.RunUntilIdle()
	}
}

func (e *Engine) advanceReal(d time.Duration) {
	e.t.Helper()
	r := e.start()
	defer r.stop()
	passed := time.NewTimer(d)
	defer passed.Stop()
	select {
	case <-passed.C:
	case <-r.ended:
		return
	}
	e.settleReal(r, func() bool { return false })
	e.tellLeft()
}

// work runs the engine until enough says so, or until it is idle: then it calls
// idle before the engine stops.
func (e *Engine) work(enough func() bool, idle func()) {
	e.t.Helper()
	e.upkeep()
	r := e.start()
	defer r.stop()
	if e.virtual {
		e.settle(r, enough)
	} else {
		e.settleReal(r, enough)
	}
	if (!r.over() || r.fault() == nil) && !enough() {
		idle()
	}
}

// working is the engine's Run under way.
type working struct {
	e      *Engine
	cancel context.CancelFunc
	before job.WorkerID // of the run before, whose counters are still shown when this one begins
	ended  chan struct{}
	err    error // once ended
}

// serves reports whether the engine is registered as a worker: before that
// nobody seems to take its jobs.
func (r *working) serves() bool {
	s := r.e.Stats()
	return s.Healthy && s.Worker != r.before
}

func (e *Engine) start() *working {
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.ctx))
	r := &working{e: e, cancel: cancel, before: e.Stats().Worker, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = e.Engine.Run(ctx)
	}()
	return r
}

func (r *working) stop() {
	r.e.t.Helper()
	r.cancel()
	<-r.ended
	r.e.watch.moved()
	if err := r.fault(); err != nil {
		r.e.t.Fatalf("run: %v", err)
	}
}

// fault is what was wrong with a run that has ended. A test may have no handlers
// and only enqueue.
func (r *working) fault() error {
	if errors.Is(r.err, pawl.ErrNoHandlers) {
		return nil
	}
	return r.err
}

func (r *working) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// Bounds of settle, in virtual time.
const (
	unclaimed = 30 * time.Second // a worker would take it and has not for so long while nothing runs
	forever   = 365 * 24 * time.Hour
)

// settle waits in virtual time: between two looks nothing can happen unseen.
func (e *Engine) settle(r *working, enough func() bool) {
	e.t.Helper()
	step, quiet, claimed := time.Millisecond, time.Duration(0), uint64(0)
	for waited := time.Duration(0); waited < forever; waited += step {
		synctest.Wait()
		e.watch.wait()
		e.watch.moved()
		if r.over() || enough() || r.serves() && e.idle() {
			return
		}
		if now := e.Stats(); now.Running+now.Ready+now.Ending > 0 || now.Claimed != claimed {
			claimed, quiet = now.Claimed, 0
		} else if quiet += step; quiet > unclaimed {
			return
		}
		time.Sleep(step) // virtual: a handler is sleeping, or a worker will look again
		step = min(2*step, time.Minute)
	}
	e.t.Fatalf("still busy after a year: %s", e.describe(pawl.Filter{}))
}

// settleReal looks when a handler began or ended or an end was committed, and now
// and then besides: other processes may work on the same store.
func (e *Engine) settleReal(r *working, enough func() bool) {
	e.t.Helper()
	const soon, late = 5 * time.Millisecond, 250 * time.Millisecond
	pause := soon
	again := time.NewTimer(pause)
	defer again.Stop()
	e.watch.moved()
	for {
		if r.over() || enough() || r.serves() && e.idle() {
			return
		}
		if still := e.watch.still(); still > e.standstill {
			e.t.Fatalf("pawltest: nothing has begun or ended for %v; %s\nwaiting: %s\npawltest.Standstill sets the limit.\n\n%s",
				still.Round(time.Millisecond), e.watch.handlers(), e.describe(pawl.Filter{States: []job.State{job.Waiting, job.Running}}), e.watch.goroutines().text())
		}
		select {
		case <-e.changed:
			pause = soon
		case <-r.ended:
		case <-again.C:
			pause = min(2*pause, late)
		}
		again.Reset(pause)
	}
}

func (e *Engine) signal() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// idle reports that no job runs and none is ready that a live worker takes.
//
// The looks are not of one moment, and this is what makes them safe: a job that
// is missed by each was waiting at the first, running at the second and waiting
// again at the third. Then its handler began in between, and Began has grown.
func (e *Engine) idle() bool {
	e.t.Helper()
	began := e.Stats().Began
	running := pawl.Filter{States: []job.State{job.Running}}
	return !e.firing() && e.count(running, 1) == 0 && !e.wanted() && e.count(running, 1) == 0 && e.Stats().Began == began
}

// wanted reports whether a job is ready that a live worker takes.
func (e *Engine) wanted() bool {
	e.t.Helper()
	for s := range e.ready() {
		if s.Job.State != job.Waiting || taken(s) { // not waiting: it has moved on since it was listed
			return true
		}
	}
	return false
}

// ready are the jobs that are due, one of each sort that claims tell apart.
func (e *Engine) ready() iter.Seq[job.Situation] {
	e.t.Helper()
	return func(yield func(job.Situation) bool) {
		e.t.Helper()
		known := map[string]bool{}
		for j := range e.all(pawl.Filter{States: []job.State{job.Waiting}, DueBefore: e.now()}) {
			sort := fmt.Sprintf("%q %q %d %q", j.Queue, j.Kind, j.Version, j.Capabilities)
			if known[sort] {
				continue
			}
			known[sort] = true
			s, err := store.SituationOf(e.ctx, e.Store(), j.ID)
			if errors.Is(err, job.ErrNotFound) {
				continue // ended, and kept by nobody
			}
			if err != nil {
				e.t.Fatal(err)
			}
			if !yield(s) {
				return
			}
		}
	}
}

func taken(s job.Situation) bool {
	if s.Pause != nil || s.CoolDown != nil {
		return false
	}
	for _, o := range s.Workers {
		if o.Takes(s.Job.Kind, s.Job.Version, s.Job.Capabilities) {
			return true
		}
	}
	return false
}

// tellLeft logs what is ready and stays so, and why: a queue that was forgotten
// in the configuration would otherwise look like a handler that does nothing.
func (e *Engine) tellLeft() {
	e.t.Helper()
	for s := range e.ready() {
		if s.Job.State == job.Waiting {
			e.t.Logf("pawltest: idle, and %s %s is left: %s", s.Job.Kind, s.Job.ID, job.Explain(s))
		}
	}
}

// upkeep does at once what the engine's loops do every few seconds, so that a
// deadline or a retention that has passed is over when the test looks.
func (e *Engine) upkeep() {
	e.t.Helper()
	if _, err := e.Store().Expire(e.ctx, 100_000); err != nil {
		e.t.Fatal(err)
	}
	if _, err := e.Store().Purge(e.ctx, 100_000); err != nil {
		e.t.Fatal(err)
	}
}

// nextDue is when the next job falls due, meets its deadline or has its queue cooled
// down; zero for never.
func (e *Engine) nextDue() (next time.Time) {
	e.t.Helper()
	now := e.now()
	for j := range e.all(pawl.Filter{States: []job.State{job.Waiting, job.Suspended}}) {
		for _, at := range []time.Time{j.Due, j.Deadline} {
			if at.After(now) && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
	}
	for s := range e.ready() {
		if c := s.CoolDown; c != nil && (next.IsZero() || c.Until.Before(next)) {
			next = c.Until
		}
	}
	for _, s := range e.scheduleStates().List {
		if s.Next.After(now) && (next.IsZero() || s.Next.Before(next)) {
			next = s.Next
		}
	}
	return next
}

func (e *Engine) now() time.Time {
	e.t.Helper()
	now, err := e.Store().Now(e.ctx)
	if err != nil {
		e.t.Fatal(err)
	}
	return now
}
