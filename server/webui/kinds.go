package webui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl"
)

// kindFlow is what jobs of one kind came to.
type kindFlow struct {
	Kind string
	pawl.JobMetrics
}

// What one page reads of metrics. Where there is more, the last hour is told of, which is what people ask about first.
const (
	manyRows     = 100_000
	manyPoints   = 20_000 // each has histograms
	kindsOfQueue = 3      // as a guess
)

// hour is what each queue and kind came to in the last hour of a span, or in all of it if that is shorter: one read for all who look.
func (v *view) hour() (m *pawl.Metrics, s span, err error) {
	if s = v.span(); s.To.Sub(s.From) > time.Hour {
		if now := v.Now.Truncate(time.Minute).Add(time.Minute); now.After(s.From) && s.To.After(now) {
			s.To = now // whole steps of a long span end later
		}
		if s.From = s.To.Add(-time.Hour); s.Name != "" {
			s.Name = "1h"
		}
	}
	s.Step = s.To.Sub(s.From)
	m, err = v.series(s.From, s.To, 0)
	return m, s, err
}

func (v *view) series(from, to time.Time, step time.Duration) (*pawl.Metrics, error) {
	from, to = from.Truncate(time.Minute), to.Truncate(time.Minute)
	key := fmt.Sprint("series ", from.Unix(), " ", to.Unix(), " ", step)
	if to.After(v.Now) { // it moves with the clock: what is a little older will do
		key = fmt.Sprint("series ", to.Sub(from), " ", step)
	}
	return measured(v, key, 5*time.Second, func(ctx context.Context) (*pawl.Metrics, error) {
		m, err := v.app.e.Metrics(ctx, pawl.MetricQuery{From: from, To: to, Step: step})
		return &m, err
	})
}

// affordable reports whether all of a span may be read, of so many queues and kinds. Metrics of two days are by the minute.
func affordable(s span, series int) bool {
	length := s.To.Sub(s.From)
	fine := min(length, 48*time.Hour)
	return series*(int(fine.Minutes())+int((length-fine).Hours())) <= manyRows
}

// kinds are what kinds came to in the span, or in its last hour where there are many of them, by name.
func (v *view) kinds() ([]kindFlow, span, error) {
	m, s, err := v.hour()
	if err != nil {
		return nil, s, err
	}
	if whole := v.span(); whole.To.Sub(whole.From) > time.Hour && affordable(whole, len(m.Series)) {
		if m, err = v.series(whole.From, whole.To, 0); err != nil {
			return nil, s, err
		}
		s = whole
	}
	sums := map[string]*pawl.JobMetrics{}
	for i := range m.Series {
		of := sums[m.Series[i].Kind]
		if of == nil {
			of = &pawl.JobMetrics{}
			sums[m.Series[i].Kind] = of
		}
		for n := range m.Series[i].Points {
			of.Merge(&m.Series[i].Points[n].JobMetrics)
		}
	}
	list := make([]kindFlow, 0, len(sums))
	for name, of := range sums {
		list = append(list, kindFlow{name, *of})
	}
	slices.SortFunc(list, func(x, y kindFlow) int { return cmp.Compare(x.Kind, y.Kind) })
	return list, s, nil
}
