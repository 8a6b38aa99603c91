package pool

import (
	"log/slog"
	"slices"
	"testing"
	"time"
)

// A program that ends at once is not started again and again without a pause.
func TestJ22_ACrashLoopHasPauses(t *testing.T) {
	pauses := make(chan time.Duration)
	p := newPool(Config{Path: "/bin/false", Dir: "/", Size: 1, Line: minLine, Logger: slog.New(slog.DiscardHandler)}, func(d time.Duration) <-chan time.Time {
		pauses <- d
		over := make(chan time.Time, 1)
		over <- time.Time{} // at once
		return over
	})
	p.open()
	var got []time.Duration
	for range 11 {
		got = append(got, <-pauses)
	}
	go func() { // more of them until it is closed
		for range pauses {
		}
	}()
	p.Close()
	close(pauses)
	want := []time.Duration{
		100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond, 3200 * time.Millisecond,
		6400 * time.Millisecond, 12800 * time.Millisecond, 25600 * time.Millisecond, 30 * time.Second, 30 * time.Second,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := pause(1 << 40); got != lastPause {
		t.Errorf("then %v", got)
	}
}
