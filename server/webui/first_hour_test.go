package webui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/metric"
	"github.com/pawlwork/pawl/store"
)

// failed are failures as a store keeps them.
func failed(t *testing.T, list ...job.Failure) (f job.Failures) {
	t.Helper()
	text, err := json.Marshal(list)
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A job that is no longer dead keeps its row, which says what it is now: it has neither lived nor died, and its error is no arguments.
func TestU7_ARowThatIsNoLongerDeadSaysWhatItIs(t *testing.T) {
	now := time.Date(2026, 11, 15, 14, 28, 8, 0, time.UTC)
	a, _, _ := counter(t)
	v := &view{app: a, Now: now}
	j := pawl.JobRecord{State: job.Dead, Created: now.Add(-time.Hour), Started: now.Add(-time.Minute), Finished: now.Add(-time.Minute),
		Args: []byte(`{"order": 7}`), Failures: failed(t, job.NewFailure(1, 1, "no VAT id", ""))}
	for view, state := range map[string]pawl.State{"dead": job.Dead, "cancelled": job.Cancelled} {
		j.State = state
		if r := v.row(&j, "", columnsOf(view)); !strings.Contains(string(r.Time), "59 min") || !strings.Contains(string(r.Last), " ago") {
			t.Errorf("%s: %q %q", view, r.Time, r.Last)
		}
		for want, state := range map[string]pawl.State{"Ready": job.Waiting, "Running": job.Running, "Done": job.Done} {
			j.State, j.Due = state, now
			if r := v.row(&j, "queue a is paused", columnsOf(view)); r.Time != "" || !strings.Contains(string(r.Last), want+"</span>") ||
				!strings.Contains(string(r.Detail), "no VAT id") && view == "dead" {
				t.Errorf("%s, now %v: %q %q %q", view, state, r.Detail, r.Time, r.Last)
			}
		}
	}
	j.State, j.Failures = job.Running, job.Failures{}
	if r := v.row(&j, "", columnsOf("dead")); strings.Contains(string(r.Detail), "order") {
		t.Errorf("arguments for an error: %q", r.Detail)
	}
}

// How many are dead now is said beside how many died only where it is fewer.
func TestU7_DeadNowIsSaidWhereItIsLess(t *testing.T) {
	for now, want := range map[pawl.Counted]string{{Jobs: 8}: " (<b><bdi>8</bdi></b> dead now)", {Jobs: 42}: "", {Jobs: 43}: "", {Jobs: 9, More: true}: ""} {
		if got := string(stillDead(now, 42)); got != want {
			t.Errorf("%v: %q, want %q", now, got, want)
		}
	}
}

// flowOf is a flow of some minutes, of which the last few are known, with so many of each count in each.
func flowOf(minutes, known int, counts map[pawl.MetricCount]int) *flow {
	start := time.Date(2026, 11, 15, 14, 0, 0, 0, time.UTC)
	f := &flow{span: span{From: start, To: start.Add(time.Duration(minutes) * time.Minute), Step: time.Minute, Name: "15m"},
		Steps: make([]step, minutes), Known: true}
	for i := range f.Steps {
		s := &f.Steps[i]
		if s.Start = start.Add(time.Duration(i) * time.Minute); i < minutes-known {
			continue
		}
		s.Minutes = 1
		for c, n := range counts {
			for range n {
				s.Ended(c, 0, 0, -1)
			}
		}
		f.Total.Merge(&s.JobMetrics)
	}
	return f
}

// The parts of a rate are rates, in its unit, and add up to it as they are shown.
func TestU7_PartsOfARateAddUpToIt(t *testing.T) {
	for want, counts := range map[string][]uint64{
		"352 /min: 227 33 92":     {1136, 165, 461},
		"9 /min: 7 1 1":           {35, 5, 5},
		"3.4 /min: 1.2 1 1.2":     {6, 5, 6},
		"200 /min: 200 < 1 0":     {999, 1, 0},
		"1,002 /min: 1,001 1 0":   {5005, 5, 0},
		"10 an hour: 10 0 0":      {1, 0, 0},
		"0 /min:   ":              {0, 0, 0},
		"11 /min: 4 4 3":          {18, 18, 17},
		"6 /min: 2 2 2":           {10, 10, 10},
		"7.6 /min: 7.4 0.2 0":     {37, 1, 0},
		"36 an hour: 12 12 12":    {1, 1, 1},
		"1,000 /min: 1,000 < 1 0": {5000, 1, 0},
	} {
		in := 5 * time.Minute
		if counts[0] == 1 && counts[1] == 0 {
			in = 6 * time.Minute
		}
		number, unit, shares := rateOf(counts, in)
		if got := fmt.Sprintf("%s %s: %s", number, unit, strings.Join(shares, " ")); got != want {
			t.Errorf("%v: %q, want %q", counts, got, want)
		}
	}
	k := notDoneKPI(flowOf(15, 15, map[pawl.MetricCount]int{pawl.MetricFailed: 7, pawl.MetricDead: 1, pawl.MetricThrottled: 1}))
	if k.Value != "9" || k.Note != "7 retried, 1 dead, 1 throttled" || k.Title != "35 retried, 5 dead, 5 throttled in 5 min" {
		t.Errorf("%+v", k)
	}
}

// A young system is not slow because nothing ran before it began, and a rate is compared with the average that it is part of.
func TestU7_ARateIsOfTheTimeThatAnythingRan(t *testing.T) {
	f := flowOf(15, 2, map[pawl.MetricCount]int{metric.Done: 60})
	began := f.Steps[13].Start.Add(40 * time.Second)
	f.begun([]pawl.WorkerInfo{{Started: began.Add(time.Minute)}, {Started: began}})
	if k := doneKPI(f); k.Value != "90" || k.Note != "120 in the last 15 min" {
		t.Errorf("%+v", k)
	}
	old := flowOf(15, 15, map[pawl.MetricCount]int{metric.Done: 60})
	old.begun([]pawl.WorkerInfo{{Started: old.From.Add(30 * time.Second)}}) // it came later than what is known
	if k := doneKPI(old); k.Value != "60" || k.Note != "as on average in the last 15 min" {
		t.Errorf("%+v", k)
	}
	for range 600 {
		old.Steps[14].Ended(metric.Done, 0, 0, -1)
		old.Total.Ended(metric.Done, 0, 0, -1)
	}
	if k := doneKPI(old); k.Note != "80 % above its average of the last 15 min" {
		t.Errorf("%+v", k)
	}
}

// Labels of versions neither lie over each other nor leave the chart.
func TestU7_MarksOfVersionsAreApart(t *testing.T) {
	of := func(places ...any) (list []tick) {
		for i := 0; i < len(places); i += 2 {
			list = append(list, tick{At: places[i].(float64), Text: places[i+1].(string)})
		}
		return apart(list)
	}
	for want, got := range map[string][]tick{
		"10 1.8.2; 60 1.8.3":                   of(10.0, "1.8.2", 60.0, "1.8.3"),
		"10 1.8.2, 1.8.3; 11":                  of(10.0, "1.8.2", 11.0, "1.8.3"),
		"10 1.8.2; 11":                         of(10.0, "1.8.2", 11.0, "1.8.2"),
		"97 1.8.2 left":                        of(97.0, "1.8.2"),
		"88 1.8.2, 1.8.3 left; 98":             of(88.0, "1.8.2", 98.0, "1.8.3"),
		"10 a and 2 more; 11; 12":              of(10.0, "a", 11.0, "b", 12.0, "c"),
		"40 v0.0.0-202611151…; 41":             of(40.0, "v0.0.0-20261115142808", 41.0, "v0.0.0-20261115150000"),
		"70 aaaaaaaaaaaa, bbbbbbbb left; 95; ": append(of(70.0, "aaaaaaaaaaaa", 95.0, "bbbbbbbb"), tick{}),
	} {
		var parts []string
		for _, m := range got {
			text := strings.TrimSpace(decimal(m.At) + " " + m.Text)
			if m == (tick{}) {
				text = ""
			}
			if m.Left {
				text += " left"
			}
			parts = append(parts, text)
		}
		if is := strings.Join(parts, "; "); is != want {
			t.Errorf("%q, want %q", is, want)
		}
	}
	if text := string((&plot{High: 1, Marks: of(97.0, "1.8.2")}).SVG()); !strings.Contains(text, `dx="-5" text-anchor="end" dy=".9em">1.8.2<`) {
		t.Error(text)
	}
}

// "More than" is of a count that reached its most. A page that ended early says how many of them it shows.
func TestU7_TheFootSaysWhatWasCounted(t *testing.T) {
	for _, c := range []struct {
		shown           int
		of              pawl.Counted
		stopped, newest bool
		want            string
	}{
		{50, pawl.Counted{Jobs: 488}, false, true, "Newest 50 of 488."},
		{50, pawl.Counted{Jobs: 488}, false, false, "50 of 488."},
		{50, pawl.Counted{Jobs: 488, More: true}, false, true, "Newest 50 of at least 488."},
		{50, pawl.Counted{Jobs: store.MaxCounted, More: true}, false, true, "Newest 50 of more than 10,000."},
		{1, pawl.Counted{Jobs: 3}, true, true, "1 of 3 shown."},
		{4, pawl.Counted{Jobs: 4, More: true}, true, true, "4 shown."},
	} {
		if got := footCount(c.shown, c.of, c.stopped, c.newest); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A run that ended with its worker was lost: nobody tried it again because it failed.
func TestU7_ALostRunIsSaidToBeLost(t *testing.T) {
	now := time.Date(2026, 11, 15, 14, 28, 8, 0, time.UTC)
	var lost job.Failure
	if err := json.Unmarshal(job.Rescue(&job.Subject{Begun: true, Run: 1}, 5, job.Keep{}).Failure, &lost); err != nil {
		t.Fatal(err)
	}
	own := lost
	own.Run, own.Label = 2, "worker-1" // whose handler says the same
	list := attemptsOf(&pawl.JobRecord{State: job.Waiting, Run: 2, Failures: failed(t, lost, own)}, now)
	if len(list) != 2 || list[0].Outcome != "lost" || list[1].Outcome != "retried" {
		t.Errorf("%+v", list)
	}
	a, _, _ := counter(t)
	if text := string(a.pill("lost")); !strings.Contains(text, "Lost</span>") || !strings.Contains(text, "st-dead") {
		t.Error(text)
	}
}
