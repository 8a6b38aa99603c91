package job_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/job"
)

func TestJ18_PortionsAreEvenAndAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(0, 60).Draw(t, "total")
		workers := rapid.SliceOfN(rapid.IntRange(0, 20), 0, 9).Draw(t, "workers")
		queue := rapid.SampledFrom([]string{"mail", "default", "gpu"}).Draw(t, "queue")
		portions := job.Split(total, queue, workers)
		if len(portions) != len(workers) {
			t.Fatalf("%d portions for %d workers", len(portions), len(workers))
		}
		sum, able := 0, 0
		for i, p := range portions {
			if p < 0 || p > workers[i] {
				t.Fatalf("%v of %v: portion %d is more than its worker can run", portions, workers, i)
			}
			sum, able = sum+p, able+workers[i]
		}
		if want := min(total, able); sum != want {
			t.Fatalf("%v of %v add up to %d, want %d", portions, workers, sum, want)
		}
		for i := range portions {
			for k := range portions {
				if portions[i] < workers[i] && portions[k] > portions[i]+1 {
					t.Fatalf("%v of %v: %d could run more and has less than %d", portions, workers, i, k)
				}
			}
		}
		if again := job.Split(total, queue, workers); !slices.Equal(again, portions) {
			t.Fatalf("%v and %v of the same", portions, again)
		}
	})
}

// TestJ18_ASmallerTotalMakesNoPortionLarger is what lets workers that have heard of different totals split them at one time.
func TestJ18_ASmallerTotalMakesNoPortionLarger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 60).Draw(t, "total")
		workers := rapid.SliceOfN(rapid.IntRange(0, 20), 0, 9).Draw(t, "workers")
		queue := rapid.SampledFrom([]string{"mail", "default", "gpu"}).Draw(t, "queue")
		less, more := job.Split(total-1, queue, workers), job.Split(total, queue, workers)
		for i := range workers {
			if less[i] > more[i] {
				t.Fatalf("%v of %d and %v of %d: portion %d is larger of the smaller total", less, total-1, more, total, i)
			}
		}
	})
}

func TestJ18_TheRemainderIsSpreadByQueue(t *testing.T) {
	first := map[int]bool{}
	for i := range 50 {
		first[slices.Index(job.Split(1, fmt.Sprint("queue", i), []int{9, 9, 9}), 1)] = true
	}
	if len(first) != 3 {
		t.Errorf("the remainder of 50 queues went to %d of 3 workers", len(first))
	}
}
