package check

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// counting is a part with so many rows, each of which breaks a rule.
func counting(name string, rows int) Part {
	return Part{Name: name, Look: func(_ context.Context, c *store.Check, after []byte, r *store.CheckReport) ([]byte, int64, error) {
		from := 0
		if len(after) > 0 {
			from = int(after[0])<<8 + int(after[1])
		}
		to := min(rows, from+c.Step)
		for i := from; i < to; i++ {
			r.AddFault(store.Fault{Rule: name, Detail: fmt.Sprint(i)})
		}
		r.Live += int64(to - from)
		if to == rows {
			return nil, int64(to - from), nil
		}
		return []byte{byte(to >> 8), byte(to)}, int64(to - from), nil
	}}
}

// Every row is looked at once, wherever calls stop.
func TestJ27_WalkGoesOnWhereItStopped(t *testing.T) {
	parts := []Part{counting("a", 10), counting("empty", 0), counting("b", 25), counting("c", 3)}
	for _, rows := range []int64{0, 1, 4, 7, 38, 1000} {
		var all store.CheckReport
		calls := 0
		for c := (store.Check{Step: 4, Rows: rows}); calls == 0 || c.After != ""; c.After = all.Next {
			report, err := Walk(t.Context(), c, parts)
			if err != nil {
				t.Fatal(err)
			}
			if rows > 0 && report.Live > rows+3 {
				t.Errorf("%d rows in a call that may look at %d and end its stretch", report.Live, rows)
			}
			all.Join(report)
			calls++
		}
		seen := map[store.Fault]int{}
		for _, f := range all.Faults {
			seen[f]++
		}
		if all.Live != 38 || len(seen) != 38 || all.Found != 38 {
			t.Errorf("with %d rows a call: %d rows, %d faults, %d found, want 38", rows, all.Live, len(seen), all.Found)
		}
	}
}

// A call that has found enough stops: a report is bounded (P10).
func TestJ27_WalkStopsWhenItHasFoundEnough(t *testing.T) {
	parts := []Part{counting("a", 5000)}
	report, err := Walk(t.Context(), store.Check{Step: 300}, parts)
	if err != nil || len(report.Faults) != store.MaxFaults || report.Found != 1200 || report.Next == "" {
		t.Errorf("%d listed of %d, next %q, %v", len(report.Faults), report.Found, report.Next, err)
	}
}

func TestJ27_WalkRefusesWhatHasNoMeaning(t *testing.T) {
	stuck := Part{Name: "stuck", Look: func(context.Context, *store.Check, []byte, *store.CheckReport) ([]byte, int64, error) {
		return []byte{1}, 1, nil
	}}
	if _, err := Walk(t.Context(), store.Check{}, []Part{stuck}); err == nil {
		t.Error("a part that does not go on was walked for ever")
	}
	for _, c := range []store.Check{
		{Step: -1}, {Step: 1_000_000}, {Rows: -1}, {Grace: -time.Second},
		{After: "a"}, {After: "stuck/x"}, {After: "other/00"},
	} {
		if _, err := Walk(t.Context(), c, []Part{stuck}); !errors.Is(err, job.ErrInvalid) && c.After != "a" {
			t.Errorf("%+v: %v, want ErrInvalid", c, err)
		}
	}
}
