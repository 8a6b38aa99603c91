package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// maxRefusals is how often an end may be refused alone, while others are
// applied, before it is taken for the cause.
const maxRefusals = 3

// heldPause is how long an end waits before it is sent again when an open
// transaction held its job. That is mostly one of its own handler's, which has
// ended the run if it commits.
const heldPause = 500 * time.Millisecond

// hand gives an ended run to the finish loop. The caller holds mu.
func (r *Runner) hand(t *Task) {
	t.weight = weightOfEnd(&t.end)
	r.tasks.move(t, placeEnding)
	r.signal(r.finishWanted)
}

// finishLoop stores ends: at once when idle, many in one call under load,
// since those that come in while a call is under way go into the next. There is
// no timer. An error ends it and supervise starts it again after a pause.
func (r *Runner) finishLoop(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.finishWanted:
		}
		for more := true; more; {
			r.mu.Lock()
			over := r.tasks.counts[placeOver]
			r.mu.Unlock()
			if over > 0 {
				r.toldOver()
			}
			var err error
			if more, err = r.finishOnce(ctx); err != nil {
				r.signal(r.finishWanted) // for after the pause
				return err
			}
		}
	}
}

// tooManyEnds reports whether claims have to wait until ends are stored: they
// are what takes memory when the store is slow (P10). The caller holds mu.
func (r *Runner) tooManyEnds() bool {
	return r.tasks.ends >= maxEnding || r.tasks.endBytes >= maxEndingBytes
}

// ends is what is known of the ends on their way, beside their tasks. Guarded by
// Runner.mu.
type ends struct {
	applied uint64      // calls of Finish and Beat that succeeded
	timer   *time.Timer // of those in placeWaiting
}

// finishes is the state of the finish loop, which owns it.
type finishes struct {
	size  int  // of the next batch, at most
	load  load // and its bytes
	alone int  // ends in a row that were refused alone
	batch []*Task
}

