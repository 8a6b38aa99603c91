package runner

import (
	"testing"
	"time"
)

func TestQueue_PrefetchFollowsThePace(t *testing.T) {
	for _, c := range []struct {
		name     string
		q        *queue
		horizon  time.Duration
		min, max int
	}{
		{"unknown pace", &queue{slots: 100}, time.Second, 0, 0},
		{"long jobs", &queue{slots: 4, mean: float64(time.Minute)}, time.Second, 0, 0},
		{"short jobs", &queue{slots: 4, mean: float64(time.Millisecond)}, 10 * time.Millisecond, 40, 40},
		{"few slots", &queue{slots: 4, mean: 1}, time.Millisecond, 128, 128},
		{"no-op jobs", &queue{slots: 100, mean: 1}, time.Millisecond, 800, 800},
		{"many slots", &queue{slots: 10_000, mean: 1}, time.Millisecond, 1000, 1000},
		{"switched off", &queue{slots: 100, mean: 1, setting: QueueConfig{Prefetch: -1}}, time.Millisecond, 0, 0},
		{"asked for 7", &queue{slots: 100, mean: 1, setting: QueueConfig{Prefetch: 7}}, time.Millisecond, 7, 7},
		{"large payloads", &queue{slots: 100, mean: 1, bytes: 1 << 20}, time.Millisecond, 16, 16},
	} {
		if got := c.q.prefetch(c.horizon); got < c.min || got > c.max {
			t.Errorf("%s: prefetch %d, want %d..%d", c.name, got, c.min, c.max)
		}
	}
}
