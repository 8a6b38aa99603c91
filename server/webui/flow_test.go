package webui

import (
	"testing"
	"time"
)

func TestU7_TheMinuteThatGoesOnIsNoFall(t *testing.T) {
	start := time.Date(2026, 11, 15, 14, 0, 0, 0, time.UTC)
	of := func(known int, long time.Duration) *flow {
		f := &flow{span: span{From: start, To: start.Add(4 * long), Step: long}, Steps: make([]step, 4)}
		for i := range f.Steps {
			f.Steps[i].Start = start.Add(time.Duration(i) * long)
			if i >= 4-known {
				f.Steps[i].Minutes = long.Minutes()
			}
		}
		return f
	}
	for _, c := range []struct {
		known  int
		step   time.Duration
		passed time.Duration // of the last step
		want   float64       // minutes that its counts are of
	}{
		{4, time.Minute, 20 * time.Second, 0},
		{3, time.Minute, 20 * time.Second, 0},
		{2, time.Minute, 20 * time.Second, 1}, // there is little else
		{1, time.Minute, 20 * time.Second, 1},
		{4, time.Minute, time.Minute, 1}, // it is over
		{4, 5 * time.Minute, 20 * time.Second, 0},
		{4, 5 * time.Minute, 2 * time.Minute, 2},
		{0, time.Minute, 20 * time.Second, 0},
	} {
		f := of(c.known, c.step)
		f.underway(f.Steps[3].Start.Add(c.passed))
		if got := f.Steps[3].Minutes; got != c.want {
			t.Errorf("%+v: %v minutes", c, got)
		}
	}
}
