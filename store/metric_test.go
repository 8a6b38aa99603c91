package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
)

// A year of 50 kinds in 3 processes, by when rows are rolled up and go.
func TestJ20_AYearOfFiftyKindsIsBounded(t *testing.T) {
	const kinds, processes = 50, 3
	now := time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC)
	rows := map[store.MetricWidth]int{}
	for start := now.AddDate(-1, 0, 0); start.Before(now); start = start.Add(time.Minute) {
		if !now.Before(store.MetricExpiry(store.MetricPart, start)) {
			continue
		}
		switch {
		case now.Before(store.RollTime(metric.OfJobs, store.MetricPart, start)):
			rows[store.MetricPart] += kinds * processes
		case now.Before(store.RollTime(metric.OfJobs, store.MetricMinute, start)):
			rows[store.MetricMinute] += kinds
		case start.Minute() == 0:
			rows[store.MetricHour] += kinds
		}
	}
	if sum := rows[store.MetricPart] + rows[store.MetricMinute] + rows[store.MetricHour]; sum == 0 || sum > 200_000 {
		t.Errorf("%d rows: %v", sum, rows)
	}
	if !store.RollTime(metric.OfJobs, store.MetricHour, now).IsZero() {
		t.Error("hours are rolled up")
	}
}

func minute(name string, at time.Time) store.StoredMetric {
	return store.StoredMetric{Width: store.MetricMinute, MetricRow: store.MetricRow{Class: metric.OfJobs, Name: name, Start: at}}
}

// The minutes of an hour go together: the last hour may have been cut.
func TestJ20_MinutesOfAnHourGoTogether(t *testing.T) {
	hour := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var rows []store.StoredMetric
	for _, name := range []string{"a", "b"} {
		for i := range 60 {
			rows = append(rows, minute(name, hour.Add(time.Duration(i)*time.Minute)))
		}
	}
	part := rows[0]
	part.Width = store.MetricPart
	for _, c := range []struct {
		rows        []store.StoredMetric
		limit, want int
	}{
		{rows, 121, 120},
		{rows, 120, 60},
		{rows[:90], 90, 60},
		{rows[:60], 60, 60},
		{rows[:30], 30, 30},
		{[]store.StoredMetric{part, part, rows[0]}, 3, 2},
		{[]store.StoredMetric{rows[0], part}, 2, 1},
		{nil, 10, 0},
	} {
		if got := store.RollUpTogether(c.rows, c.limit); got != c.want {
			t.Errorf("%d of %d rows with a limit of %d, want %d", got, len(c.rows), c.limit, c.want)
		}
	}
}

func TestJ20_ReadingHasBounds(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var v metric.Jobs
	v.Add(metric.Done)
	data := v.Append(nil)
	sum := store.NewMetricSum(store.MetricQuery{Class: metric.OfJobs, From: from, To: from.Add(time.Hour)})
	var err error
	for i := 0; err == nil && i <= store.MaxPoints; i++ {
		err = sum.Add(store.MetricMinute, &store.MetricRow{Class: metric.OfJobs, Start: from, Name: fmt.Sprint(i), Data: data})
	}
	if n := len(sum.Reply().Points); !errors.Is(err, job.ErrInvalid) || n != store.MaxPoints {
		t.Errorf("%d points, %v", n, err)
	}
	sum = store.NewMetricSum(store.MetricQuery{Class: metric.OfJobs, From: from, To: from.Add(time.Hour), Name: "other"})
	row := &store.MetricRow{Class: metric.OfJobs, Start: from, Name: "q", Data: data}
	err = nil
	for i := 0; err == nil && i <= store.MaxMetricRows; i++ {
		err = sum.Add(store.MetricMinute, row)
	}
	if !errors.Is(err, job.ErrInvalid) {
		t.Errorf("no bound of rows: %v", err)
	}
}
