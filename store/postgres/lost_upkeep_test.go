package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func TestJ32_LostAnswers_Workers(t *testing.T) {
	loseEach(t,
		lostCase{name: "register", play: func(l *lossy) (func(context.Context) error, func(error)) {
			var w job.WorkerID
			call := func(ctx context.Context) (err error) {
				w, err = l.s.Register(ctx, store.Worker{Label: l.queue, Queues: []string{l.queue}, Offer: knowsK, LostAfter: time.Hour})
				return err
			}
			return call, func(err error) {
				l.surely(err)
				// A second row is of nobody: it is lost in time, and holds nothing.
				rows, known := 0, false
				workers, err := l.direct.Registry(l.t.Context())
				l.surely(err)
				for _, i := range workers {
					if i.Worker.Label == l.queue {
						rows++
						known = known || i.ID == w
					}
				}
				if !known || rows > 2 {
					l.t.Errorf("worker %d is registered: %t, with %d rows of its name", w, known, rows)
				}
			}
		}},
		lostCase{name: "beat", play: func(l *lossy) (func(context.Context) error, func(error)) {
			l.enqueued(l.drafts(2)...)
			w := l.hired()
			ask := l.asks(w, 1, 2)
			ask.Queues[0].Start = 0
			claimed, err := l.s.Claim(l.t.Context(), ask)
			l.surely(err)
			var begun []store.RunRef
			for _, j := range claimed.Jobs {
				begun = append(begun, store.RunRef{ID: j.ID, Run: j.Run})
			}
			_, err = l.direct.Cancel(l.t.Context(), []job.ID{begun[0].ID}, store.Operator{})
			l.surely(err)
			var beaten store.BeatReply
			call := func(ctx context.Context) (err error) {
				beaten, err = l.s.Beat(ctx, store.Beat{Worker: w, Begun: begun})
				return err
			}
			return call, func(err error) {
				l.surely(err)
				if len(beaten.Cancels) != 1 || beaten.Cancels[0] != begun[0] {
					l.t.Errorf("beaten: %+v", beaten)
				}
				var marked int
				err = l.pool.QueryRow(l.t.Context(), l.direct.pg.SQL("SELECT count(*) FROM pawl.job WHERE namespace = $1 AND worker = $2 AND begun"), l.direct.pg.Namespace, w).Scan(&marked)
				if err != nil || marked != 2 {
					l.t.Errorf("%d runs are marked as begun, %v; want 2", marked, err)
				}
			}
		}},
		lostCase{name: "hold", wakes: true, silent: true, play: func(l *lossy) (func(context.Context) error, func(error)) {
			w, jobs := l.running(3)
			call := func(ctx context.Context) error {
				held, err := l.s.ReportRuns(ctx, w, []store.RunRef{{ID: jobs[0].ID, Run: jobs[0].Run}})
				if len(held.Stale) != 0 {
					l.t.Errorf("stale: %v", held.Stale)
				}
				return err
			}
			return call, func(err error) {
				l.surely(err)
				if held := l.held(w); len(held) != 1 || held[jobs[0].ID] != jobs[0].Run {
					l.t.Errorf("the worker holds %v, want the run that it reported", held)
				}
				for _, j := range l.get(jobs[1].ID, jobs[2].ID) {
					if j.State != job.Waiting || j.Used+j.Lost+j.Rescues+j.Snoozes != 0 {
						l.t.Errorf("job %s is %s and was charged: %+v", j.ID, j.State, j)
					}
				}
			}
		}},
		lostCase{name: "deregister", play: func(l *lossy) (func(context.Context) error, func(error)) {
			w := l.hired()
			return func(ctx context.Context) error { return l.s.Deregister(ctx, w) }, func(err error) {
				l.surely(err)
				workers, err := l.direct.Registry(l.t.Context())
				l.surely(err)
				for _, i := range workers {
					if i.ID == w {
						l.t.Error("the worker is still registered")
					}
				}
			}
		}},
	)
}

