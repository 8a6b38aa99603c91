package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
)

// Whichever answer is lost, everything that was measured is counted once.
func TestJ20_LostAnswers_Metrics(t *testing.T) {
	// flush has a job done in each of some minutes, long ago.
	flush := func(l *lossy, minutes int) store.MetricFlush {
		var v metric.Jobs
		v.Ended(metric.Done, time.Second, time.Second, time.Second)
		f := store.MetricFlush{Source: job.NewID(), Number: 1}
		start := time.Now().UTC().Add(-100 * time.Hour).Truncate(time.Hour)
		for i := range minutes {
			f.Rows = append(f.Rows, store.MetricRow{
				Class: metric.OfJobs, Start: start.Add(time.Duration(i) * 20 * time.Minute), Name: l.queue, Kind: "k", Data: v.Append(nil),
			})
		}
		return f
	}
	counts := func(l *lossy, want uint64) {
		l.t.Helper()
		reply, err := l.direct.ReadMetrics(l.t.Context(), store.MetricQuery{
			Class: metric.OfJobs, From: time.Now().Add(-200 * time.Hour), To: time.Now(), Name: l.queue,
		})
		l.surely(err)
		if len(reply.Points) != 1 || reply.Points[0].Value.(*metric.Jobs).Count(metric.Done) != want {
			l.t.Errorf("%+v, want %d done", reply.Points, want)
		}
	}
	loseEach(t,
		lostCase{name: "add", silent: true, play: func(l *lossy) (func(context.Context) error, func(error)) {
			f := flush(l, 5)
			return func(ctx context.Context) error { return l.s.AddMetrics(ctx, f) }, func(err error) {
				l.surely(err)
				counts(l, 5)
				for more := true; more; {
					reply, err := l.direct.RollUp(l.t.Context(), 500)
					l.surely(err)
					more = reply.Merged > 0
				}
				l.surely(l.direct.AddMetrics(l.t.Context(), f)) // again, when nothing of it is left as it was
				counts(l, 5)
			}
		}},
		lostCase{name: "roll up", silent: true, play: func(l *lossy) (func(context.Context) error, func(error)) {
			l.surely(l.direct.AddMetrics(l.t.Context(), flush(l, 5)))
			l.surely(l.direct.AddMetrics(l.t.Context(), flush(l, 4)))
			return func(ctx context.Context) error { _, err := l.s.RollUp(ctx, 500); return err }, func(err error) {
				l.surely(err)
				counts(l, 9)
			}
		}},
	)
}
