package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/need/pgproxy"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// endFor gives a run its end.
type endFor func(j *store.LeasedJob) job.End

func done(j *store.LeasedJob) job.End { return job.End{ID: j.ID, Run: j.Run, To: job.Done} }

func failed(j *store.LeasedJob) job.End {
	return job.End{ID: j.ID, Run: j.Run, To: job.Waiting, Delay: time.Hour, Burn: true, Failure: job.NewFailure(1, j.Run, "no", "").Body()}
}

func dead(j *store.LeasedJob) job.End {
	return job.End{ID: j.ID, Run: j.Run, To: job.Dead, Burn: true, Reason: "gave up", Failure: job.NewFailure(1, j.Run, "no", "").Body()}
}

func released(j *store.LeasedJob) job.End {
	return job.End{ID: j.ID, Run: j.Run, To: job.Waiting, Delay: time.Minute}
}

func unkept(j *store.LeasedJob) job.End {
	e := done(j)
	e.Keep.Done = -1
	return e
}

func spoken(j *store.LeasedJob) job.End {
	e := done(j)
	e.Logs = []job.LogLine{{Run: j.Run, Text: "a line"}}
	return e
}

// finishCase ends runs, by so many callers at once. A verdict is Applied: that
// the run is over by our own first try does not make it somebody else's.
func finishCase(name string, callers int, wakes bool, ends ...endFor) lostCase {
	return lostCase{name: name, wakes: wakes, silent: callers == 1, play: func(l *lossy) (func(context.Context) error, func(error)) {
		w, jobs := l.running(callers * len(ends))
		verdicts := make([][]job.Verdict, callers)
		call := func(ctx context.Context) error {
			return together(callers, func(n int) (err error) {
				var list []job.End
				for i, end := range ends {
					list = append(list, end(&jobs[n*len(ends)+i]))
				}
				verdicts[n], err = l.s.Finish(ctx, w, list)
				return err
			})
		}
		return call, func(err error) {
			l.surely(err)
			for n := range verdicts {
				for i, end := range ends {
					j := &jobs[n*len(ends)+i]
					if v := verdicts[n][i]; v != job.Applied {
						l.t.Errorf("verdict %v on run %d of %s, want applied", v, j.Run, j.ID)
					}
					l.ended(j, end(j))
				}
			}
			if held := l.held(w); len(held) != 0 {
				l.t.Errorf("the worker still holds %v", held)
			}
		}
	}}
}

// ended demands that an end was applied, once.
func (l *lossy) ended(was *store.LeasedJob, end job.End) {
	l.t.Helper()
	if end.Keep.Done < 0 {
		if jobs, err := l.direct.Get(l.t.Context(), []job.ID{was.ID}); err != nil || len(jobs) != 0 {
			l.t.Errorf("%d jobs, %v; want none kept", len(jobs), err)
		}
		return
	}
	j := l.get(was.ID)[0]
	used, failures := 0, 0
	if end.Burn {
		used, failures = 1, 1
	}
	if j.State != end.To || j.Run != was.Run || j.Used != used || len(j.Failures.List()) != failures {
		l.t.Errorf("job %s is %s, run %d, %d attempts used, %d failures; want %s, run %d, %d, %d", j.ID, j.State, j.Run, j.Used, len(j.Failures.List()), end.To, was.Run, used, failures)
	}
	lines, err := l.direct.Logs(l.t.Context(), was.ID, 0, 100)
	if err != nil || len(lines) != len(end.Logs) {
		l.t.Errorf("%d lines are logged, %v; want %d", len(lines), err, len(end.Logs))
	}
}

func TestJ32_LostAnswers_Finish(t *testing.T) {
	loseEach(t,
		finishCase("done", 1, false, done, done, done),
		finishCase("unkept", 1, false, unkept, unkept),
		finishCase("failed", 1, true, failed, dead),
		finishCase("released", 1, true, released),
		finishCase("all sorts", 1, true, done, failed, unkept, dead, spoken, released),
		finishCase("callers", 6, false, done, done),
		finishCase("callers of all sorts", 4, true, done, failed, spoken),
		lostCase{name: "stale", play: func(l *lossy) (func(context.Context) error, func(error)) {
			w, jobs := l.running(2)
			list := []job.End{done(&jobs[0]), done(&jobs[1])}
			list[1].Run++ // of somebody else
			var verdicts []job.Verdict
			call := func(ctx context.Context) (err error) {
				verdicts, err = l.s.Finish(ctx, w, list)
				return err
			}
			return call, func(err error) {
				l.surely(err)
				if verdicts[0] != job.Applied || verdicts[1] != job.Stale {
					l.t.Errorf("verdicts %v, want applied and stale", verdicts)
				}
				if _, holds := l.held(w)[jobs[1].ID]; !holds {
					l.t.Error("a stale end took the job away")
				}
			}
		}},
	)
}

