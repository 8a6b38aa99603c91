package pawl

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/internal/meter"
	"github.com/pawlwork/pawl/internal/wake"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
)

// RemoteOutcome is how a run ended, as its worker says it.
type RemoteOutcome string

// How a run may end.
const (
	RemoteDone       RemoteOutcome = "done"       // with a result, if there is one
	RemoteFailed     RemoteOutcome = "failed"     // burns an attempt; after Delay if that is set, else by the queue's backoff
	RemoteDead       RemoteOutcome = "dead"       // failed for good
	RemoteSnoozed    RemoteOutcome = "snoozed"    // again after Delay; no attempt burned
	RemoteThrottled  RemoteOutcome = "throttled"  // the queue cools down; no attempt burned
	RemoteReleased   RemoteOutcome = "released"   // given back: the worker stops
	RemoteCancelled  RemoteOutcome = "cancelled"  // it was asked to stop, and did
	RemoteUnreadable RemoteOutcome = "unreadable" // its arguments are: it is parked
)

// RemoteEnd ends a run.
type RemoteEnd struct {
	RunRef
	Outcome  RemoteOutcome
	Message  string         // of a failure, or why it was put off
	Stack    string         // of a failure
	Delay    *time.Duration // of a failure that chooses its time, a snooze or a throttle
	Result   []byte
	Progress *Progress
	Logs     []LogLine
	Took     time.Duration // its handler, for metrics
	// Then are jobs that are accepted in the commit that makes the run's job done, or not
	// at all, as by Info.Then. 1,000 in a call at most, and of RemoteDone only. Sent again
	// they are the same jobs.
	Then []Item
	// Again says that it was sent before and the answer was lost: job.Already, if an end
	// of the run by this worker was committed.
	Again bool
}

var remoteOutcomes = map[RemoteOutcome]job.OutcomeKind{
	RemoteDone: job.Succeeded, RemoteFailed: job.Failed, RemoteDead: job.GaveUp, RemoteSnoozed: job.Snoozed, RemoteThrottled: job.Throttled,
	RemoteReleased: job.Released, RemoteCancelled: job.CancelSeen, RemoteUnreadable: job.Undecoded,
}

func (r *RemoteEnd) outcome(bounds Bounds) (o job.Outcome, err error) {
	kind, ok := remoteOutcomes[r.Outcome]
	if !ok {
		return o, job.Invalid("outcome", string(r.Outcome), "must be one of done, failed, dead, snoozed, throttled, released, cancelled, unreadable")
	}
	o = job.Outcome{Kind: kind, Message: r.Message, Stack: r.Stack, Result: r.Result}
	if r.Delay != nil {
		if o.Timed, o.Delay = true, *r.Delay; o.Delay < 0 || o.Delay > maxRemoteDelay {
			return o, job.Invalid("delay", o.Delay, fmt.Sprintf("must be 0 to %v", maxRemoteDelay))
		}
	}
	if kind == job.Snoozed && r.Delay == nil {
		return o, job.Invalid("delay", "none", "a snooze needs one")
	}
	if len(r.Result) > bounds.Payload {
		return o, job.Invalid("result", fmt.Sprintf("%d bytes", len(r.Result)), fmt.Sprintf("must be at most %d bytes", bounds.Payload))
	}
	return o, nil
}

// followUps makes the jobs that ends hand over, for each end its own; nil where there are none.
func (r Remote) followUps(ctx context.Context, ends []RemoteEnd) ([]*job.FollowUps, error) {
	list, total := make([]*job.FollowUps, len(ends)), 0
	for i := range ends {
		n := len(ends[i].Then)
		if n == 0 {
			continue
		}
		if total += n; total > job.MaxFollowUps {
			return nil, job.Invalid("follow-ups", total, fmt.Sprintf("must be at most %d in a call", job.MaxFollowUps))
		}
		if ends[i].Outcome != RemoteDone {
			return nil, fmt.Errorf("end %d: %w", i, job.Invalid("follow-ups", n, "are of a run that is done: this one is "+string(ends[i].Outcome)))
		}
		drafts, told, err := r.e.drafts(ctx, ends[i].Then)
		if err != nil {
			return nil, fmt.Errorf("end %d: follow-up: %w", i, err)
		}
		told(nil) // handed over, as by Info.Then
		list[i] = &job.FollowUps{Drafts: drafts}
	}
	return list, nil
}

// name gives follow-ups ids that are the same when the end of the run is sent again.
func name(then *job.FollowUps, of *JobRecord, run int64) {
	for n := range then.Drafts {
		if d := &then.Drafts[n]; !d.Resend { // it has no id of its own choosing
			d.ID = job.FollowUpID(of.ID, run, of.Started, n)
		}
	}
}

