package runner

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestQueue_PrefetchFollowsThePace(t *testing.T) {
	for _, c := range []struct {
		name     string
		q        queue
		horizon  time.Duration
		min, max int
	}{
		{"unknown pace", queue{slots: 100}, time.Second, 0, 0},
		{"long jobs", queue{slots: 4, mean: float64(time.Minute)}, time.Second, 0, 0},
		{"short jobs", queue{slots: 4, mean: float64(time.Millisecond)}, 10 * time.Millisecond, 40, 40},
		{"few slots", queue{slots: 4, mean: 1}, time.Millisecond, 128, 128},
		{"no-op jobs", queue{slots: 100, mean: 1}, time.Millisecond, 800, 800},
		{"many slots", queue{slots: 10_000, mean: 1}, time.Millisecond, 1000, 1000},
		{"switched off", queue{slots: 100, mean: 1, setting: Queue{Prefetch: -1}}, time.Millisecond, 0, 0},
		{"asked for 7", queue{slots: 100, mean: 1, setting: Queue{Prefetch: 7}}, time.Millisecond, 7, 7},
		{"large payloads", queue{slots: 100, mean: 1, bytes: 1 << 20}, time.Millisecond, 16, 16},
	} {
		if got := c.q.prefetch(c.horizon); got < c.min || got > c.max {
			t.Errorf("%s: prefetch %d, want %d..%d", c.name, got, c.min, c.max)
		}
	}
}

// The line is compared with a plain slice under random operations.
func TestQueue_LineIsFirstInFirstOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l line
		var model []*Task
		t.Repeat(map[string]func(*rapid.T){
			"push":      func(*rapid.T) { task := &Task{}; l.push(task); model = append(model, task) },
			"pushFirst": func(*rapid.T) { task := &Task{}; l.pushFirst(task); model = slices.Insert(model, 0, task) },
			"pop": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip("empty")
				}
				if l.pop() != model[0] {
					t.Fatal("pop is not the first")
				}
				model = model[1:]
			},
			"take": func(t *rapid.T) {
				n, i := rapid.IntRange(1, 3).Draw(t, "every"), 0
				gone := map[*Task]bool{}
				for j, task := range model {
					gone[task] = j%n == 0
				}
				for range l.take(func(task *Task) bool { return gone[task] }) {
					i++
				}
				model = slices.DeleteFunc(model, func(task *Task) bool { return gone[task] })
			},
			"": func(t *rapid.T) {
				if !slices.Equal(l.all(), model) || l.len() != len(model) {
					t.Fatalf("line %v, model %v", l.all(), model)
				}
			},
		})
	})
}

func TestQueue_LineThatIsNeverEmptyDoesNotGrow(t *testing.T) {
	var l line
	for range 4 {
		l.push(&Task{})
	}
	for range 100_000 {
		l.push(&Task{})
		l.pop()
	}
	if cap(l.tasks) > 64 {
		t.Errorf("a line of 4 holds room for %d", cap(l.tasks))
	}
}
