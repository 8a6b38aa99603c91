package pawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

type operatorKey struct{}

// As names who makes the changes of a context; it goes into the audit log
// ["code"].
func As(ctx context.Context, operator, note string) context.Context {
	op := store.Operator{Name: cmp.Or(legible(operator, maxOperator), "code"), Note: legible(note, maxNote)}
	return context.WithValue(ctx, operatorKey{}, op)
}

// Bounds of what is kept of an operator; what is longer is cut.
const (
	maxOperator = 128
	maxNote     = 4 << 10
)

func legible(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

func operatorOf(ctx context.Context) store.Operator {
	if op, ok := ctx.Value(operatorKey{}).(store.Operator); ok {
		return op
	}
	return store.Operator{Name: "code"}
}

// Cancel ends a job that is not running and asks a running one to stop: at once
// when it runs in this process, within a second or so elsewhere. A handler that
// succeeds all the same is done: the truth wins (P9).
func (e *Engine) Cancel(ctx context.Context, id ID) (Change, error) {
	return e.operateOne(ctx, store.Verb{Name: store.VerbCancel}, id)
}

// Retry makes a dead, cancelled or parked job wait again with a fresh attempt
// budget, and a scheduled one due now.
func (e *Engine) Retry(ctx context.Context, id ID) (Change, error) {
	return e.operateOne(ctx, store.Verb{Name: store.VerbRetry}, id)
}

// Delete removes a job that is not running; a running one is asked to cancel.
func (e *Engine) Delete(ctx context.Context, id ID) (Change, error) {
	return e.operateOne(ctx, store.Verb{Name: store.VerbDelete}, id)
}

// Requeue moves a job that does not run to another queue. It keeps its due time, its
// priority and its unique key. One that is dead or cancelled stays so: a Retry goes
// to the new queue. A job that is in that queue already is answered Same, a running
// one Active.
func (e *Engine) Requeue(ctx context.Context, id ID, queue string) (Change, error) {
	return e.operateOne(ctx, store.Verb{Name: store.VerbRequeue, Queue: queue}, id)
}

// SetPriority gives a job that does not run another priority. It keeps its due time:
// among the jobs of the new priority it has the turn of one that became due when it
// did. Answers are those of Requeue.
func (e *Engine) SetPriority(ctx context.Context, id ID, priority int) (Change, error) {
	return e.operateOne(ctx, store.Verb{Name: store.VerbPriority, Priority: priority}, id)
}

// RunNow makes a waiting job due at once, and the first of its queue and priority:
// the next free slot takes it, unless jobs of a higher priority are ready, which
// SetPriority can change. Its own priority stays. What holds a queue holds it, too: a
// pause, a freeze, a total, the lack of a worker; Why says which. A job that runs or is
// suspended is answered Active, one that has ended Ended: see Retry.
func (e *Engine) RunNow(ctx context.Context, id ID) (Change, error) {
	return e.operateOne(ctx, store.Verb{Name: store.VerbRunNow}, id)
}

func (e *Engine) operateOne(ctx context.Context, v store.Verb, id ID) (Change, error) {
	if err := v.Check(); err != nil {
		return 0, err
	}
	if err := e.usable(ctx); err != nil {
		return 0, err
	}
	changes, err := e.operate(ctx, v, []ID{id})
	if err != nil {
		return 0, err
	}
	return changes[0], nil
}

// operate applies a verb to jobs, and tells this process of it.
func (e *Engine) operate(ctx context.Context, v store.Verb, ids []ID) ([]Change, error) {
	var changes []Change
	var err error
	op := operatorOf(ctx)
	switch v.Name {
	case store.VerbCancel:
		changes, err = e.store.Cancel(ctx, ids, op)
	case store.VerbRetry:
		changes, err = e.store.Retry(ctx, ids, op)
	case store.VerbDelete:
		changes, err = e.store.Delete(ctx, ids, op)
	default:
		ops, missing := e.operations()
		if missing != nil {
			return nil, missing
		}
		changes, err = ops.Operate(ctx, v, ids, op)
	}
	if err != nil {
		return nil, err
	}
	var asked []ID
	changed := false
	for i, c := range changes {
		if changed = changed || c == Changed; c == Asked {
			asked = append(asked, ids[i])
		}
	}
	e.operated(v, asked, changed)
	return changes, nil
}

func (e *Engine) cancelHere(id ID) {
	if r := e.runner(); r != nil {
		r.Cancel([]ID{id})
	}
}

// Get returns a job, live or archived.
func (e *Engine) Get(ctx context.Context, id ID) (JobRecord, error) {
	if err := e.usable(ctx); err != nil {
		return JobRecord{}, err
	}
	jobs, err := e.store.Get(ctx, []ID{id})
	if err != nil {
		return JobRecord{}, err
	}
	if len(jobs) == 0 {
		return JobRecord{}, fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	return jobs[0], nil
}

const maxPage = store.MaxPage

// List pages through jobs, the newest first unless the page names another order.
// A page looks at 20,000 rows at most, whatever there is: where it came to that
// bound before it was full, Listed.Stopped says so. The next page is behind
// Listed.Next. A list by id in which too many jobs would have to be sorted comes in
// parts (Part), each in an order of its own.
func (e *Engine) List(ctx context.Context, f Filter, p Page) (Listed, error) {
	if err := e.usable(ctx); err != nil {
		return Listed{}, err
	}
	if err := f.Check(); err != nil {
		return Listed{}, err
	}
	if p.Limit == 0 {
		p.Limit = 100
	}
	return e.store.List(ctx, f, p)
}

// Count counts jobs, up to cap [10,000, which is the most]. It looks at 20,000
// rows at most; Counted.More says that it came to a bound.
func (e *Engine) Count(ctx context.Context, f Filter, cap int) (Counted, error) {
	if err := e.usable(ctx); err != nil {
		return Counted{}, err
	}
	if err := f.Check(); err != nil {
		return Counted{}, err
	}
	return e.store.Count(ctx, f, cap)
}

// Counts counts the jobs of each queue in each state where there are any, up to
// 10,000 each, by queue and state.
func (e *Engine) Counts(ctx context.Context) ([]QueueCount, error) {
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	c, ok := e.store.(store.Counter)
	if !ok {
		return nil, fmt.Errorf("count by queue and state: %w", errors.ErrUnsupported)
	}
	return c.Counts(ctx)
}

// Queues tells how queues stand, by name: those named, 1,000 at most, or without
// names the first 1,000 that have waiting or running jobs, that a live worker
// serves, or that are paused. Jobs are counted up to 10,000 each, less far where the
// queues are more than ten. A total that no worker has told yet is that of the
// settings, which patterns may have set.
func (e *Engine) Queues(ctx context.Context, names ...string) ([]QueueState, error) {
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	r, ok := e.store.(store.QueueReader)
	if !ok {
		return nil, fmt.Errorf("how queues stand: %w", errors.ErrUnsupported)
	}
	states, err := r.Queues(ctx, names)
	if err != nil {
		return nil, err
	}
	if err := e.followed.mirror.Look(ctx); err != nil {
		return nil, err
	}
	known := e.followed.mirror.Known()
	for i := range states {
		if q := &states[i]; q.Total == 0 && known != nil {
			holds, _ := known.Queue(q.Name)
			q.Total = max(effectiveQueue(holds).Holds.Total, 0)
		}
	}
	return states, nil
}

// Why names what keeps a job from running, from the predicate that claims (P5).
// Its String is a sentence.
func (e *Engine) Why(ctx context.Context, id ID) (Why, error) {
	if err := e.usable(ctx); err != nil {
		return Why{}, err
	}
	s, err := store.SituationOf(ctx, e.store, id)
	if err != nil {
		return Why{}, err
	}
	e.bound(&s)
	return job.Explain(s), nil
}

// bound adds what the limits allow that this process knows.
func (e *Engine) bound(s *job.Situation) {
	gates := e.followed.limits.Load().gates
	if b, ok := gates.Bound(s.Job.Queue, s.Job.Kind, s.Job.Key); ok {
		s.Bound, s.Also = &b, gates.Also(s.Job.Queue, s.Job.Kind, s.Job.Key)
	}
}

// WhyAll names what keeps up to 1,000 jobs from running, those with the same code,
// queue, kind and blocker together, the largest group first. What they share is
// read once, and the jobs ahead of each are counted less far than Why does. Ids of
// no job are left out.
func (e *Engine) WhyAll(ctx context.Context, ids []ID) ([]WhyGroup, error) {
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	if len(ids) > maxPage {
		return nil, job.Invalid("ids", len(ids), fmt.Sprintf("must be at most %d", maxPage))
	}
	situations, err := e.store.Situations(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i := range situations {
		e.bound(&situations[i])
	}
	return job.ExplainAll(situations), nil
}

// Logs returns the lines a job's handler logged, the oldest first.
func (e *Engine) Logs(ctx context.Context, id ID, skip, limit int) ([]LogLine, error) {
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	if skip < 0 {
		return nil, job.Invalid("skip", skip, "must be 0 or more")
	}
	if limit < 1 || limit > maxPage {
		return nil, job.Invalid("limit", limit, fmt.Sprintf("must be 1..%d", maxPage))
	}
	return e.store.Logs(ctx, id, skip, limit)
}

// Audit pages through operator actions, the newest first: who paused a queue, when
// and with which note, is what a filter on its name finds. A page [100 entries] ends
// early where few of many entries match By and Action, and says that there are more.
func (e *Engine) Audit(ctx context.Context, f AuditFilter, p AuditPage) (AuditList, error) {
	if err := e.usable(ctx); err != nil {
		return AuditList{}, err
	}
	if p.Limit == 0 {
		p.Limit = 100
	}
	return e.store.Audit(ctx, f, p)
}

// Workers lists the registered processes.
func (e *Engine) Workers(ctx context.Context) ([]WorkerInfo, error) {
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	return e.store.Registry(ctx)
}

// ResultOption changes one call of Result.
type ResultOption struct{ untilEnded bool }

// UntilEnded makes Result wait until the job has ended, as Wait does.
func UntilEnded() ResultOption { return ResultOption{untilEnded: true} }

// Result reads what HandleResult or FinishResult kept with a job that is done. It is
// ErrNotDone before, and for a job that ended otherwise, with why; ErrNoResult when the
// handler kept none. UntilEnded waits for the job first.
func Result[R any](ctx context.Context, e *Engine, id ID, opts ...ResultOption) (result R, err error) {
	get := e.Get
	for _, o := range opts {
		if o.untilEnded {
			get = e.Wait
		}
	}
	j, err := get(ctx, id)
	if err != nil {
		return result, err
	}
	if j.State != job.Done {
		return result, fmt.Errorf("%w: %s is %s%s", ErrNotDone, id, j.State, endedFor(&j))
	}
	if j.Result == nil {
		return result, fmt.Errorf("%w: %s %s was not handled by HandleResult, or was finished by Finish instead of FinishResult", ErrNoResult, j.Kind, id)
	}
	if err := e.cfg.Codec.Unmarshal(j.Result, &result); err != nil {
		return result, fmt.Errorf("result of %s: %w", id, err)
	}
	return result, nil
}

// endedFor says why a job ended otherwise than done: its reason, and of one that died
// its last failure.
func endedFor(j *JobRecord) (why string) {
	if !j.State.Final() {
		return ""
	}
	if j.Reason != "" {
		why = ": " + j.Reason
	}
	if last, ok := j.Failures.Last(); ok && j.State == job.Dead {
		why += ": " + last.Message
	}
	return why
}
