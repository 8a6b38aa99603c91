package runner_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func TestNote_LongRunsShowTheirLinesAndProgress(t *testing.T) {
	inLab(t, func(l *lab) {
		more, done := make(chan struct{}), make(chan struct{})
		p := l.run(1, func(_ context.Context, t *runner.Task) job.Outcome {
			t.AddLog(0, "one")
			t.SetProgress(job.Progress{Done: 1, Total: 2})
			<-more
			t.AddLog(0, "two")
			t.SetProgress(job.Progress{Done: 2, Total: 2})
			<-done
			t.AddLog(0, "three")
			return succeed
		})
		id := l.add(1, nil, p)[0]
		lines := func(want ...string) {
			t.Helper()
			got, err := l.store.Logs(l.t.Context(), id, 0, 100)
			if err != nil || len(got) != len(want) {
				t.Fatalf("lines %v, %v; want %v", got, err, want)
			}
			for i := range want {
				if got[i].Text != want[i] || got[i].Run != 1 {
					t.Errorf("line %d is %+v, want %q", i, got[i], want[i])
				}
			}
		}
		after(2500 * time.Millisecond)
		lines("one")
		if j := l.get(id); j.Progress.Done != 1 {
			t.Errorf("progress %+v", j.Progress)
		}
		p.faults.set(func(f *faults) {
			f.before = func(method string) error {
				if method == "Note" {
					return store.ErrUnavailable
				}
				return nil
			}
		})
		close(more)
		after(5 * time.Second)
		lines("one") // the store did not take it, so it is kept
		p.heal()
		after(2500 * time.Millisecond)
		lines("one", "two")
		close(done)
		after(time.Second)
		lines("one", "two", "three")
		l.expect(id, job.Done, 0, 0)
		p.stop()
	})
}

func TestP3_RunFinishedInATransactionIsNotFinishedAgain(t *testing.T) {
	inLab(t, func(l *lab) {
		var told []runner.Finished
		more := make(chan struct{})
		p := l.run(1, func(ctx context.Context, t *runner.Task) job.Outcome {
			tx, err := l.store.Begin(ctx)
			if err != nil {
				return fail
			}
			t.FinishingInTx(t.End(succeed))
			v, err := tx.Finish(ctx, t.Worker(), []job.End{t.End(succeed)})
			if err != nil || v[0] != job.Applied || tx.Commit(ctx) != nil {
				return fail
			}
			t.FinishedInTx()
			<-more      // the report of what is held finds the run gone: it is over, not lost
			return fail // too late to matter
		}, func(c *runner.Config) { c.Hooks.Finish = func(f runner.Finished) { told = append(told, f) } })
		id := l.add(1, nil, p)[0]
		after(time.Minute)
		close(more)
		after(time.Second)
		l.expect(id, job.Done, 0, 0)
		if s := p.Stats(); s.InTx != 1 || s.Refused != 0 || s.LeasesLost != 0 || !p.Idle() {
			t.Errorf("stats %+v", s)
		}
		if len(told) != 1 || !told[0].InTx || told[0].Verdict != job.Applied || told[0].End.To != job.Done || told[0].Outcome.Kind != job.Succeeded {
			t.Errorf("hook was told %+v", told)
		}
		p.stop()
	})
}

func TestP3_CommitOfUnknownOutcomeIsClearedUpByTheFence(t *testing.T) {
	for _, happened := range []bool{true, false} {
		inLab(t, func(l *lab) {
			p := l.run(1, func(ctx context.Context, t *runner.Task) job.Outcome {
				if t.Job.Run > 1 {
					return succeed
				}
				tx, err := l.store.Begin(ctx)
				if err != nil {
					return fail
				}
				t.FinishingInTx(t.End(succeed))
				if v, err := tx.Finish(ctx, t.Worker(), []job.End{t.End(succeed)}); err != nil || v[0] != job.Applied {
					return fail
				}
				if happened {
					err = tx.Commit(ctx)
				} else {
					err = tx.Rollback(ctx)
				}
				if err != nil {
					panic(err)
				}
				t.UnclearInTx()
				return job.Outcome{Kind: job.Failed, Message: job.ErrOutcomeUnknown.Error()}
			})
			id := l.add(1, nil, p)[0]
			after(time.Minute)
			used := 1 // the handler returned an error, and the commit had not happened
			if happened {
				used = 0
			}
			l.expect(id, job.Done, used, 0)
			if s := p.Stats(); s.Refused != 0 || s.LeasesLost != 0 {
				t.Errorf("refused %d, leases lost %d", s.Refused, s.LeasesLost)
			}
			p.stop()
		})
	}
}
