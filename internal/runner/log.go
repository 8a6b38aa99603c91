package runner

import (
	"context"
	"log/slog"

	"github.com/pawlwork/pawl/job"
)

// logEnd writes a line for a run that did not succeed, once the store has its
// end, so that the line is true (J28): a job that is dead is an error, one that
// is tried again or parked a warning. A run that was put off or given back is
// nobody's fault and only worth a line to who looks for it.
func (r *Runner) logEnd(f *Finished) {
	outcome := f.Outcome
	if f.InTx { // then that is the transaction's
		outcome = f.Task.outcome
	}
	if f.Verdict != job.Applied || outcome.Kind == job.Succeeded || f.InTx && outcome.Message == inVain.Message {
		return
	}
	level, text := slog.LevelDebug, ""
	switch {
	case f.InTx:
		level, text = slog.LevelWarn, "a handler returned an error after its transaction had finished the job"
	case f.End.To == job.Dead:
		level, text = slog.LevelError, "a job is dead"
	case f.End.To == job.Suspended:
		level, text = slog.LevelWarn, "a job is parked: its arguments cannot be read"
	case f.End.To == job.Cancelled:
		level, text = slog.LevelInfo, "a job was cancelled while it ran"
	case outcome.Kind == job.Failed || outcome.Kind == job.Throttled && f.End.Burn:
		level, text = slog.LevelWarn, "a run failed, its job is tried again"
	case outcome.Kind == job.StoreFailed:
		level, text = slog.LevelWarn, "a run met a store that failed, its job is tried again"
	case outcome.Kind == job.Snoozed:
		text = "a run was put off by its handler"
	case outcome.Kind == job.Throttled:
		text = "a run was throttled"
	default:
		text = "a run did not get to finish, its job goes back"
	}
	ctx := context.Background()
	if !r.log.Enabled(ctx, level) {
		return
	}
	j := &f.Task.Job
	attrs := []slog.Attr{
		slog.String("kind", j.Kind), slog.String("queue", j.Queue), slog.String("job", j.ID.String()), slog.Int64("run", j.Run),
		slog.Int("attempt", j.Attempt()), slog.Int("of", j.MaxAttempts), slog.Duration("took", f.Took),
	}
	if f.End.To == job.Waiting && !f.InTx {
		attrs = append(attrs, slog.Duration("retry_in", f.End.Delay))
	}
	if f.End.To == job.Dead && !f.InTx {
		attrs = append(attrs, slog.String("reason", f.End.Reason))
	}
	if outcome.Message != "" {
		attrs = append(attrs, slog.String("error", outcome.Message))
	}
	if outcome.Stack != "" {
		attrs = append(attrs, slog.String("stack", outcome.Stack))
	}
	r.log.LogAttrs(ctx, level, text, attrs...)
}
