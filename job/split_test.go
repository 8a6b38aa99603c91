package job_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/job"
)

// crew is workers that share a total.
type crew struct {
	total            int
	queue            string
	workers, weights []int
}

func drawCrew(t *rapid.T) crew {
	c := crew{
		total:   rapid.IntRange(0, 80).Draw(t, "total"),
		workers: rapid.SliceOfN(rapid.IntRange(0, 20), 0, 9).Draw(t, "workers"),
		queue:   rapid.SampledFrom([]string{"mail", "default", "gpu"}).Draw(t, "queue"),
	}
	if rapid.Bool().Draw(t, "weighted") {
		c.weights = rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 1, 2, 3, 4, 7, 1000}), len(c.workers), len(c.workers)).Draw(t, "weights")
	}
	return c
}

func (c crew) split(total int) []int { return job.Split(total, c.queue, c.workers, c.weights) }

func (c crew) weight(i int) int {
	if c.weights == nil || c.weights[i] == 0 {
		return 1
	}
	return c.weights[i]
}

func TestJ18_PortionsAddUpAndStandAsTheWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCrew(t)
		portions := c.split(c.total)
		if len(portions) != len(c.workers) {
			t.Fatalf("%d portions for %d workers", len(portions), len(c.workers))
		}
		sum, able := 0, 0
		for i, p := range portions {
			if p < 0 || p > c.workers[i] {
				t.Fatalf("%v of %+v: portion %d is more than its worker can run", portions, c, i)
			}
			sum, able = sum+p, able+c.workers[i]
		}
		if want := min(c.total, able); sum != want {
			t.Fatalf("%v of %+v add up to %d, want %d", portions, c, sum, want)
		}
		for i := range portions {
			for k := range portions {
				// What k has last must not be due to i: by the weights, i would have it before k.
				if portions[i] < c.workers[i] && (2*portions[k]-1)*c.weight(i) > (2*portions[i]+1)*c.weight(k) {
					t.Fatalf("%v of %+v: %d could run more and has too little beside %d", portions, c, i, k)
				}
			}
		}
		if again := c.split(c.total); !slices.Equal(again, portions) {
			t.Fatalf("%v and %v of the same", portions, again)
		}
	})
}

// TestJ18_WeightsDivideExactly is what can be divided: nobody is bounded by its workers, and each gets its weight's part.
func TestJ18_WeightsDivideExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 40), 1, 8).Draw(t, "weights")
		times := rapid.IntRange(1, 1_000_000).Draw(t, "times")
		total, workers, want := 0, make([]int, len(weights)), make([]int, len(weights))
		for i, w := range weights {
			total, workers[i], want[i] = total+w*times, 100_000_000, w*times
		}
		if got := job.Split(total, "q", workers, weights); !slices.Equal(got, want) {
			t.Fatalf("%d by the weights %v is %v, want %v", total, weights, got, want)
		}
	})
}

// TestJ18_WithoutWeightsPortionsAreEven holds what builds without weights do: they may share with this one.
func TestJ18_WithoutWeightsPortionsAreEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCrew(t)
		c.weights = nil
		even, ones := c.split(c.total), job.Split(c.total, c.queue, c.workers, slices.Repeat([]int{1}, len(c.workers)))
		if !slices.Equal(even, ones) {
			t.Fatalf("%v of %+v, and %v with weights of 1", even, c, ones)
		}
		for i := range even {
			for k := range even {
				if even[i] < c.workers[i] && even[k] > even[i]+1 {
					t.Fatalf("%v of %+v: %d could run more and has less than %d", even, c, i, k)
				}
			}
		}
	})
	for _, x := range []struct {
		total         int
		queue         string
		workers, want []int
	}{
		{8, "mail", []int{9, 9, 9}, []int{3, 2, 3}}, {8, "default", []int{9, 9, 9}, []int{3, 3, 2}}, {11, "gpu", []int{9, 2, 9, 9}, []int{3, 2, 3, 3}},
		{1, "one", []int{1, 1}, []int{0, 1}}, {1, "q", []int{1, 1}, []int{1, 0}}, {7, "gpu", []int{9, 9, 9, 9, 9}, []int{1, 1, 1, 2, 2}},
	} {
		if got := job.Split(x.total, x.queue, x.workers, nil); !slices.Equal(got, x.want) {
			t.Errorf("%d of %s over %v is %v, was %v before there were weights", x.total, x.queue, x.workers, got, x.want)
		}
	}
}

// TestJ18_SlotsAreHandedOutInOneOrder is the rule itself, slot by slot.
func TestJ18_SlotsAreHandedOutInOneOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCrew(t)
		model := make([]int, len(c.workers))
		given := map[float64]int{} // slots of a moment that are gone
		for range c.total {
			best, at := -1, 0.0
			for i := range model {
				moment := (float64(model[i]) + 0.5) / float64(c.weight(i))
				if model[i] < c.workers[i] && (best < 0 || moment < at) {
					best, at = i, moment
				}
			}
			if best < 0 {
				break
			}
			given[at]++
			model[best]++
		}
		got := c.split(c.total)
		// Of a moment whose slots are not all handed out, the queue decides whose they are: as many of them are.
		count := func(portions []int) map[float64]int {
			at := map[float64]int{}
			for i, p := range portions {
				for k := range p {
					at[(float64(k)+0.5)/float64(c.weight(i))]++
				}
			}
			return at
		}
		if !maps.Equal(count(got), given) {
			t.Fatalf("%v of %+v, slot by slot it is %v", got, c, model)
		}
	})
}

// TestJ18_ASmallerTotalMakesNoPortionLarger is what lets workers that have heard of different totals split them at one time.
func TestJ18_ASmallerTotalMakesNoPortionLarger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCrew(t)
		c.total++
		less, more := c.split(c.total-1), c.split(c.total)
		for i := range c.workers {
			if less[i] > more[i] {
				t.Fatalf("%v of one less and %v of %+v: portion %d is larger of the smaller total", less, more, c, i)
			}
		}
	})
}

func TestJ18_TheRemainderIsSpreadByQueue(t *testing.T) {
	first := map[int]bool{}
	for i := range 50 {
		first[slices.Index(job.Split(1, fmt.Sprint("queue", i), []int{9, 9, 9}, nil), 1)] = true
	}
	if len(first) != 3 {
		t.Errorf("the remainder of 50 queues went to %d of 3 workers", len(first))
	}
}
