package runner

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/internal/meter"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
)

// countBegan counts a handler that starts. The caller holds mu.
func (r *Runner) countBegan(t *Task) {
	r.stats.Began++
	r.config.Meter.Count(t.began.Add(t.offset), t.Job.Queue, t.Job.Kind, metric.Began)
}

// countEnd counts an end that the store applied. The caller holds mu.
func (r *Runner) countEnd(t *Task, now time.Time) {
	r.stats.byOutcome[t.outcome.Kind]++
	r.measureEnd(t, t.outcome.Kind, t.end.To, now)
}

// measure tells the meter of a run that ended in its handler's transaction.
func (r *Runner) measure(f *Finished, now time.Time) {
	r.measureEnd(f.Task, f.Outcome.Kind, f.End.To, now)
}

// measureEnd tells the meter of a run whose end is stored. One that went back before
// it began is none.
func (r *Runner) measureEnd(t *Task, o job.OutcomeKind, to job.State, now time.Time) {
	if r.config.Meter == nil || t.began.IsZero() {
		return
	}
	j := &t.Job
	run := meter.EndedRun{
		Queue: j.Queue, Kind: j.Kind, Count: metric.CountOf(o, to),
		QueueTime: max(t.began.Add(t.offset).Sub(j.Due), 0), Took: t.took, Total: -1,
	}
	now = now.Add(t.offset)
	if to.Final() {
		run.Total = max(now.Sub(j.Created), 0)
	}
	r.config.Meter.Ended(now, run)
}

// measureFailure tells the meter of a failure that is stored.
func (r *Runner) measureFailure(f *Finished) {
	if r.config.Meter == nil || f.Verdict != job.Applied || f.End.Failure == nil {
		return
	}
	t := f.Task
	r.config.Meter.Failed(t.Job.Kind, metric.Sample{
		FailedJob: metric.FailedJob{Job: t.Job.ID, Time: t.Now()}, Dead: f.End.To == job.Dead,
		Message: f.Outcome.Message, Version: t.queue.by.Version, Key: t.Job.Key,
	})
}

// Now is the time by the store's clock, as this process knows it.
func (r *Runner) Now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Add(r.offset)
}

// flushMeter hands over what was measured, beside the rest of a stop and no longer
// than it: metrics that cannot be kept are no reason to wait, nor a fault of the stop.
func (r *Runner) flushMeter(limit time.Duration) <-chan struct{} {
	done := make(chan struct{})
	if r.config.Meter == nil {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := r.config.Meter.Close(ctx); err != nil {
			r.log.Warn("the last metrics were not kept", "error", err)
		}
	}()
	return done
}

// Meter is what measures this process; nil where nothing does.
func (r *Runner) Meter() *meter.Meter { return r.config.Meter }
