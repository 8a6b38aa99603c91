package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// RemoteClaim asks for work. A worker has one claim under way at a time.
type RemoteClaim struct {
	Worker WorkerID
	Limit  int // jobs at most; slots that are not free do not count
	// Held are the runs that the worker works on. What the store believes it to hold
	// beyond that goes back free of charge: an answer that was lost leaves nothing behind.
	Held []RunRef
	Wait time.Duration // for a job to come, at most
}

// RemoteJobs is the answer to a claim.
type RemoteJobs struct {
	Jobs  []JobRecord // each is leased to the worker, and counts as begun
	Stale []RunRef    // of Held: they are not the worker's own any more
	Now   time.Time   // the store's clock
}

const (
	// remotePoll is how often a claim that waits looks without a hint.
	remotePoll = time.Second
	// aloneDelay is how long a suspect waits that could not run alone.
	aloneDelay = 10 * time.Second
	maxHeld    = 10_000
	maxWait    = 5 * time.Minute
)

// Claim leases ready jobs to a worker, and waits for them if asked to. What the worker holds and what it is given are never
// more than its slots: a claim gives as many as are free, and is refused where none is. A suspect, which
// may have ended a process before, comes alone and only to a worker that holds nothing.
func (r Remote) Claim(ctx context.Context, c RemoteClaim) (RemoteJobs, error) {
	if err := r.e.usable(ctx); err != nil {
		return RemoteJobs{}, err
	}
	switch {
	case c.Limit < 1 || c.Limit > maxRemoteSlots:
		return RemoteJobs{}, job.Invalid("limit", c.Limit, fmt.Sprintf("must be 1 to %d", maxRemoteSlots))
	case len(c.Held) > maxHeld:
		return RemoteJobs{}, job.Invalid("held", len(c.Held), fmt.Sprintf("must be at most %d", maxHeld))
	case c.Wait < 0 || c.Wait > maxWait:
		return RemoteJobs{}, job.Invalid("wait", c.Wait, fmt.Sprintf("must be 0 to %v", maxWait))
	}
	entry, err := r.entry(ctx, c.Worker)
	if err != nil {
		return RemoteJobs{}, err
	}
	report, err := r.e.store.ReportRuns(ctx, c.Worker, c.Held)
	if err != nil {
		return RemoteJobs{}, r.lost(c.Worker, err)
	}
	r.e.remotes.holds(c.Worker, c.Held)
	owned, slots := len(c.Held)-len(report.Stale), slices.Max(entry.Slots)
	if owned >= slots {
		return RemoteJobs{}, job.Invalid("held", owned, fmt.Sprintf("must be less than the slots of the worker, %d: none is free", slots))
	}
	c.Limit = min(c.Limit, slots-owned)
	heard := r.e.hub.Subscribe(entry.Queues...)
	defer heard.Close()
	until := time.Now().Add(c.Wait)
	for {
		out, next, err := r.claimOnce(ctx, entry, c, len(c.Held) == 0)
		out.Stale = report.Stale
		left := time.Until(until)
		if err != nil || len(out.Jobs) > 0 || left <= 0 {
			return out, r.lost(c.Worker, err)
		}
		timer := time.NewTimer(min(left, next))
		select {
		case <-heard.C():
			heard.Take(nil)
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return out, fmt.Errorf("claim: %w", context.Cause(ctx))
		}
		timer.Stop()
	}
}

// lost forgets a worker that is.
func (r Remote) lost(w WorkerID, err error) error {
	if errors.Is(err, job.ErrWorkerLost) {
		r.e.remotes.drop(w)
	}
	return err
}

