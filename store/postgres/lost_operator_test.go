package postgres

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// verb is one of an operator's calls.
type verb func(s *Store, ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error)

// operatorCase applies a verb to jobs. Asked a second time it would answer
// something else, so that a lost answer is said to be unknown; then it is asked
// again, which does no harm and leaves no second entry in the audit log.
func operatorCase(name string, wakes bool, act verb, prepare func(l *lossy) []job.ID, then func(l *lossy, ids []job.ID), answers ...store.Change) lostCase {
	return lostCase{name: name, wakes: wakes, play: func(l *lossy) (func(context.Context) error, func(error)) {
		ids := prepare(l)
		op := store.Operator{Name: "somebody", Note: l.queue}
		var changes []store.Change
		call := func(ctx context.Context) (err error) {
			changes, err = act(l.s, ctx, ids, op)
			return err
		}
		return call, func(err error) {
			// The server may still hold the jobs for a try that it has not noticed to be over.
			for again := l.unsure(err); again || slices.Contains(changes, store.Busy); again = false {
				changes, err = act(l.s, l.t.Context(), ids, op)
				l.surely(err)
			}
			for _, c := range changes {
				if !slices.Contains(answers, c) {
					l.t.Errorf("answer %v, want one of %v", c, answers)
				}
			}
			then(l, ids)
			audit, err := l.direct.Audit(l.t.Context(), store.AuditFilter{}, store.AuditPage{Limit: 1000})
			l.surely(err)
			times := map[string]int{}
			for _, e := range audit.Entries {
				if e.Note == l.queue {
					times[e.Target]++
				}
			}
			for _, id := range ids {
				if n := times[id.String()]; n != 1 {
					l.t.Errorf("%d audit entries about %s, want one", n, id)
				}
			}
		}
	}}
}

func TestJ32_LostAnswers_Operator(t *testing.T) {
	waiting := func(l *lossy) []job.ID { return l.enqueued(l.drafts(2)...) }
	dead := func(l *lossy) []job.ID {
		w, jobs := l.running(2)
		_, err := l.direct.Finish(l.t.Context(), w, []job.End{dead(&jobs[0]), dead(&jobs[1])})
		l.surely(err)
		return []job.ID{jobs[0].ID, jobs[1].ID}
	}
	are := func(want job.State) func(*lossy, []job.ID) {
		return func(l *lossy, ids []job.ID) {
			l.t.Helper()
			for _, j := range l.get(ids...) {
				if j.State != want {
					l.t.Errorf("job %s is %s, want %s", j.ID, j.State, want)
				}
			}
			l.count(len(ids))
		}
	}
	loseEach(t,
		operatorCase("cancel", false, (*Store).Cancel, waiting, are(job.Cancelled), store.Changed, store.Ended),
		operatorCase("retry", true, (*Store).Retry, dead, are(job.Waiting), store.Changed, store.Active),
		operatorCase("retry scheduled", true, (*Store).Retry, func(l *lossy) []job.ID {
			return l.enqueued(l.drafts(2, func(d *job.Draft) { d.In = time.Hour })...)
		}, are(job.Waiting), store.Changed, store.Active),
		operatorCase("set priority", false, func(s *Store, ctx context.Context, ids []job.ID, op store.Operator) ([]store.Change, error) {
			return s.Operate(ctx, store.Verb{Name: store.VerbPriority, Priority: 9}, ids, op)
		}, dead, are(job.Dead), store.Changed, store.Same),
		lostCase{name: "page of an operation", play: func(l *lossy) (func(context.Context) error, func(error)) {
			ids := dead(l)
			o, err := l.direct.StartOperation(l.t.Context(), store.Operation{
				ID: job.NewID(), Verb: store.Verb{Name: store.VerbRetry}, Pace: 100, By: "somebody", Note: l.queue,
				Filter: store.Filter{Queue: l.queue, States: []job.State{job.Dead}},
			})
			l.surely(err)
			call := func(ctx context.Context) error {
				_, err := l.s.AdvanceOperation(ctx, o.ID)
				return err
			}
			return call, func(err error) {
				if l.unsure(err) {
					l.surely(call(l.t.Context()))
				}
				are(job.Waiting)(l, ids)
				list, err := l.direct.Operations(l.t.Context(), store.OperationPage{ID: o.ID, Limit: 1})
				l.surely(err)
				if want := (store.OperationCounts{Looked: 2, Changed: 2}); list[0].Counts != want || list[0].State != store.OperationDone || list[0].Pages != 1 {
					l.t.Errorf("%s after %d pages: %s, want %s", list[0].State, list[0].Pages, list[0].Counts, want)
				}
				audit, err := l.direct.Audit(l.t.Context(), store.AuditFilter{Action: "retry", By: "somebody"}, store.AuditPage{Limit: 1000})
				l.surely(err)
				entries := 0
				for _, e := range audit.Entries {
					if e.Note == l.queue {
						entries++
					}
				}
				if entries != len(ids) {
					l.t.Errorf("%d audit entries of %d jobs", entries, len(ids))
				}
			}
		}},
		operatorCase("delete", false, (*Store).Delete, waiting, func(l *lossy, _ []job.ID) { l.count(0) }, store.Changed, store.NotFound),
		lostCase{name: "pause", play: func(l *lossy) (func(context.Context) error, func(error)) {
			l.enqueued(l.draft())
			w := l.hired()
			pause := func(ctx context.Context) error {
				return l.s.SetPaused(ctx, store.OfQueue(l.queue), true, store.Operator{})
			}
			return pause, func(err error) {
				if l.unsure(err) {
					l.surely(pause(l.t.Context()))
				}
				claimed, err := l.s.Claim(l.t.Context(), l.asks(w, 1, 1))
				l.surely(err)
				if len(claimed.Jobs) != 0 {
					l.t.Error("a job of a paused queue was claimed")
				}
			}
		}},
		lostCase{name: "note", play: func(l *lossy) (func(context.Context) error, func(error)) {
			w, jobs := l.running(1)
			note := store.Note{RunRef: store.RunRef{ID: jobs[0].ID, Run: jobs[0].Run}, Progress: &job.Progress{Done: 1, Total: 2}, Logs: []job.LogLine{{Run: 1, Text: "a line"}}}
			call := func(ctx context.Context) error {
				_, err := l.s.Note(ctx, w, []store.Note{note})
				return err
			}
			return call, func(err error) {
				// Rather a line less than one twice: the runner does not ask again.
				unknown := l.unsure(err)
				lines, err := l.direct.Logs(l.t.Context(), jobs[0].ID, 0, 10)
				l.surely(err)
				if len(lines) > 1 || len(lines) == 0 && !unknown {
					l.t.Errorf("%d lines, the outcome is unknown: %t", len(lines), unknown)
				}
			}
		}},
	)
}
