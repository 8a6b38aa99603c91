package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
)

// Bounds of what one answer tells of metrics.
const (
	maxSteps  = 2_000  // of a range
	maxPoints = 20_000 // of all series
)

// series adds the route of what jobs came to.
func (a *api) series() {
	route(a, operation{
		method: http.MethodGet, path: "/metrics/series", id: "list-series", tag: "metrics", role: auth.Viewer,
		summary: "Tell what the jobs of all processes came to: counts by outcome, and quantiles of their times; the last minute or two may be missing",
	}, a.listSeries)
}

// TimeRange is a time in which something is looked for. Without from and range it is the hour
// before to, without to it ends now.
type TimeRange struct {
	From  time.Time `query:"from"`
	To    time.Time `query:"to" doc:"without it now"`
	Range string    `query:"range" maxLength:"20" doc:"instead of from: how long before to it begins, such as 6h; 720h at most, 1h without it"`
}

// of reads it, by the store's clock.
func (r *TimeRange) of(ctx context.Context, e *pawl.Engine) (from, to time.Time, err error) {
	length, err := readDuration("range", r.Range, store.KeepMetrics)
	if err != nil {
		return from, to, err
	}
	if length > 0 && !r.From.IsZero() {
		return from, to, newProblem(http.StatusUnprocessableEntity, "invalid", "range: there is from already")
	}
	if to = r.To; to.IsZero() {
		if to, err = e.Store().Now(ctx); err != nil {
			return from, to, err
		}
	}
	if from = r.From; from.IsZero() {
		if length == 0 {
			length = time.Hour
		}
		from = to.Add(-length)
	}
	if err := errors.Join(job.CheckTime("from", from), job.CheckTime("to", to)); err != nil {
		return from, to, err
	}
	if !from.Before(to) || to.Sub(from) > 2*store.KeepMetrics {
		bound := fmt.Sprintf("must end after it begins, %s later at most", 2*store.KeepMetrics)
		return from, to, newProblem(http.StatusUnprocessableEntity, "invalid",
			fmt.Sprintf("from %s to %s: %s", from.Format(time.RFC3339), to.Format(time.RFC3339), bound))
	}
	return from, to, nil
}

type seriesInput struct {
	TimeRange
	Step  string `query:"step" maxLength:"20" doc:"what one point is of, whole minutes such as 5m; without it one point for all"`
	Queue string `query:"queue" maxLength:"200" doc:"or a pattern, such as mail.*"`
	Kind  string `query:"kind" maxLength:"200" doc:"or a pattern"`
	Total bool   `query:"total" doc:"add up all queues and kinds into one series"`
}

// SeriesList is what jobs came to.
type SeriesList struct {
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	Series     []Series  `json:"series" nullable:"false" doc:"by queue and kind"`
	Unreadable int       `json:"unreadable,omitempty" doc:"rows that were left out: another build wrote them"`
}

// Series is what jobs of one queue and kind came to.
type Series struct {
	Queue  string  `json:"queue,omitempty" doc:"none of a total; (all other) beyond the bound of names that a process counts apart"`
	Kind   string  `json:"kind,omitempty" doc:"as queue"`
	Points []Point `json:"points" nullable:"false" doc:"by start; where nothing happened there is none"`
}

// Point is one step of a series.
type Point struct {
	Start     time.Time         `json:"start"`
	Span      string            `json:"span" doc:"a step; an hour where the minutes are not kept any more"`
	Counts    map[string]uint64 `json:"counts" doc:"began, done, failed, dead, cancelled, snoozed, throttled, released, lost and parked, those above 0"`
	QueueTime *Times            `json:"queue_time,omitempty" doc:"from due until the handler began, of each run"`
	RunTime   *Times            `json:"run_time,omitempty" doc:"of the handler"`
	TotalTime *Times            `json:"total_time,omitempty" doc:"from the enqueue to the end, of jobs that have ended"`
}

// Times are durations that were measured.
type Times struct {
	Count uint64 `json:"count"`
	Mean  string `json:"mean"`
	P50   string `json:"p50" doc:"half took at most as long"`
	P95   string `json:"p95"`
	P99   string `json:"p99"`
}

func timesOf(h *pawl.Histogram) *Times {
	if h.Count() == 0 {
		return nil
	}
	return &Times{
		Count: h.Count(), Mean: h.Mean().String(), P50: h.Quantile(0.5).String(), P95: h.Quantile(0.95).String(), P99: h.Quantile(0.99).String(),
	}
}

func pointOf(p *pawl.MetricPoint) Point {
	w := Point{
		Start: p.Start, Span: p.Span.String(), Counts: map[string]uint64{},
		QueueTime: timesOf(&p.QueueTime), RunTime: timesOf(&p.RunTime), TotalTime: timesOf(&p.TotalTime),
	}
	for _, c := range metric.Counts() {
		if n := p.Count(c); n > 0 {
			w.Counts[c.String()] = n
		}
	}
	return w
}

func (a *api) listSeries(ctx context.Context, in *seriesInput) (*body[SeriesList], error) {
	from, to, err := in.of(ctx, a.e)
	if err != nil {
		return nil, err
	}
	step, err := readDuration("step", in.Step, store.KeepMetrics)
	if err != nil {
		return nil, err
	}
	if step%time.Minute != 0 {
		return nil, newProblem(http.StatusUnprocessableEntity, "invalid", fmt.Sprintf("step %q: must be whole minutes", in.Step))
	}
	if step > 0 && to.Sub(from)/step > maxSteps {
		return nil, newProblem(http.StatusUnprocessableEntity, "invalid",
			fmt.Sprintf("step %q: makes more than %d steps from %s to %s", in.Step, maxSteps, from.Format(time.RFC3339), to.Format(time.RFC3339)))
	}
	m, err := a.e.Metrics(ctx, pawl.MetricQuery{From: from, To: to, Queue: in.Queue, Kind: in.Kind, Step: step, Total: in.Total})
	if err != nil {
		return nil, err
	}
	out := SeriesList{From: from, To: to, Series: make([]Series, len(m.Series)), Unreadable: m.Unreadable}
	points := 0
	for i := range m.Series {
		s := &m.Series[i]
		if points += len(s.Points); points > maxPoints {
			return nil, newProblem(http.StatusUnprocessableEntity, "invalid",
				fmt.Sprintf("step %q: makes more than %d points: name a queue or kind, or ask for a longer step or for the total", in.Step, maxPoints))
		}
		out.Series[i] = Series{Queue: s.Queue, Kind: s.Kind, Points: make([]Point, len(s.Points))}
		for n := range s.Points {
			out.Series[i].Points[n] = pointOf(&s.Points[n])
		}
	}
	return answer(out), nil
}