// claimOnce looks once, and says when to look again.
func (r Remote) claimOnce(ctx context.Context, entry *store.Worker, c RemoteClaim, idle bool) (out RemoteJobs, next time.Duration, err error) {
	e := r.e
	if e.followed.mirror.Known() == nil {
		if err := e.followed.mirror.Look(ctx); err != nil {
			return out, 0, err
		}
	}
	known := e.followed.mirror.Known()
	claim := store.Claim{Worker: c.Worker, Offer: entry.Offer, Gates: e.followed.limits.Load().gates}
	claim.Offer.Kinds = unpaused(entry.Offer.Kinds, known)
	if len(claim.Offer.Kinds) == 0 {
		return out, remotePoll, nil
	}
	claim.Seq, claim.Opened = e.remotes.claim(c.Worker, time.Now())
	rules := e.followed.rules.Load()
	for _, queue := range entry.Queues {
		aging := max(rules.settings(queue).Aging, 0)
		claim.Queues = append(claim.Queues, store.QueueClaim{Queue: queue, Limit: c.Limit, Start: c.Limit, Aging: aging})
	}
	reply, err := e.store.Claim(ctx, claim)
	if err != nil {
		return out, 0, err
	}
	if known == nil || reply.Revision != 0 && reply.Revision != known.Revision {
		if err := e.followed.mirror.Look(ctx); err != nil { // the next claim goes by it
			e.cfg.Logger.WarnContext(ctx, "settings could not be read", "error", err)
		}
	}
	out.Now = reply.Now
	keep, back := r.choose(reply.Jobs, c.Limit, unpaused(entry.Offer.Kinds, e.followed.mirror.Known()), idle)
	if len(back) > 0 {
		if _, err := e.store.Finish(ctx, c.Worker, back); err != nil {
			return out, 0, err // they go back with the next report
		}
	}
	notes := make([]store.Note, len(keep))
	for i := range keep {
		notes[i] = store.Note{RunRef: RunRef{ID: keep[i].ID, Run: keep[i].Run}, Begun: true}
	}
	if len(notes) > 0 {
		verdicts, err := e.store.Note(ctx, c.Worker, notes)
		if err != nil {
			return out, 0, err
		}
		for i := range keep {
			if verdicts[i] == job.Applied {
				out.Jobs = append(out.Jobs, keep[i])
			}
		}
	}
	if reply.More {
		return out, 0, nil
	}
	if next = remotePoll; reply.Next > 0 {
		next = min(next, reply.Next)
	}
	return out, next, nil
}

// choose keeps what the worker gets of a claim over several queues, and gives the rest
// back free of charge: what is beyond its limit, what was paused meanwhile, and what came
// beside a suspect. A suspect that finds others at work waits for a while, which is
// counted, so that it does not wait for ever.
func (r Remote) choose(jobs []store.LeasedJob, limit int, kinds map[string]int, idle bool) (keep []JobRecord, back []job.End) {
	alone := -1
	takes := make([]bool, len(jobs))
	for i := range jobs {
		_, known := kinds[jobs[i].Kind]
		takes[i] = known && (idle || !jobs[i].Alone())
		if takes[i] && jobs[i].Alone() && alone < 0 {
			alone = i
		}
	}
	for i := range jobs {
		j := &jobs[i].Job
		if takes[i] && (alone == i || alone < 0 && len(keep) < limit) {
			keep = append(keep, *j)
			continue
		}
		end := r.decide(j, job.By{}, job.Outcome{Kind: job.Released})
		if j.Alone() && !idle {
			end.Defer, end.Delay = true, aloneDelay
		}
		back = append(back, end)
	}
	return keep, back
}

// unpaused are the kinds that are not paused.
func unpaused(kinds map[string]int, known *store.Effective) map[string]int {
	if known == nil {
		return kinds
	}
	out := kinds
	for _, p := range known.Pauses {
		if _, ok := out[p.Name]; p.Scope != store.PauseKind || !ok {
			continue
		}
		if len(out) == len(kinds) {
			out = make(map[string]int, len(kinds))
			for k, v := range kinds {
				out[k] = v
			}
		}
		delete(out, p.Name)
	}
	return out
}
