package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// The verbs of the seam: each is one room's.

// Enqueue accepts drafts, all or none.
func (s *Store) Enqueue(ctx context.Context, drafts []job.Draft) ([]job.Receipt, error) {
	return s.jobs.Enqueue(ctx, drafts)
}

// Claim leases ready jobs to a worker.
func (s *Store) Claim(ctx context.Context, c store.Claim) (store.ClaimReply, error) {
	return s.claims.Claim(ctx, c)
}

// Finish ends runs, each fenced by its worker and run number.
func (s *Store) Finish(ctx context.Context, w job.WorkerID, ends []job.End) ([]job.Verdict, error) {
	return s.jobs.Finish(ctx, w, ends)
}

// Note keeps progress and log lines of runs that go on.
func (s *Store) Note(ctx context.Context, w job.WorkerID, notes []store.Note) ([]job.Verdict, error) {
	return s.jobs.Note(ctx, w, notes)
}

// ReportRuns reports the runs a worker holds.
func (s *Store) ReportRuns(ctx context.Context, w job.WorkerID, refs []store.RunRef) (store.ReportReply, error) {
	return s.jobs.ReportRuns(ctx, w, refs)
}

// Register enters one boot of one process and numbers it.
func (s *Store) Register(ctx context.Context, w store.Worker) (job.WorkerID, error) {
	return s.workers.Register(ctx, w)
}

// Beat renews the worker's lease.
func (s *Store) Beat(ctx context.Context, b store.Beat) (store.BeatReply, error) {
	return s.workers.Beat(ctx, b)
}

// Deregister removes a worker.
func (s *Store) Deregister(ctx context.Context, w job.WorkerID) error {
	return s.workers.Deregister(ctx, w)
}

// Alone asks whether a run may be the one for which a worker empties itself.
func (s *Store) Alone(ctx context.Context, w job.WorkerID, run store.RunRef) (bool, error) {
	return s.workers.Alone(ctx, w, run)
}

// Cancels lists the worker's runs that were asked to cancel.
func (s *Store) Cancels(ctx context.Context, w job.WorkerID) ([]store.RunRef, error) {
	return s.workers.Cancels(ctx, w)
}

// Due says which rounds of upkeep have something to do.
func (s *Store) Due(ctx context.Context) (store.Due, error) {
	intents := false
	due, err := s.jobs.Due(ctx, s.intents.Look(&intents)...)
	due.Intents = intents
	return due, err
}

// MarkLost declares workers lost whose last beat is older than their own limit.
func (s *Store) MarkLost(ctx context.Context, l store.MarkLostRequest) (store.MarkLostReply, error) {
	return s.workers.MarkLost(ctx, l)
}

// MarkDead declares workers lost that are proven dead.
func (s *Store) MarkDead(ctx context.Context, dead []job.WorkerID) (int, error) {
	return s.workers.MarkDead(ctx, dead)
}

// Rescue ends up to limit runs whose worker is absent or lost.
func (s *Store) Rescue(ctx context.Context, limit int) (store.RescueReply, error) {
	return s.jobs.Rescue(ctx, limit)
}

// Expire ends up to limit jobs that are not running and past their deadline.
func (s *Store) Expire(ctx context.Context, limit int) (store.ExpireReply, error) {
	return s.jobs.Expire(ctx, limit)
}

// Regate moves waiting jobs to where the rules put them.
func (s *Store) Regate(ctx context.Context, rules *job.GateRules, limit int) (store.RegateReply, error) {
	return s.claims.Regate(ctx, rules, limit)
}

// MakeDueAgain makes up to limit jobs ready whose due time the clock had reached.
func (s *Store) MakeDueAgain(ctx context.Context, b store.ClockStep, limit int) (int, error) {
	return s.jobs.MakeDueAgain(ctx, b, limit)
}

// Purge removes up to limit rows of each kind whose time is over, and log lines up
// to their own bound.
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	return s.jobs.Purge(ctx, limit)
}

