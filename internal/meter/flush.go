package meter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/supervise"
)

// Tick is the name of the service.
const Tick = "metrics"

// flushLimit bounds one flush by its service.
const flushLimit = 20 * time.Second

// Service flushes every so often.
func (m *Meter) Service() supervise.Service {
	return supervise.Every(Tick, m.config.Every, m.FlushOnce, supervise.Timeout(flushLimit), supervise.StartJitter(m.config.Every))
}

// FlushOnce hands over the minutes that are over, and where it is called more often than
// once a minute also what there is of the next. An idle process hands over nothing but
// its load, and that seldom.
func (m *Meter) FlushOnce(ctx context.Context) error { return m.flush(ctx, false) }

// Close hands over everything, also of the minute that is not over. What comes later
// is not handed over.
func (m *Meter) Close(ctx context.Context) error {
	if m == nil {
		return nil
	}
	return m.flush(ctx, true)
}

// flush sends what there is, and keeps what the store does not answer for. It is sent
// again as it was, under its number: it may have been kept.
func (m *Meter) flush(ctx context.Context, all bool) error {
	m.flushing.Lock()
	defer m.flushing.Unlock()
	for {
		more := true
		if m.pending == nil {
			var f store.MetricFlush
			if f, more = m.next(all); len(f.Rows) == 0 {
				return nil
			}
			m.pending = &f
		}
		m.pending.Unhurried = !all && m.config.Every >= time.Minute
		err := m.config.Store.AddMetrics(ctx, *m.pending)
		switch {
		case err == nil:
		case errors.Is(err, job.ErrInvalid): // it would be refused for ever
			m.config.Logger.ErrorContext(ctx, "metrics were refused, and are lost", "rows", len(m.pending.Rows), "error", err)
		default:
			return fmt.Errorf("keep %d metrics: %w", len(m.pending.Rows), err)
		}
		if m.pending = nil; !more {
			return nil
		}
	}
}

// next takes what the next flush carries, within the bound of one, and says whether
// there is more.
func (m *Meter) next(all bool) (f store.MetricFlush, more bool) {
	now := m.config.Now()
	m.mu.Lock()
	if m.open != nil && (all || m.config.Every < time.Minute || !now.Before(m.open.end) || now.Before(m.open.start)) {
		m.shut()
	}
	var taken []*minute
	rows := 0
	for len(m.full) > 0 {
		n := len(m.full[0].series) + len(m.full[0].failures) + 1
		if rows += n; len(taken) > 0 && rows >= store.MaxFlushRows {
			break
		}
		taken, m.full = append(taken, m.full[0]), m.full[1:]
	}
	more = len(m.full) > 0
	m.mu.Unlock()
	for i, minute := range taken {
		if same := slices.IndexFunc(taken[:i], minute.sameTime); same >= 0 { // the clock was set back: a flush has each row once
			taken[same].merge(minute, m.config.Names, m.config.Failures)
			minute.clear()
		}
	}
	for _, minute := range taken {
		f.Rows = append(f.Rows, minute.rows()...)
	}
	m.addLoad(&f, now, all)
	if len(taken) > 0 {
		m.recycle(taken[0])
	}
	if len(f.Rows) > 0 {
		m.number++
		f.Source, f.Number = m.source, m.number
	}
	return f, more
}

// addLoad adds what the process took, if there is something else to send or it is
// time.
func (m *Meter) addLoad(f *store.MetricFlush, now time.Time, all bool) {
	if len(f.Rows) == 0 && (all || time.Since(m.load.since) < m.config.Idle) {
		return
	}
	l := m.load.take()
	m.mu.Lock()
	l.Calls.Merge(&m.calls)
	m.calls.Reset()
	m.mu.Unlock()
	label := strings.ToValidUTF8(m.config.Label[:min(len(m.config.Label), store.MaxMetricName)], "")
	f.Rows = append(f.Rows, store.MetricRow{
		Class: metric.OfWorkers, Start: now.UTC().Truncate(time.Minute), Name: label, Data: l.Append(nil),
	})
}

// recycle keeps the room of a minute for another.
func (m *Meter) recycle(old *minute) {
	old.reset()
	m.mu.Lock()
	m.spare = old
	m.mu.Unlock()
}
