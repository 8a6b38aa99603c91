package pawl_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/pawltest"
)

type importRows struct{ N int }

func (importRows) Kind() string { return "import" }

// journal is what handlers of a test did, by key.
type keyJournal struct {
	sync.Mutex
	running, most map[string]int
	order         map[string][]int
	all, mostAll  int
}

func (k *keyJournal) begin(key string, n int) {
	k.Lock()
	defer k.Unlock()
	k.running[key]++
	k.all++
	k.most[key], k.mostAll = max(k.most[key], k.running[key]), max(k.mostAll, k.all)
	k.order[key] = append(k.order[key], n)
}

func (k *keyJournal) end(key string) {
	k.Lock()
	defer k.Unlock()
	k.running[key]--
	k.all--
}

// underLimits runs 6 jobs of each of 5 keys under limits, in virtual time.
func underLimits(t *testing.T, limits []pawl.Limit, work func(n int, attempt int) error) *keyJournal {
	t.Helper()
	journal := &keyJournal{running: map[string]int{}, most: map[string]int{}, order: map[string][]int{}}
	pawltest.Run(t, func(e *pawl.Engine) {
		pawl.Handle(e, func(ctx context.Context, j *pawl.Job[importRows]) error {
			key := pawl.InfoFrom(ctx).Key
			journal.begin(key, j.Args.N)
			defer journal.end(key)
			<-time.After(100 * time.Millisecond) // virtual: the work
			return work(j.Args.N, j.Attempt)
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		for n := range 6 {
			for key := range 5 {
				e.Enqueue(importRows{n}, pawl.Key(fmt.Sprint("key-", key)))
			}
		}
		e.RunUntilIdle()
		e.Advance(time.Hour)
	}, pawltest.Config(func(c *pawl.Config) { c.Limits = limits }))
	return journal
}

// What code declares as a limit by key bounds each key, whatever the slots.
func TestJ19_KeysAreBoundedInTheEngine(t *testing.T) {
	got := underLimits(t, []pawl.Limit{{Name: "tenants", Queue: "default", PerKey: true, Concurrent: 2}}, func(int, int) error { return nil })
	for key, most := range got.most {
		if most != 2 || len(got.order[key]) != 6 {
			t.Errorf("%s: at most %d ran at once of %d, want 2 of 6", key, most, len(got.order[key]))
		}
	}
	if len(got.most) != 5 || got.mostAll != 10 {
		t.Errorf("%d keys, at most %d at once; want 5 and all 10 slots", len(got.most), got.mostAll)
	}
}

// Ordered keeps the order of a key through retries.
func TestJ19_OrderedKeepsTheOrderThroughRetries(t *testing.T) {
	got := underLimits(t, []pawl.Limit{{Name: "tenants", Queue: "default", PerKey: true, Concurrent: 1, Ordered: true}}, func(n, attempt int) error {
		if n == 2 && attempt < 3 {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	for key, order := range got.order {
		if want := []int{0, 1, 2, 2, 2, 3, 4, 5}; !slices.Equal(order, want) {
			t.Errorf("%s ran %v, want %v", key, order, want)
		}
	}
}

// A limit on a kind holds for the whole queue.
func TestJ19_AKindIsBoundedInTheEngine(t *testing.T) {
	got := underLimits(t, []pawl.Limit{{Name: "imports", Kind: "imp*", Concurrent: 3}}, func(int, int) error { return nil })
	if got.mostAll != 3 {
		t.Errorf("at most %d ran at once, want 3", got.mostAll)
	}
}

// A rate on a queue lets so many begin, and no more.
func TestJ17_ADeclaredRateBoundsBeginnings(t *testing.T) {
	got := underLimits(t, []pawl.Limit{{Name: "slow", Queue: "default", PerSecond: 1, Burst: 2}}, func(int, int) error { return nil })
	n := 0
	for _, list := range got.order {
		n += len(list)
	}
	if n != 30 || got.mostAll > 2 {
		t.Errorf("%d ran, at most %d at once; want 30 and 2", n, got.mostAll)
	}
}

// An operator's change of a limit is followed while jobs wait, and one that is taken
// away lets them go.
func TestJ30_ALimitChangesWhileJobsWait(t *testing.T) {
	var mu sync.Mutex
	running, most, done := 0, 0, 0
	mosts := []int{}
	change := map[int]int{5: 4, 40: pawl.NoLimit}
	pawltest.Run(t, func(e *pawl.Engine) {
		pawl.Handle(e, func(ctx context.Context, j *pawl.Job[importRows]) error {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			<-time.After(time.Second) // virtual: the work
			to, is := change[j.Args.N]
			if is {
				if err := e.Limit("imports").Set(ctx, pawl.LimitSettings{Concurrent: to}); err != nil {
					return pawl.Dead(err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if is {
				mosts, most = append(mosts, most), 0
			}
			running--
			done++
			return nil
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		for n := range 100 {
			e.Enqueue(importRows{n})
		}
		e.RunUntilIdle()
	}, pawltest.Config(func(c *pawl.Config) {
		c.Limits = []pawl.Limit{{Name: "imports", Kind: "import", Concurrent: 1}}
	}))
	if want := []int{1, 4}; !slices.Equal(mosts, want) || most != 10 || done != 100 {
		t.Errorf("at most %v and then %d ran at once, %d are done; want %v, all 10 slots, and 100", mosts, most, done, want)
	}
}

// A tenant with few jobs beside one with many has half of the slots while it has jobs.
func TestJ19_ASmallTenantIsNotHeldUpByALargeOne(t *testing.T) {
	var mu sync.Mutex
	begun, last := 0, 0
	pawltest.Run(t, func(e *pawl.Engine) {
		pawl.Handle(e, func(ctx context.Context, j *pawl.Job[importRows]) error {
			mu.Lock()
			if begun++; pawl.InfoFrom(ctx).Key == "small" {
				last = begun
			}
			mu.Unlock()
			<-time.After(50 * time.Millisecond) // virtual: the work
			return nil
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		for n := range 1000 {
			e.Enqueue(importRows{n}, pawl.Key("large"))
		}
		for n := range 50 {
			e.Enqueue(importRows{n}, pawl.Key("small"))
		}
		e.RunUntilIdle()
	}, pawltest.Config(func(c *pawl.Config) {
		c.Limits = []pawl.Limit{{Name: "tenants", Queue: "default", PerKey: true}}
	}))
	if begun != 1050 || last > 120 {
		t.Errorf("of %d jobs the last of the small tenant was the %dth to begin, want about the 100th", begun, last)
	}
}

// A job that runs when its limit goes, and fails, is not stranded behind the gate.
func TestJ19_ALimitGoesWhileAJobRuns(t *testing.T) {
	var mu sync.Mutex
	attempts, done, seen := 0, 0, -1
	pawltest.Run(t, func(e *pawl.Engine) {
		pawl.Handle(e, func(ctx context.Context, j *pawl.Job[importRows]) error {
			if j.Args.N == 2 { // the engine goes on running
				<-time.After(30 * time.Minute)
				mu.Lock()
				defer mu.Unlock()
				seen = done
				return nil
			}
			mu.Lock()
			attempts++
			mu.Unlock()
			if j.Attempt == 1 {
				if err := e.Limit("imports").Set(ctx, pawl.LimitSettings{Concurrent: pawl.NoLimit}); err != nil {
					return pawl.Dead(err)
				}
				<-time.After(2 * time.Minute) // virtual: upkeep has put right what waits
				return fmt.Errorf("not yet")
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			return nil
		}, pawl.Timeout(time.Hour))
	}, func(t *testing.T, e *pawltest.Engine) {
		e.Enqueue(importRows{1})
		e.Enqueue(importRows{2})
		e.RunUntilIdle()
	}, pawltest.Config(func(c *pawl.Config) {
		c.Limits = []pawl.Limit{{Name: "imports", Kind: "import", Concurrent: 2}}
	}))
	if seen != 1 {
		t.Errorf("%d attempts, %d done half an hour after the limit was taken away", attempts, seen)
	}
}

// A job waits behind one limit and is bounded by a second: when its own gate is open, the other one is named.
func TestJ19_WhyNamesTheSecondLimit(t *testing.T) {
	inTown(t, func(t *testing.T, at *town) {
		free := make(chan struct{})
		w := at.work(pawl.Config{
			Queues: pawl.Queues{"default": {Workers: 5}},
			Limits: []pawl.Limit{{Name: "all", Queue: "default", Concurrent: 1}, {Name: "tenants", Queue: "default", PerKey: true, Concurrent: 2}},
		}, func(e *pawl.Engine) {
			pawl.Handle(e, func(context.Context, *pawl.Job[Welcome]) error { <-free; return nil })
		})
		defer close(free)
		for _, key := range []string{"acme", "ibis"} {
			r, err := w.Enqueue(t.Context(), Welcome{1}, pawl.Key(key))
			w.must(err)
			soon()
			if key == "ibis" {
				why, err := w.Why(t.Context(), r.ID)
				w.must(err)
				if why.Code != pawl.WhySlot || !strings.HasSuffix(why.String(), "; limit all bounds it too, at most 1 at once") {
					t.Errorf("why: %s %s", why.Code, why)
				}
			}
		}
	})
}
