package store

import (
	"testing"
	"time"
)

func TestF12_ARhythmBringsCallsTogether(t *testing.T) {
	start := time.Unix(1000, 0)
	r := NewRhythm(start)
	for _, c := range []struct{ after, period, want time.Duration }{
		{0, 5 * time.Second, 5 * time.Second},
		{1, 5 * time.Second, 5 * time.Second},
		{5*time.Second - 1, 5 * time.Second, 5 * time.Second},
		{5 * time.Second, 5 * time.Second, 10 * time.Second},
		{7 * time.Second, 1500 * time.Millisecond, 7500 * time.Millisecond},
		{-time.Second, 5 * time.Second, 0},
		{-5 * time.Second, 5 * time.Second, 0},
	} {
		if got := r.After(start.Add(c.after), c.period); !got.Equal(start.Add(c.want)) {
			t.Errorf("after %v every %v comes %v, want %v", c.after, c.period, got.Sub(start), c.want)
		}
	}
	var none *Rhythm
	if got := none.After(start, time.Minute); !got.Equal(start.Add(time.Minute)) {
		t.Errorf("without a rhythm it comes after %v, want one period", got.Sub(start))
	}
	if RhythmOf(nil) != nil || RhythmOf("no store") != nil {
		t.Error("what is no store has a rhythm")
	}
}
