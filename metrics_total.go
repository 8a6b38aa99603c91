package pawl

import (
	"slices"
	"time"
)

// totalOf adds up series step by step. Points of one start are of one span or, where some rows
// were merged into hours, of the longer one.
func totalOf(list []MetricSeries) []MetricSeries {
	at := map[time.Time]*MetricPoint{}
	for i := range list {
		for n := range list[i].Points {
			p := &list[i].Points[n]
			sum := at[p.Start]
			if sum == nil {
				sum = &MetricPoint{Start: p.Start}
				at[p.Start] = sum
			}
			sum.Span = max(sum.Span, p.Span)
			sum.Merge(&p.JobMetrics)
		}
	}
	if len(at) == 0 {
		return nil
	}
	total := MetricSeries{Points: make([]MetricPoint, 0, len(at))}
	for _, p := range at {
		total.Points = append(total.Points, *p)
	}
	slices.SortFunc(total.Points, func(a, b MetricPoint) int { return a.Start.Compare(b.Start) })
	return []MetricSeries{total}
}
