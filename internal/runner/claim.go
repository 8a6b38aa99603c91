package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/internal/wake"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

const (
	// maxEnding is how many ends may wait for the store before claims stop: one
	// batch that is under way and one that is ready to follow. More would only
	// take memory.
	maxEnding      = 2 * maxFinish
	maxEndingBytes = 2 * maxLoad
	// markAfter is how long a run must have lasted before a claim tells the store
	// that it began: most are over by then. A run that takes the process with it
	// earlier is rescued unmarked, once: from then on its beginning is committed
	// before it begins (begin.go).
	markAfter = 50 * time.Millisecond
	// cancelsEvery bounds how often the store is asked for cancels: a listener
	// that cannot say what was committed wakes us for everything.
	cancelsEvery = 100 * time.Millisecond
	// soonest bounds how often a due time that the store calls near is looked at.
	soonest = time.Millisecond
)

// laterLooks are the looks at a queue after a hint from outside about it: a throttle
// there may have swallowed the hints of the commits right after it.
var laterLooks = [...]time.Duration{100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second}

// claims is the state of the claim loop. It belongs to that loop, except for
// what Runner.mu guards.
type claims struct {
	underWay bool // guarded by mu
	unclear  bool // what is leased to us is not sure: report what is held before the next claim; guarded by mu
	seq      int64
	repeat   *store.Claim // its answer was lost: ask again
	bytes    int64        // of the next answer, at most; 0 at first
	queues   int          // asked for at once, at most; 0 means all
	turn     int          // the queue to begin with when they are not all asked for
	slowness int          // doublings of the time that a claim for one job may take
	held     time.Time    // of the last report
	cancels  bool         // look for cancels
	asked    time.Time    // of the last look for cancels
	timer    *time.Timer
}

// claimLoop fills free slots whenever work may exist. It never waits for a
// cooldown: what it waits for is a free slot, a hint, a due time or the poll.
// An error ends it and supervise starts it again after a pause; its state stays.
func (r *Runner) claimLoop(ctx context.Context) error {
	c := &r.claims
	if c.timer == nil {
		c.timer = time.NewTimer(time.Hour)
	}
	for ctx.Err() == nil {
		now := time.Now()
		r.takeHints(now)
		if err := r.claimOnce(ctx, now); err != nil {
			return err
		}
		wait := r.nextLook(time.Now())
		if wait <= 0 {
			continue
		}
		c.timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-r.claimWanted:
		case <-r.hints.C():
		case <-c.timer.C:
		}
	}
	return nil
}

// takeHints moves looks forward to when the hints say.
func (r *Runner) takeHints(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetRemoved()
	heard := r.hints.Take(func(i int, what wake.Hinted) {
		q, at := r.queues[i], now
		if !what.Due.IsZero() {
			at = what.Due.Add(-r.offset)
		}
		if what.Counted() && what.Due.IsZero() {
			q.lookSooner(at)
		} else {
			q.lookBy(at)
		}
		if what.Outside() {
			q.heard, q.later = now, 0
		}
	})
	r.claims.cancels = r.claims.cancels || heard.Job
	if heard.Members && len(r.serves.Totals) > 0 {
		r.wakeBeat()
	}
	for _, q := range r.queues {
		for at, ok := q.laterLook(); ok && !now.Before(at); at, ok = q.laterLook() {
			q.later++
			q.lookBy(now)
		}
	}
}

// lookBy moves the next look forward, because jobs may be ready by then that nobody
// here has counted, and says whether it did.
func (q *queue) lookBy(at time.Time) bool {
	q.unseen.hint(at)
	return q.lookSooner(at)
}

// lookSooner moves the next look forward, and says whether it did.
func (q *queue) lookSooner(at time.Time) bool {
	if !at.Before(q.look) {
		return false
	}
	q.look = at
	return true
}

// laterLook is the next look after a hint from outside, if there is one.
func (q *queue) laterLook() (time.Time, bool) {
	if q.heard.IsZero() || q.later == len(laterLooks) {
		return time.Time{}, false
	}
	return q.heard.Add(laterLooks[q.later]), true
}