// Finish ends runs, each by itself: one that is not the worker's own any more is
// answered VerdictStale, and changes nothing.
func (r Remote) Finish(ctx context.Context, w WorkerID, ends []RemoteEnd) ([]Verdict, error) {
	if err := r.e.usable(ctx); err != nil {
		return nil, err
	}
	if len(ends) > maxRemoteEnds {
		return nil, job.Invalid("ends", len(ends), fmt.Sprintf("must be at most %d", maxRemoteEnds))
	}
	entry, err := r.entry(ctx, w)
	if err != nil {
		return nil, err
	}
	by := job.By{Label: entry.Label, Version: entry.Version}
	verdicts := make([]Verdict, len(ends))
	outcomes := make([]job.Outcome, len(ends))
	for i := range ends {
		if outcomes[i], err = ends[i].outcome(r.e.cfg.Bounds); err == nil {
			err = checkProgress(ends[i].Progress)
		}
		if err != nil {
			return nil, fmt.Errorf("end %d: %w", i, err)
		}
	}
	then, err := r.followUps(ctx, ends)
	if err != nil {
		return nil, err
	}
	found, err := r.jobs(ctx, ends)
	if err != nil {
		return nil, err
	}
	var list []job.End
	var at []int
	for i := range ends {
		j, live := found[ends[i].ID]
		if !live {
			if verdicts[i] = job.Stale; ends[i].Again {
				verdicts[i] = job.Already // most likely: its queue keeps nothing
			}
			continue
		}
		if outcomes[i].Kind == job.Throttled && j.Worker == w && j.Run == ends[i].Run && j.State == job.Running {
			outcomes[i] = r.coolDown(ctx, j, outcomes[i])
		}
		if then[i] != nil {
			name(then[i], j, ends[i].Run)
			outcomes[i].Then = then[i]
		}
		end := r.decide(j, by, outcomes[i])
		end.Run, end.Again, end.Progress = ends[i].Run, ends[i].Again, boundProgress(ends[i].Progress)
		end.Logs = r.e.remotes.log(w, ends[i].RunRef, ends[i].Logs)
		list, at = append(list, end), append(at, i)
	}
	if len(list) == 0 {
		return verdicts, nil
	}
	answers, err := r.e.store.Finish(ctx, w, list)
	for n, i := range at {
		if err != nil || answers[n] == job.Locked {
			r.e.remotes.unlog(w, ends[i].RunRef, len(list[n].Logs))
		} else {
			r.e.remotes.forget(w, ends[i].RunRef)
		}
	}
	if err != nil {
		return nil, r.lost(w, err)
	}
	var opened []int64
	for n, i := range at {
		j := found[ends[i].ID]
		if verdicts[i] = answers[n]; verdicts[i] == job.Applied {
			r.measure(j, &list[n], outcomes[i], ends[i].Took, by)
		}
		if then[i] != nil { // whatever the verdict: an earlier try may have been applied
			r.e.hub.Ready(wake.Hints(then[i].Drafts)...)
		}
		if gate := j.Gate(); gate != 0 {
			opened = append(opened, gate)
		}
	}
	r.e.remotes.open(w, opened)
	return verdicts, nil
}

// jobs are those that runs belong to, by id; what is gone is not among them.
func (r Remote) jobs(ctx context.Context, ends []RemoteEnd) (map[ID]*JobRecord, error) {
	ids := make([]ID, len(ends))
	for i := range ends {
		ids[i] = ends[i].ID
	}
	list, err := r.e.store.Get(ctx, ids)
	found := make(map[ID]*JobRecord, len(list))
	for i := range list {
		found[list[i].ID] = &list[i]
	}
	return found, err
}

// decide applies the rule with the settings of the job's queue.
func (r Remote) decide(j *JobRecord, by job.By, o job.Outcome) job.End {
	rules := r.e.followed.rules.Load()
	backoff := rules.runnerQueue(j.Queue, false).Backoff
	if backoff == nil {
		backoff = job.Exponential(job.BackoffBase, job.BackoffMax)
	}
	run := job.Run{
		ID: j.ID, Run: j.Run, Used: j.Used, MaxAttempts: j.MaxAttempts, Worker: j.Worker, By: by, Started: j.Started, Ties: j.Ties, Job: j,
		Throttles: j.Throttles(),
	}
	keep := rules.keep(j.Queue)
	return job.Decide(run, o, job.Policy{Backoff: backoff, Keep: keep.WithDefaults()})
}

// coolDown has the queue of a throttled run cool down, before the run ends.
func (r Remote) coolDown(ctx context.Context, j *JobRecord, o job.Outcome) job.Outcome {
	settings := r.e.followed.rules.Load().settings(j.Queue)
	throttle := job.Throttle{Hint: o.Delay, Backoff: settings.Backoff}
	o.Delay = throttle.Alone()
	kept, ok := r.e.store.(store.CoolDowns)
	if !ok {
		return o
	}
	if _, err := kept.CoolDown(ctx, j.Queue, throttle); err != nil {
		r.e.cfg.Logger.WarnContext(ctx, "a queue could not be made to cool down, only the throttled job waits", "queue", j.Queue, "job", j.ID, "error", err)
		return o
	}
	o.Delay = 0
	return o
}

// measure tells the meter of this process, while it runs.
func (r Remote) measure(j *JobRecord, end *job.End, o job.Outcome, took time.Duration, by job.By) {
	r.e.mu.Lock()
	runs := r.e.running
	r.e.mu.Unlock()
	if runs == nil {
		return
	}
	m := runs.Meter()
	now := time.Now()
	total := time.Duration(-1)
	if end.To.Final() {
		total = max(now.Sub(j.Created), 0)
	}
	m.Count(now, j.Queue, j.Kind, metric.Began)
	m.Ended(now, meter.EndedRun{
		Queue: j.Queue, Kind: j.Kind, Count: metric.CountOf(o.Kind, end.To), QueueTime: max(j.Started.Sub(j.Due), 0), Took: took, Total: total,
	})
	if end.Failure != nil {
		m.Failed(j.Kind, metric.Sample{
			FailedJob: metric.FailedJob{Job: j.ID, Time: now}, Dead: end.To == job.Dead, Message: o.Message, Version: by.Version, Key: j.Key,
		})
	}
}
