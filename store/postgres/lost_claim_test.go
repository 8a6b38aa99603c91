package postgres

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/pawlwork/pawl/internal/need/pgproxy"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// claimCase makes a case of one claim, for jobs of so many queues. What it answers
// is what is leased, and repeating it gives the same.
func claimCase(name string, queues int, others bool) lostCase {
	return lostCase{name: name, silent: queues == 1, play: func(l *lossy) (func(context.Context) error, func(error)) {
		const ready, limit = 5, 3
		var names []string
		for n := range queues {
			names = append(names, l.queue+string(rune('a'+n)))
			l.enqueued(l.drafts(ready, func(d *job.Draft) { d.Queue = names[n] })...)
			if others { // kinds that this worker does not know: the claim has to look first
				l.enqueued(l.drafts(ready, func(d *job.Draft) { d.Queue, d.Kind, d.Priority = names[n], "other", 1 })...)
			}
		}
		w := l.hired()
		ask := l.asks(w, 1, limit, names...)
		var claimed store.ClaimReply
		call := func(ctx context.Context) (err error) {
			claimed, err = l.s.Claim(ctx, ask)
			return err
		}
		return call, func(err error) {
			l.surely(err)
			l.leased(w, claimed.Jobs, len(claimed.Jobs))
			if n := len(claimed.Jobs); n < limit || n > limit*queues || n < limit*queues && !claimed.More {
				l.t.Errorf("%d jobs of %d queues, and %t that there may be more", n, queues, claimed.More)
			}
			again, err := l.s.Claim(l.t.Context(), ask)
			l.surely(err)
			l.leased(w, again.Jobs, len(claimed.Jobs))
		}
	}}
}

// leased demands that jobs are what the database says the worker runs.
func (l *lossy) leased(w job.WorkerID, jobs []store.LeasedJob, want int) {
	l.t.Helper()
	runs := map[job.ID]int64{}
	for _, j := range jobs {
		runs[j.ID] = j.Run
		if j.Run != 1 || j.Begun {
			l.t.Errorf("job %s: run %d, begun %t; want the first, not begun", j.ID, j.Run, j.Begun)
		}
	}
	if held := l.held(w); len(jobs) != want || !maps.Equal(runs, held) {
		l.t.Errorf("%d jobs were answered (%v) and the worker holds %v, want %d", len(jobs), runs, held, want)
	}
}

func TestJ32_LostAnswers_Claim(t *testing.T) {
	loseEach(t,
		claimCase("one queue", 1, false),
		claimCase("three queues", 3, false),
		claimCase("other kinds", 2, true),
		lostCase{name: "nothing ready", play: func(l *lossy) (func(context.Context) error, func(error)) {
			l.enqueued(l.draft(func(d *job.Draft) { d.In = 1 << 40 }))
			w := l.hired()
			call := func(ctx context.Context) error {
				claimed, err := l.s.Claim(ctx, l.asks(w, 1, 3))
				if len(claimed.Jobs) != 0 {
					l.t.Errorf("%d jobs", len(claimed.Jobs))
				}
				return err
			}
			return call, func(err error) {
				l.surely(err)
				l.leased(w, nil, 0)
			}
		}},
		lostCase{name: "with runs that began", play: func(l *lossy) (func(context.Context) error, func(error)) {
			l.enqueued(l.drafts(3)...)
			w := l.hired()
			ask := l.asks(w, 1, 2)
			ask.Queues[0].Start = 0
			ahead, err := l.s.Claim(l.t.Context(), ask)
			l.surely(err)
			ask = l.asks(w, 2, 1)
			for _, j := range ahead.Jobs {
				ask.Begun = append(ask.Begun, store.RunRef{ID: j.ID, Run: j.Run})
			}
			call := func(ctx context.Context) error {
				claimed, err := l.s.Claim(ctx, ask)
				if err == nil && len(claimed.Jobs) != 1 {
					l.t.Errorf("%d jobs, want one", len(claimed.Jobs))
				}
				return err
			}
			return call, func(err error) {
				l.surely(err)
				var begun int
				err = l.pool.QueryRow(l.t.Context(), l.direct.pg.SQL("SELECT count(*) FROM pawl.job WHERE namespace = $1 AND worker = $2 AND state = 3 AND begun"), l.direct.pg.Namespace, w).Scan(&begun)
				if err != nil || begun != 2 {
					l.t.Errorf("%d runs have begun, %v; want 2", begun, err)
				}
			}
		}},
	)
}

// A caller gives up on a claim while the store is silent. The claim has happened,
// and nothing is stranded by it: asking again under its number gives its jobs, and
// so does reporting what is held give them back, free of charge.
func TestJ32_LostAnswers_AnAbandonedClaimComesBack(t *testing.T) {
	l := newLossy(t)
	for _, c := range []struct {
		name string
		then func(l *lossy, w job.WorkerID, ids []job.ID)
	}{
		{"repeated", func(l *lossy, w job.WorkerID, ids []job.ID) {
			again, err := l.s.Claim(l.t.Context(), l.asks(w, 1, len(ids)))
			l.surely(err)
			l.leased(w, again.Jobs, len(ids))
		}},
		{"reported", func(l *lossy, w job.WorkerID, ids []job.ID) {
			held, err := l.s.ReportRuns(l.t.Context(), w, nil)
			l.surely(err)
			if held.Returned != len(ids) || len(held.Stale) != 0 {
				l.t.Errorf("%+v, want %d jobs to go back", held, len(ids))
			}
			for _, j := range l.get(ids...) {
				if j.State != job.Waiting || j.Used != 0 || j.Lost != 0 || j.Rescues != 0 || j.Snoozes != 0 || len(j.Failures.List()) != 0 {
					l.t.Errorf("job %s was charged: %+v", j.ID, j)
				}
			}
			next := l.hired()
			claimed, err := l.s.Claim(l.t.Context(), l.asks(next, 1, len(ids)))
			l.surely(err)
			if len(claimed.Jobs) != len(ids) {
				l.t.Errorf("another worker got %d of %d jobs", len(claimed.Jobs), len(ids))
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l.t, l.queue = t, c.name
			ids := l.enqueued(l.drafts(4)...)
			w := l.hired()
			ctx, give := context.WithCancel(t.Context())
			defer give()
			lost, before := l.loseWhere(pgproxy.Mute, leases), l.proxy.Lost(pgproxy.Mute)
			go func() {
				_ = l.proxy.Await(ctx, pgproxy.Mute, before+1)
				give()
			}()
			_, err := l.s.Claim(ctx, l.asks(w, 1, len(ids)))
			if !errors.Is(err, job.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want ErrOutcomeUnknown: the caller gave up", err)
			}
			l.proxy.Judge(nil)
			if *lost == nil || len(l.held(w)) != len(ids) {
				t.Fatalf("the worker holds %d jobs, want %d of which it does not know", len(l.held(w)), len(ids))
			}
			c.then(l, w, ids)
		})
	}
}