// claimOnce does what is due: cancels, the report of what is held, the suspect,
// one claim for all queues that want one.
func (r *Runner) claimOnce(ctx context.Context, now time.Time) error {
	c := &r.claims
	r.mu.Lock()
	worker, healthy, stopping, busy := r.lease.Worker, r.lease.Healthy, r.stopping(), !r.empty()
	report := c.unclear || !now.Before(r.config.Rhythm.After(c.held, r.config.HoldEvery))
	r.mu.Unlock()
	if !healthy || stopping {
		return nil
	}
	if !r.config.Hub.Healthy() && now.Sub(c.asked) >= r.config.PollOnly {
		c.cancels = true // nobody will tell
	}
	if c.cancels && now.Sub(c.asked) >= cancelsEvery {
		if busy {
			if err := r.lookForCancels(ctx, worker); err != nil {
				return err
			}
		}
		c.cancels, c.asked = false, now
	}
	if report {
		if err := r.reportHeld(ctx, worker); err != nil {
			return err
		}
		c.repeat, c.held = nil, now
	}
	r.mu.Lock()
	marking, suspects := r.tasks.counts[placeMarking], r.tasks.counts[placeSuspect]
	r.mu.Unlock()
	if marking > 0 {
		if err := r.startMarked(ctx); err != nil {
			return err
		}
	}
	if suspects > 0 {
		if err := r.runSuspect(ctx, now); err != nil {
			return err
		}
	}
	claim := c.repeat
	if claim == nil || claim.Worker != worker {
		next, ok := r.wantedClaim(worker, now)
		if !ok {
			return nil
		}
		c.seq++
		next.Seq = c.seq
		claim = &next
	}
	return r.claim(ctx, claim, now)
}

// claim sends one claim and takes over what it returns. One whose answer was lost
// is repeated under its number; when that is lost too, ReportRuns clears up. It may have
// been too large for the link: the repeat asks for half, and ReportRuns gives back what
// that leaves.
func (r *Runner) claim(ctx context.Context, claim *store.Claim, now time.Time) error {
	c := &r.claims
	r.mu.Lock()
	r.claims.underWay = true
	r.stats.Looks++
	r.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, r.config.callLimit()<<c.slowness)
	asked := time.Now()
	answer, err := r.store.Claim(limited, *claim)
	cancel()
	r.config.Meter.Call(time.Since(asked))
	back := false
	switch { // the member is told before mu is taken
	case errors.Is(err, job.ErrWorkerLost):
		r.member.Lost(claim.Worker)
	case err == nil && !answer.Now.IsZero():
		back = r.member.Heard(now, answer.Now)
	}
	if err == nil {
		r.revised(answer.Revision)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claims.underWay = false
	if r.stopping() {
		defer r.signal(r.calm) // a stop waits for the claim as well
	}
	if err != nil {
		for _, asked := range claim.Queues {
			q := r.named[asked.Queue]
			q.unseen.answered(false)
			q.lookBy(now)
		}
	}
	switch {
	case err == nil:
		c.unclear = c.unclear || c.repeat != nil
		if c.bytes = claim.Bytes; c.repeat == nil && time.Since(now) < r.config.callLimit()/4 {
			c.grow(claim)
		}
		c.repeat = nil
		if back {
			r.wakeBeat() // which redates
		}
		took := time.Since(now)
		r.horizon += (4*took - r.horizon) / 8
		r.takeOver(claim, answer, now.Add(took))
		return nil
	case errors.Is(err, job.ErrWorkerLost):
		c.repeat = nil
		return nil
	case unclear(err) || !unavailable(err): // whatever else failed, what was leased may be ours
		c.unclear, c.repeat = c.unclear || c.repeat != nil, claim
		c.shrink(claim)
	default:
		c.repeat = nil
	}
	return fmt.Errorf("claim: %w", err)
}

// revised hands on the revision of the settings, where an answer carries it.
func (r *Runner) revised(revision int64) {
	if revision != 0 && r.config.Revised != nil {
		r.config.Revised(revision)
	}
}

// maxSlowness bounds the time of a claim for one job: 8 times that of others.
const maxSlowness = 3

// shrink makes the next claims smaller: of fewer bytes, and of fewer queues, each
// of which gets one job however large; when one job alone took too long, it gets
// more time.
func (c *claims) shrink(claim *store.Claim) {
	if claim.Bytes <= 1 && len(claim.Queues) == 1 {
		c.slowness = min(c.slowness+1, maxSlowness)
	}
	claim.Bytes = max(claim.Bytes/2, 1)
	c.bytes, c.queues = claim.Bytes, max(len(claim.Queues)/2, 1)
}

// grow makes them larger again, after one that was quick.
func (c *claims) grow(claim *store.Claim) {
	c.bytes, c.slowness = min(2*claim.Bytes, store.ClaimBytes), 0
	if c.queues *= 2; c.bytes == store.ClaimBytes {
		c.queues = 0
	}
}