// finishOnce stores one batch and says whether to go on. After an error that
// the rows may have caused it goes on at once with half as many, down to one,
// so that a bad end is found and the others pass it by (P8); any other error,
// or two refused alone in a row, is the store's and ends the loop for a pause.
// After a call that took too long the next one carries half the bytes, and at
// their lower bound half the ends: down to one end that has the time for itself.
func (r *Runner) finishOnce(ctx context.Context) (more bool, err error) {
	f := &r.finishes
	batch, bytes := r.nextBatch(max(f.size, 1), f.load)
	if len(batch) == 0 {
		return false, nil
	}
	ends := make([]job.End, len(batch))
	for i, t := range batch {
		ends[i] = t.end
		ends[i].Again = t.doubt&doubtTry != 0
	}
	limit := r.config.callLimit()
	if len(batch) == 1 {
		limit <<= min(batch[0].refusals, maxRefusals-1)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	sent := time.Now()
	verdicts, err := r.store.Finish(limited, batch[0].worker, ends)
	cancel()
	for _, t := range batch {
		if t.end.Then.Some() && !unclear(err) {
			job.SettleHandOvers(t.end.Then.Drafts, job.HandedOver{}) // what the store did not
		}
	}
	if n := len(verdicts); err != nil && n > 0 && n < len(batch) { // the others failed
		for _, t := range batch[:n] {
			bytes -= t.weight
		}
		f.alone = 0
		batch = r.settle(batch, verdicts)
	}
	r.config.Meter.Call(time.Since(sent))
	switch {
	case err == nil && len(verdicts) == len(batch):
		f.size, f.alone = min(2*f.size, maxFinish), 0
		f.load.grow(time.Since(sent), limit)
		r.settle(batch, verdicts)
		return true, nil
	case errors.Is(err, job.ErrWorkerLost):
		r.member.Lost(batch[0].worker)
		r.settle(batch, refuseAll(batch))
		return true, nil
	case err == nil:
		err = fmt.Errorf("%d verdicts for %d ends", len(verdicts), len(batch))
	}
	err = fmt.Errorf("finish %d runs: %w", len(batch), err)
	switch {
	case unclear(err):
		f.load.shrink(bytes)
		if bytes <= minLoad {
			f.size = max(len(batch)/2, 1)
		}
		if len(batch) == 1 && bytes >= largeEnd && r.refused(batch[0], err) {
			return true, nil
		}
		r.keepForLater(batch, true)
		return false, err
	case unavailable(err):
		r.keepForLater(batch, false)
		return false, err
	case len(batch) > 1:
		f.size = len(batch) / 2
		r.keepForLater(batch, false)
		return true, nil
	}
	if r.refused(batch[0], err) {
		return true, nil
	}
	r.keepForLater(batch, false)
	if f.alone++; f.alone > 1 {
		f.alone = 0
		return false, err
	}
	return true, nil
}

// unavailable reports an error that says nothing about the rows.
func unavailable(err error) bool {
	for _, cause := range []error{store.ErrUnavailable, store.ErrBusy, store.ErrFull, store.ErrReadOnly, store.ErrClosed} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// nextBatch moves ends of one worker to those in flight. It returns them and
// what they weigh.
func (r *Runner) nextBatch(size int, l load) ([]*Task, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	batch := r.finishes.batch[:0]
	for t := range r.tasks.in(placeEnding) {
		if len(batch) == size || len(batch) > 0 && t.worker != batch[0].worker {
			break
		}
		batch = append(batch, t)
	}
	n, bytes := l.fits(len(batch), size, func(i int) int { return batch[i].weight })
	clear(batch[n:])
	r.finishes.batch = batch[:n]
	for _, t := range batch[:n] {
		r.tasks.move(t, placeInflight)
		if t.end.Then.Some() && t.doubt == 0 { // else they may be on their way to the store
			r.handOver(t.end.Then.Drafts)
		}
	}
	return batch[:n], bytes
}

// keepForLater puts a batch that failed back in front; one that failed alone
// goes to the end, lest it hold up the others.
func (r *Runner) keepForLater(batch []*Task, unclear bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range slices.Backward(batch) {
		if unclear {
			t.doubt |= doubtTry
		}
		if len(batch) == 1 && (unclear || t.refusals > 0) {
			r.tasks.move(t, placeEnding)
		} else {
			r.tasks.moveFirst(t, placeEnding)
		}
	}
}

// refused counts an end that the store did not take although it was alone. It is
// the end's own fault only if the store took something else meanwhile; then a
// plain failure takes its place, and when that is refused too the run is no
// longer held, so that the next report, in its time, gives the job back. It
// reports whether the run was let go.
func (r *Runner) refused(t *Task, err error) bool {
	var brought *job.FollowUps // with an end that is given up
	defer func() {
		if brought.Some() { // an earlier try may have stored it
			job.SettleHandOvers(brought.Drafts, job.HandedOver{Unknown: true})
		}
	}()
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.refusals == 0 {
		t.applied = uint32(r.ends.applied)
	}
	t.refusals++
	if t.refusals < maxRefusals || t.applied == uint32(r.ends.applied) {
		return false
	}
	if !t.stripped {
		t.stripped, t.refusals = true, 0
		t.outcome = job.Outcome{Kind: job.Failed, Message: "its outcome could not be stored: " + err.Error()}
		brought = t.end.Then
		t.end = r.decide(t, t.outcome)
		weight := weightOfEnd(&t.end)
		r.tasks.endBytes += weight - t.weight
		t.weight = weight
		return false
	}
	r.log.Error("the end of a run cannot be stored, its job goes back", "job", t.Job.ID, "run", t.Job.Run, "error", err)
	r.stats.Unkept++
	r.tasks.move(t, placeNone)
	return true
}

// settle takes note of the store's verdicts, which are of the first ends in flight,
// wakes whoever waits for ends to be stored, and returns those that are left.
func (r *Runner) settle(batch []*Task, verdicts []job.Verdict) []*Task {
	batch, rest := batch[:len(verdicts)], batch[len(verdicts):]
	now := time.Now()
	var told []Finished
	var ready []store.Hint
	r.mu.Lock()
	r.ends.applied++
	for i, t := range batch {
		if verdicts[i] == job.Locked {
			r.keepHeld(t)
			continue
		}
		r.tasks.move(t, placeNone)
		r.openGate(t, now)
		if t.end.Then != nil {
			ready = append(ready, r.countWaiting(t.end.Then.Drafts)...) // whatever the verdict: an earlier try may have been applied
		}
		if verdicts[i] == job.Applied && t.outcome.Kind == job.Succeeded && r.config.Hooks.Finish == nil {
			r.endApplied(t, now) // as nearly all: nobody is to be told, and what would be is large
			continue
		}
		f := Finished{Task: t, Outcome: t.outcome, End: t.end, Verdict: verdicts[i], Took: t.took}
		switch {
		case f.Verdict == job.Already && t.doubt&doubtTx != 0:
			r.stats.InTx++
			f = t.finishedInTx() // most likely: its answer was lost first
			r.measure(&f, now)
		case f.Verdict == job.Already:
			r.stats.Unclear++
			r.endApplied(t, now)
			f.Verdict = job.Applied
		case f.Verdict == job.Applied:
			r.endApplied(t, now)
		case r.overInTx(t, f.Verdict):
			r.stats.InTx++
			f = t.finishedInTx()
			r.measure(&f, now)
		case t.doubt != 0:
			r.stats.Unclear++ // most likely its own first try
		default:
			r.stats.Refused++
			r.log.Warn("a run that no longer owns its job was refused", "job", t.Job.ID, "run", t.Job.Run, "outcome", t.end.To)
		}
		if r.config.Hooks.Finish != nil || t.outcome.Kind != job.Succeeded {
			told = append(told, f)
		}
	}
	if r.stopping() {
		r.signal(r.calm)
	}
	if r.suspect.idle() != nil {
		r.signal(r.claimWanted)
	} else {
		for _, q := range r.queues {
			r.wantClaim(q, now)
		}
	}
	r.mu.Unlock()
	clear(batch)
	r.config.Hub.Accepted(ready...)
	for i := range told {
		r.measureFailure(&told[i])
		r.tell(told[i])
	}
	return rest
}

// endApplied counts an end that is stored. The caller holds mu.
func (r *Runner) endApplied(t *Task, now time.Time) {
	r.countEnd(t, now)
	if t.end.To == job.Waiting && t.queue.lookBy(now.Add(t.end.Delay)) {
		r.signal(r.claimWanted) // it sleeps until a later look
	}
}

// keepHeld keeps an end for later, aside, so that the others go on (P8). The
// caller holds mu.
func (r *Runner) keepHeld(t *Task) {
	if !t.waited {
		t.waited = true
		r.log.Warn("the end of a run waits for an open transaction that holds its job", "job", t.Job.ID, "run", t.Job.Run, "outcome", t.end.To)
	}
	if r.tasks.move(t, placeWaiting); r.tasks.count(placeWaiting) > 1 {
		return // the timer runs
	}
	r.ends.timer = time.AfterFunc(heldPause, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for t := range r.tasks.in(placeWaiting) {
			r.tasks.move(t, placeEnding)
		}
		r.signal(r.finishWanted)
	})
}

// toldOver calls the hook for runs that ended in their handler's transaction.
func (r *Runner) toldOver() {
	r.mu.Lock()
	over := r.tasks.lists[placeOver].copy()
	now := time.Now()
	for _, t := range over {
		r.tasks.move(t, placeNone)
		if r.openGate(t, now); t.Job.Gate() != 0 {
			r.signal(r.claimWanted)
		}
	}
	if len(over) > 0 && r.stopping() {
		r.signal(r.calm) // a stop waits for them as well, and no end of another run may follow
	}
	r.mu.Unlock()
	now = time.Now()
	for _, t := range over {
		f := t.finishedInTx()
		r.measure(&f, now)
		r.tell(f)
	}
}

// tell writes the log and calls the hook, and survives it.
func (r *Runner) tell(f Finished) {
	r.logEnd(&f)
	if r.config.Hooks.Finish == nil {
		return
	}
	defer func() {
		if value := recover(); value != nil {
			r.log.Error("finish hook panicked", "job", f.Task.Job.ID, "panic", value)
		}
	}()
	r.config.Hooks.Finish(f)
}

func refuseAll(batch []*Task) []job.Verdict {
	verdicts := make([]job.Verdict, len(batch))
	for i := range verdicts {
		verdicts[i] = job.Stale
	}
	return verdicts
}