// A run is given back, the answer is lost, and before the store asks again somebody
// else has claimed the job, and may have finished it. The end was applied.
func TestJ32_LostAnswers_ReleasedAndClaimedSince(t *testing.T) {
	l := newLossy(t)
	for _, ended := range []bool{false, true} {
		t.Run(fmt.Sprint("ended ", ended), func(t *testing.T) {
			l.t, l.queue = t, fmt.Sprint("since", ended)
			w, jobs := l.running(1)
			other := l.hired()
			end := released(&jobs[0])
			end.Delay = 0
			tries := 0
			l.proxy.Judge(func(c pgproxy.Commit) pgproxy.Fate {
				if len(c.Statements) < 2 {
					return pgproxy.Deliver // a notification
				}
				switch tries++; tries {
				case 1:
					return pgproxy.Cut
				case 2:
					claimed, err := l.direct.Claim(context.Background(), l.asks(other, 1, 1))
					if err != nil || len(claimed.Jobs) != 1 || claimed.Jobs[0].Run != 2 {
						t.Errorf("claimed %+v, %v; want the job, its second run", claimed.Jobs, err)
						break
					}
					if ended {
						_, err = l.direct.Finish(context.Background(), other, []job.End{done(&claimed.Jobs[0])})
					}
					if err != nil {
						t.Error(err)
					}
				}
				return pgproxy.Deliver
			})
			verdicts, err := l.s.Finish(t.Context(), w, []job.End{end})
			l.proxy.Judge(nil)
			l.surely(err)
			if verdicts[0] != job.Applied || tries < 2 {
				t.Errorf("verdict %v after %d tries, want applied", verdicts[0], tries)
			}
			if j := l.get(jobs[0].ID)[0]; j.Run != 2 || j.State == job.Waiting {
				t.Errorf("the job is %s, run %d: the new run was taken away", j.State, j.Run)
			}
		})
	}
}

// An end brings jobs along that begin with it. Where the first answer is lost nobody
// knows whether they did: then the slot is not kept, and a report gives them back.
func TestJ32_LostAnswers_FollowUpsThatBegin(t *testing.T) {
	loseEach(t, lostCase{name: "follow-up", play: func(l *lossy) (func(context.Context) error, func(error)) {
		w, jobs := l.running(1)
		settings, err := l.s.Settings(l.t.Context())
		if err != nil {
			l.t.Fatal(err)
		}
		taker := &told{}
		then := l.draft()
		then.HandOver = &job.HandOver{Worker: w, Revision: settings.Revision, Taker: taker}
		end := done(&jobs[0])
		end.Then = &job.FollowUps{Drafts: []job.Draft{then}}
		var verdicts []job.Verdict
		call := func(ctx context.Context) (err error) {
			verdicts, err = l.s.Finish(ctx, w, []job.End{end})
			return err
		}
		return call, func(err error) {
			l.surely(err)
			if verdicts[0] != job.Applied {
				l.t.Errorf("verdict %v, want applied", verdicts[0])
			}
			l.handedOver(taker, w, then.ID)
			l.count(2)
		}
	}})
}

// handedOver checks what the taker of a job was told: what the store has, or that nobody knows; then a report gives the job back.
func (l *lossy) handedOver(by *told, w job.WorkerID, id job.ID) {
	l.t.Helper()
	h := by.first(l.t)
	_, leased := l.held(w)[id]
	switch {
	case !h.Started.IsZero() && !leased:
		l.t.Error("it is said to have begun, and is not leased to the worker")
	case h == job.HandedOver{} && leased:
		l.t.Error("it is leased to the worker, who is told that it is not")
	case h.Unknown:
		others := l.held(w)
		delete(others, id)
		var runs []store.RunRef
		for other, run := range others {
			runs = append(runs, store.RunRef{ID: other, Run: run})
		}
		if report, err := l.direct.ReportRuns(l.t.Context(), w, runs); err != nil || leased && report.Returned != 1 {
			l.t.Errorf("a report gives %+v back, %v", report, err)
		}
	}
}
