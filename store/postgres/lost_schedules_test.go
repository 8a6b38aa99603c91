package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Whichever answer is lost, a due time has one job.
func TestJ16_LostAnswers_Schedules(t *testing.T) {
	due := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	begun := func(l *lossy) store.Firing {
		return store.Firing{Name: l.queue, New: true, Cron: "0 * * * *", Anchor: due, Next: due}
	}
	fired := func(l *lossy) store.Firing {
		d := someDraft()
		d.ID, d.Queue = job.ScheduledID(l.queue, due), l.queue
		f := begun(l)
		f.New, f.Was, f.Next, f.Last, f.Jobs = false, due, due.Add(time.Hour), due, []job.Draft{d}
		return f
	}
	revision := func(l *lossy) int64 {
		l.t.Helper()
		settings, err := l.direct.Settings(l.t.Context())
		l.surely(err)
		return settings.Revision
	}
	state := func(l *lossy) (found store.ScheduleState) {
		l.t.Helper()
		states, err := l.direct.ScheduleStates(l.t.Context())
		l.surely(err)
		for _, s := range states.List {
			if s.Name == l.queue {
				found = s
			}
		}
		return found
	}
	loseEach(t,
		lostCase{name: "begin", play: func(l *lossy) (func(context.Context) error, func(error)) {
			by := revision(l)
			return func(ctx context.Context) error { _, err := l.s.Fire(ctx, by, []store.Firing{begun(l)}); return err }, func(err error) {
				l.surely(err)
				if s := state(l); !s.Next.Equal(due) {
					l.t.Errorf("state: %+v", s)
				}
			}
		}},
		lostCase{name: "fire", play: func(l *lossy) (func(context.Context) error, func(error)) {
			by := revision(l)
			_, err := l.direct.Fire(l.t.Context(), by, []store.Firing{begun(l)})
			l.surely(err)
			return func(ctx context.Context) error { _, err := l.s.Fire(ctx, by, []store.Firing{fired(l)}); return err }, func(err error) {
				l.surely(err)
				again, err := l.direct.Fire(l.t.Context(), by, []store.Firing{fired(l)})
				l.surely(err)
				s := state(l)
				if again[0].Moved || s.Fires != 1 || s.Skips != 0 || !s.Last.Equal(due) {
					l.t.Errorf("fired again: %+v, state: %+v", again, s)
				}
				jobs, err := l.direct.Count(l.t.Context(), store.Filter{Queue: l.queue}, 10)
				l.surely(err)
				if jobs.Jobs != 1 {
					l.t.Errorf("%d jobs, want 1", jobs.Jobs)
				}
			}
		}},
		lostCase{name: "fire that begins", play: func(l *lossy) (func(context.Context) error, func(error)) {
			by := revision(l)
			_, err := l.direct.Fire(l.t.Context(), by, []store.Firing{begun(l)})
			l.surely(err)
			w, _ := l.running(1)
			f, taker := fired(l), &told{}
			f.Jobs[0].HandOver = &job.HandOver{Worker: w, Revision: by, Taker: taker}
			return func(ctx context.Context) error { _, err := l.s.Fire(ctx, by, []store.Firing{f}); return err }, func(err error) {
				l.surely(err)
				l.handedOver(taker, w, f.Jobs[0].ID)
				if s := state(l); s.Fires != 1 {
					l.t.Errorf("state: %+v", s)
				}
				l.count(2)
			}
		}},
		lostCase{name: "trigger", play: func(l *lossy) (func(context.Context) error, func(error)) {
			d := someDraft()
			d.Queue = l.queue
			call := func(ctx context.Context) error {
				r, err := l.s.TriggerSchedule(ctx, l.queue, d, store.Operator{Name: "ann"})
				if r.ID != d.ID {
					l.t.Errorf("the receipt is of %s", r.ID)
				}
				return err
			}
			return call, func(err error) {
				if err != nil && !errors.Is(err, job.ErrOutcomeUnknown) {
					l.t.Errorf("trigger: %v", err)
				}
				jobs, err := l.direct.Count(l.t.Context(), store.Filter{Queue: l.queue}, 10)
				l.surely(err)
				if jobs.Jobs > 1 {
					l.t.Errorf("%d jobs, want at most 1", jobs.Jobs)
				}
			}
		}},
	)
}
