//go:build soak

package fault

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
)

// keyedQueue is where the jobs of tenants wait.
const keyedQueue = "tenants"

// serve runs an engine of its own with 20 slots for jobs of keys, which take a millisecond each. began is told of each
// start. The function that is returned stops it.
func (g *ground) serve(limit pawl.Limit, began func(key string)) (e *pawl.Engine, stop func()) {
	g.t.Helper()
	c := config()
	limit.Name, limit.Queue, limit.PerKey = keyedQueue, keyedQueue, true
	c.Queues, c.Limits = pawl.Queues{keyedQueue: {Workers: 20}}, []pawl.Limit{limit}
	e, err := pawl.Open(g.t.Context(), g.address, c)
	if err != nil {
		g.t.Fatal(err)
	}
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Keyed]) error {
		began(pawl.InfoFrom(ctx).Key)
		time.Sleep(time.Duration(j.Args.Milliseconds) * time.Millisecond) // stimulus: the work
		return nil
	})
	ctx, cancel := context.WithCancel(g.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	return e, sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			g.t.Error(err)
		}
		if err := e.Close(); err != nil {
			g.t.Error(err)
		}
	})
}

// keyedJobs hands in jobs of a key.
func (g *ground) keyedJobs(e *pawl.Engine, key string, jobs int) {
	g.t.Helper()
	const portion = 1_000
	for n := 0; n < jobs; n += portion {
		items := make([]pawl.Item, min(portion, jobs-n))
		for i := range items {
			items[i] = pawl.NewItem(Keyed{N: n + i, Milliseconds: 1}, pawl.Queue(keyedQueue), pawl.Key(key))
		}
		if _, err := e.EnqueueMany(g.t.Context(), items...); err != nil {
			g.t.Fatal(err)
		}
	}
}

// TestSoak_J19_ASmallTenantBesideALargeOne hands in 100 jobs of a tenant again and again, first alone, then while 100,000
// of another wait. Beside them its last job starts within twice the time.
func TestSoak_J19_ASmallTenantBesideALargeOne(t *testing.T) {
	for name, on := range map[string]func(*testing.T) *ground{"sqlite": onSQLite, "postgres": onPostgres} {
		t.Run(name, func(t *testing.T) {
			const large, small, rounds = 100_000, 100, 21
			g := on(t)
			var larges, smalls atomic.Int64
			last := make(chan time.Time, 1)
			e, stop := g.serve(pawl.Limit{}, func(key string) {
				switch {
				case key == "large":
					larges.Add(1)
				case smalls.Add(1)%small == 0:
					last <- time.Now()
				}
			})
			defer stop()
			// until is how long it is until the last job of the small tenant starts: the middle of some rounds.
			until := func() time.Duration {
				var took []time.Duration
				for range rounds {
					time.Sleep(100 * time.Millisecond) // stimulus: it comes now and then
					begin := time.Now()
					g.keyedJobs(e, "small", small)
					took = append(took, (<-last).Sub(begin))
				}
				slices.Sort(took)
				t.Logf("from %v to %v", took[0], took[rounds-1])
				return took[rounds/2]
			}
			until() // to get warm
			alone := until()

			if err := e.Queue(keyedQueue).Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			g.keyedJobs(e, "large", large)
			if err := e.Queue(keyedQueue).Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			beside := until()
			waiting := large - larges.Load()
			t.Logf("the last of %d jobs started after %v, alone after %v: %.2f, want at most 2 (of %d rounds); %d of %d others still waited",
				small, beside, alone, float64(beside)/float64(alone), rounds, waiting, large)
			if beside > 2*alone {
				t.Errorf("the last of %d jobs started after %v, alone after %v", small, beside, alone)
			}
			if waiting <= 0 || waiting == large {
				t.Errorf("%d of %d jobs of the other waited at the end: nothing was tried", waiting, large)
			}
		})
	}
}

// TestSoak_J19_WeightsShareTheSlots lets three engines, each on a store of its own, work off the jobs of two tenants with
// the weights 3 and 1. While both wait three jobs of the one start for each of the other, in each part of the time.
func TestSoak_J19_WeightsShareTheSlots(t *testing.T) {
	for name, on := range map[string]func(*testing.T) *ground{"sqlite": onSQLite, "postgres": onPostgres} {
		t.Run(name, func(t *testing.T) {
			const each, part = 24_000, 4_000
			g := on(t)
			sender, err := pawl.Open(t.Context(), g.address, pawl.Config{Limits: []pawl.Limit{{Name: keyedQueue, Queue: keyedQueue, PerKey: true}}})
			if err != nil {
				t.Fatal(err)
			}
			defer sender.Close()
			left := map[string]int{"heavy": each, "light": each}
			for key, jobs := range left {
				g.keyedJobs(sender, key, jobs)
			}

			var mu sync.Mutex
			var started []string        // keys, in order
			none := make(chan struct{}) // of one of them waits
			for range 3 {
				_, stop := g.serve(pawl.Limit{Weights: map[string]int{"heavy": 3}}, func(key string) {
					mu.Lock()
					defer mu.Unlock()
					if left["heavy"] == 0 || left["light"] == 0 {
						return
					}
					started = append(started, key)
					if left[key]--; left[key] == 0 {
						close(none)
					}
				})
				defer stop()
			}
			select {
			case <-none:
			case <-time.After(awaitLimit):
				t.Fatal("both have jobs left")
			}
			mu.Lock()
			defer mu.Unlock()
			// Without the beginning, where not all of them are at work, and the end, where few of one are left.
			between := started[part : len(started)*9/10]
			count := func(list []string) float64 {
				h := 0
				for _, key := range list {
					if key == "heavy" {
						h++
					}
				}
				return float64(h) / float64(max(len(list)-h, 1))
			}
			ratio := count(between)
			t.Logf("of %d starts %.2f were of the tenant with weight 3 for each of that with weight 1", len(between), ratio)
			if ratio < 2.7 || ratio > 3.3 {
				t.Errorf("the ratio is %.2f, want 3 ± 10 %%", ratio)
			}
			for list := range slices.Chunk(between[:len(between)/part*part], part) {
				if ratio := count(list); ratio < 2.7 || ratio > 3.3 {
					t.Errorf("of %d starts in a row the ratio is %.2f, want 3 ± 10 %%", part, ratio)
				}
			}
		})
	}
}