// Upkeep counts what it did for its report only: what matters is that it was done
// once, and that nothing is left.
func TestJ32_LostAnswers_Upkeep(t *testing.T) {
	loseEach(t,
		lostCase{name: "lose", play: func(l *lossy) (func(context.Context) error, func(error)) {
			me := l.hired()
			w := l.late()
			beaten, err := l.direct.Beat(l.t.Context(), store.Beat{Worker: me})
			l.surely(err)
			return func(ctx context.Context) error {
					_, err := l.s.MarkLost(ctx, store.MarkLostRequest{By: me, Beat: beaten.Now, Steady: time.Hour})
					return err
				}, func(err error) {
					l.surely(err)
					if _, err := l.direct.Beat(l.t.Context(), store.Beat{Worker: w}); err == nil {
						l.t.Error("a worker that was late is not lost")
					}
					_, err = l.direct.Beat(l.t.Context(), store.Beat{Worker: me})
					l.surely(err)
				}
		}},
		lostCase{name: "mark dead", play: func(l *lossy) (func(context.Context) error, func(error)) {
			w := l.hired()
			return func(ctx context.Context) error { _, err := l.s.MarkDead(ctx, []job.WorkerID{w}); return err }, func(err error) {
				l.surely(err)
				if _, err := l.direct.Beat(l.t.Context(), store.Beat{Worker: w}); err == nil {
					l.t.Error("a worker that is dead is not lost")
				}
			}
		}},
		lostCase{name: "rescue", wakes: true, silent: true, play: func(l *lossy) (func(context.Context) error, func(error)) {
			w, jobs := l.running(3)
			for _, j := range jobs {
				_, err := l.direct.Note(l.t.Context(), w, []store.Note{{RunRef: store.RunRef{ID: j.ID, Run: j.Run}, Begun: true}})
				l.surely(err)
			}
			l.surely(l.direct.Deregister(l.t.Context(), w))
			return func(ctx context.Context) error { _, err := l.s.Rescue(ctx, 100); return err }, func(err error) {
				l.surely(err)
				for i, j := range l.get(jobs[0].ID, jobs[1].ID, jobs[2].ID) {
					if j.State != job.Waiting || j.Run != jobs[i].Run || j.Lost != 1 || j.Rescues != 1 {
						l.t.Errorf("job %s is %s, run %d, lost %d, rescued %d; want waiting, run %d, once", j.ID, j.State, j.Run, j.Lost, j.Rescues, jobs[i].Run)
					}
				}
			}
		}},
		lostCase{name: "expire", play: func(l *lossy) (func(context.Context) error, func(error)) {
			ids := l.enqueued(l.drafts(3, func(d *job.Draft) { d.Deadline = time.Unix(1, 0) })...)
			var expired store.ExpireReply
			return func(ctx context.Context) (err error) { expired, err = l.s.Expire(ctx, 100); return err }, func(err error) {
				l.surely(err)
				if len(expired.Deaths) != 3 {
					l.t.Errorf("%d of 3 dead jobs are named: the log would not tell of the others", len(expired.Deaths))
				}
				for _, j := range l.get(ids...) {
					if j.State != job.Dead {
						l.t.Errorf("job %s is %s, want dead", j.ID, j.State)
					}
				}
			}
		}},
		lostCase{name: "purge", play: func(l *lossy) (func(context.Context) error, func(error)) {
			w, jobs := l.running(3)
			var ends []job.End
			for i := range jobs {
				e := done(&jobs[i])
				e.Keep.Done = time.Microsecond
				ends = append(ends, e)
			}
			ends[0].Keep.Done = time.Hour
			_, err := l.direct.Finish(l.t.Context(), w, ends)
			l.surely(err)
			return func(ctx context.Context) error { _, err := l.s.Purge(ctx, 100); return err }, func(err error) {
				l.surely(err)
				l.count(1)
				l.get(jobs[0].ID)
			}
		}},
	)
}

// late registers a worker whose beat is overdue at once.
func (l *lossy) late() job.WorkerID {
	l.t.Helper()
	w, err := l.s.Register(l.t.Context(), store.Worker{Label: "late", Offer: knowsK, LostAfter: time.Microsecond})
	if err != nil {
		l.t.Fatal(err)
	}
	return w
}