// WaitingQueues lists queues with waiting jobs behind one.
func (s *Store) WaitingQueues(ctx context.Context, after string, limit int) ([]string, error) {
	return s.claims.WaitingQueues(ctx, after, limit)
}

// Unserved finds jobs that no live worker takes.
func (s *Store) Unserved(ctx context.Context, by job.WorkerID, older time.Duration) ([]store.Unserved, error) {
	return s.claims.Unserved(ctx, by, older)
}

// Cancel ends jobs that are not running and asks running ones to stop.
func (s *Store) Cancel(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	return s.jobs.Cancel(ctx, ids, op)
}

// Delete removes jobs that are not running, and asks running ones to cancel.
func (s *Store) Delete(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	return s.jobs.Delete(ctx, ids, op)
}

// Retry makes dead, cancelled or parked jobs wait again with a fresh attempt
// budget, and scheduled ones due at once.
func (s *Store) Retry(ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
	return s.jobs.Retry(ctx, ids, op)
}

// Settings reads everything that is declared and set, with its revision.
func (s *Store) Settings(ctx context.Context) (store.SettingsReply, error) {
	return s.settings.Settings(ctx)
}

// Override puts an operator's fields over what is set for one name.
func (s *Store) Override(ctx context.Context, set store.Setting, value json.RawMessage, op store.Operator) error {
	return s.settings.Override(ctx, set, value, op)
}

// SetPaused stops or allows claims: from a queue, of a kind, or all of them.
func (s *Store) SetPaused(ctx context.Context, p store.Pause, paused bool, op store.Operator) error {
	return s.settings.SetPaused(ctx, p, paused, op)
}

// Record writes an audit entry by itself.
func (s *Store) Record(ctx context.Context, op store.Operator, action, target, detail string) error {
	return s.settings.RecordOne(ctx, op, action, target, detail)
}

// Get returns the jobs that exist, live or archived, in the order asked.
func (s *Store) Get(ctx context.Context, ids []job.ID) ([]job.Job, error) {
	return s.jobs.Get(ctx, ids)
}

// List pages through jobs.
func (s *Store) List(ctx context.Context, f store.Filter, p store.Page) (store.Listed, error) {
	return s.lists.List(ctx, f, p)
}

// Count counts the jobs a filter matches, up to cap (0 means MaxCounted).
func (s *Store) Count(ctx context.Context, f store.Filter, cap int) (store.Counted, error) {
	return s.lists.Count(ctx, f, cap)
}

// Counts counts the jobs of each queue in each state.
func (s *Store) Counts(ctx context.Context) ([]store.QueueCount, error) {
	return s.lists.Counts(ctx)
}

// Queues tells how queues stand.
func (s *Store) Queues(ctx context.Context, names []string) ([]store.QueueState, error) {
	return s.lists.Queues(ctx, names)
}

// Situations gathers why jobs are not running.
func (s *Store) Situations(ctx context.Context, ids []job.ID) ([]job.Situation, error) {
	return s.lists.Situations(ctx, ids)
}

// Logs returns a job's lines, the oldest first, skipping the first n.
func (s *Store) Logs(ctx context.Context, id job.ID, skip int, limit int) ([]job.LogLine, error) {
	return s.jobs.Logs(ctx, id, skip, limit)
}

// Registry lists the workers.
func (s *Store) Registry(ctx context.Context) ([]store.WorkerInfo, error) {
	return s.workers.Registry(ctx)
}

// Audit pages through operator actions, the newest first.
func (s *Store) Audit(ctx context.Context, f store.AuditFilter, p store.AuditPage) (store.AuditList, error) {
	return s.settings.Audit(ctx, f, p)
}

// Now is the store's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	return s.jobs.Now(ctx)
}

// SetClockOffset shifts the store's clock in this process.
func (s *Store) SetClockOffset(d time.Duration) {
	s.pg.SetClockOffset(d)
}
