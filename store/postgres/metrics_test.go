package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
)

// What one queue or kind came to is read without the rows of the others, whatever the planner knows of the table.
func TestJ20_OneNameIsReadWithoutTheOthers(t *testing.T) {
	s, sent := openTraced(t)
	const minutes, queues = 20, 50
	from := time.Now().Truncate(time.Minute).Add(-time.Hour)
	var value metric.Jobs
	value.Add(metric.Began)
	source := job.NewID()
	for m := range minutes {
		f := store.MetricFlush{Source: source, Number: int64(m + 1)}
		for n := range queues {
			f.Rows = append(f.Rows, store.MetricRow{
				Class: metric.OfJobs, Start: from.Add(time.Duration(m) * time.Minute), Name: fmt.Sprint("q", n), Kind: fmt.Sprint("k", n), Data: value.Append(nil),
			})
		}
		if err := s.AddMetrics(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			exec(t, s, "ANALYZE pawl.metric")
		}
		for what, q := range map[string]store.MetricQuery{"a queue": {Name: "q7"}, "a kind": {Kind: "k7"}, "both": {Name: "q7", Kind: "k7"}} {
			q.Class, q.From, q.To = metric.OfJobs, from, from.Add(time.Hour)
			began := uint64(0)
			visits := sent.visitsOf("metric", func() {
				reply, err := s.ReadMetrics(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range reply.Points {
					began += p.Value.(*metric.Jobs).Count(metric.Began)
				}
			})
			if began != minutes || visits > 2*minutes { // an entry of the index, and its row
				t.Errorf("%s: %d runs, want %d, and %d rows visited (table analyzed: %v)", what, began, minutes, visits, analyzed)
			}
		}
	}
}
