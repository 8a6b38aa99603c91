package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
)

// MetricSum adds up rows as a query asks. A store hands it every row of one moment
// that may belong to the range.
type MetricSum struct {
	query      MetricQuery
	points     map[metricKey]*MetricPoint
	visited    int
	unreadable int
}

type metricKey struct {
	name, kind string
	start      int64 // microseconds; of nothing where the whole range is one point
}

// NewMetricSum begins with nothing.
func NewMetricSum(q MetricQuery) *MetricSum {
	return &MetricSum{query: q, points: map[metricKey]*MetricPoint{}}
}

// Add adds a row, unless the query leaves it out: such a row needs no data, and counts
// towards the bound. Data is not kept.
func (s *MetricSum) Add(w MetricWidth, r *MetricRow) error {
	if s.visited++; s.visited > MaxMetricRows {
		return job.Invalid("range of metrics", fmt.Sprintf("%v to %v", s.query.From, s.query.To),
			fmt.Sprintf("has more than %d rows: ask for less at a time", MaxMetricRows))
	}
	q := &s.query
	if !r.Start.Add(w.Span()).After(q.From) || !r.Start.Before(q.To) || !nameMatches(q.Name, r.Name) || !nameMatches(q.Kind, r.Kind) {
		return nil
	}
	start, span := q.From, q.To.Sub(q.From)
	if q.Step > 0 {
		start, span = r.Start.Truncate(q.Step), max(q.Step, w.Span())
	}
	key := metricKey{r.Name, r.Kind, start.UnixMicro()}
	p := s.points[key]
	if p == nil {
		if len(s.points) == MaxPoints {
			return job.Invalid("range of metrics", fmt.Sprintf("%v to %v", q.From, q.To),
				fmt.Sprintf("has more than %d points: ask for less, or in longer steps", MaxPoints))
		}
		p = &MetricPoint{Name: r.Name, Kind: r.Kind, Start: start.UTC(), Value: metric.New(q.Class)}
		s.points[key] = p
	}
	if err := p.Value.Decode(r.Data); err != nil {
		s.unreadable++
		return nil
	}
	p.Span = max(p.Span, span)
	return nil
}

// Reply is what all of them add up to.
func (s *MetricSum) Reply() MetricReply {
	reply := MetricReply{Unreadable: s.unreadable}
	for _, p := range s.points {
		if p.Span > 0 { // else nothing of it can be read
			reply.Points = append(reply.Points, *p)
		}
	}
	slices.SortFunc(reply.Points, func(a, b MetricPoint) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind), a.Start.Compare(b.Start))
	})
	return reply
}

// nameMatches reports whether a name is asked for.
func nameMatches(pattern, name string) bool {
	return pattern == "" || pattern == name || strings.ContainsRune(pattern, '*') && job.Matches(pattern, name)
}

// ExactName is the name that a pattern stands for alone; empty where it stands for
// several, and each has to be looked at.
func ExactName(pattern string) string {
	if strings.ContainsRune(pattern, '*') {
		return ""
	}
	return pattern
}

// MetricRange is what a query reads of rows of a width: those that begin from one
// time and before another.
func MetricRange(q MetricQuery, w MetricWidth) (from, to time.Time) {
	return q.From.Truncate(w.Span()), q.To
}