// unclear reports whether a call may have happened although it failed. A call
// that we gave up waiting for may have, too.
func unclear(err error) bool {
	return errors.Is(err, job.ErrOutcomeUnknown) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// wantedClaim asks for what fits into the slots, plus a little ahead.
func (r *Runner) wantedClaim(worker job.WorkerID, now time.Time) (store.Claim, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if worker != r.lease.Worker || !r.mayStart() || r.tooManyEnds() || !r.offers() {
		return store.Claim{}, false
	}
	var queues []store.QueueClaim
	poll := r.poll()
	c := &r.claims
	for i := range r.queues {
		q := r.queues[(c.turn+i)%len(r.queues)]
		if c.queues > 0 && len(queues) == c.queues {
			c.turn = (c.turn + i) % len(r.queues) // the others have their turn next
			break
		}
		if !r.lookDue(q, now, poll) {
			continue
		}
		if start, ahead := q.wants(r.horizon); start+ahead > 0 {
			queues = append(queues, store.QueueClaim{Queue: q.name, Start: start, Limit: start + ahead, Aging: q.setting.Aging})
			// What asks for a look while this one is under way moves it forward again.
			q.looked, q.look = now, r.config.Rhythm.After(now, r.config.Poll)
			q.unseen.ask(now)
		}
	}
	if len(queues) == 0 {
		return store.Claim{}, false
	}
	bytes := cmp.Or(r.claims.bytes, store.ClaimBytes)
	return store.Claim{Worker: worker, Queues: queues, Offer: r.offer, Bytes: bytes, Begun: r.begunSince(now.Add(-markAfter)),
		Gates: r.gates.rules, Opened: r.takeOpened()}, true
}

// wants is how many jobs to start at once and how many to hold ready for
// when slots free up. When jobs are held ready at all, one more counts as
// started and goes first: a job that was rescued before may only be
// claimed to start, and must not starve behind a full line.
func (q *queue) wants(horizon time.Duration) (start, ahead int) {
	target := q.prefetch(horizon)
	start = max(q.slots-q.running-q.first.len()-q.ready.len(), 0)
	if start == 0 && (target == 0 || q.slots == 0 || q.ready.len() > target/2) {
		return 0, 0
	}
	return max(start, 1), max(target-q.ready.len(), 0)
}

func (r *Runner) lookDue(q *queue, now time.Time, poll time.Duration) bool {
	return !q.cools(now) && (!now.Before(q.look) || !now.Before(r.config.Rhythm.After(q.looked, poll)))
}

// poll is how long to sleep at most. The caller holds mu.
func (r *Runner) poll() time.Duration {
	if r.config.Hub.Healthy() {
		return r.config.Poll
	}
	return r.config.PollOnly
}

// nextLook is how long to sleep when nothing happens; 0 when the next round is due.
func (r *Runner) nextLook(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &r.claims
	poll := r.poll()
	wait := poll
	if c.cancels && r.lease.Healthy && !r.stopping() {
		wait = min(wait, c.asked.Add(cancelsEvery).Sub(now))
	}
	if !r.mayStart() || r.tooManyEnds() || !r.offers() {
		return max(wait, soonest) // a token comes when that changes
	}
	for _, q := range r.queues {
		if at, ok := q.laterLook(); ok {
			wait = min(wait, at.Sub(now))
		}
		start, ahead := q.wants(r.horizon)
		if start+ahead == 0 {
			continue // a token comes when a slot frees
		}
		next := q.look
		if at := r.config.Rhythm.After(q.looked, poll); at.Before(next) {
			next = at
		}
		if q.cools(now) && next.Before(q.coolUntil) {
			next = q.coolUntil
		}
		wait = min(wait, next.Sub(now))
	}
	return wait
}

// wantClaim wakes the claim loop if the queue wants jobs and may have some, or
// if the suspect can run. The caller holds mu.
func (r *Runner) wantClaim(q *queue, now time.Time) {
	if r.suspect.holdsUp() {
		if r.tasks.counts[placeRunning] == 0 {
			r.signal(r.claimWanted)
		}
		return
	}
	if r.claims.underWay || len(r.claimWanted) > 0 || !r.lookDue(q, now, r.config.Poll) {
		return
	}
	if start, ahead := q.wants(r.horizon); start+ahead > 0 && r.mayStart() {
		r.signal(r.claimWanted)
	}
}
