package batch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"text/tabwriter"
	"time"

	"github.com/pawlwork/pawl/batch"
)

// The world of the simulator: a transaction under a row lock costs 5 ms plus a little per item, each key is a row, and
// items arrive for 20 keys at 1,500 a second in the mean.
const (
	simulatedItems = 1000
	simulatedKeys  = 20
	simulatedRate  = 1500
	perBatch       = 5 * time.Millisecond
	perItem        = 50 * time.Microsecond
)

// load is a seeded sequence of arrivals.
type load struct {
	name string
	gaps func(*rand.Rand) func() time.Duration
	keys func(*rand.Rand) func() uint64
}

// poisson arrivals do not know of each other.
func poisson(r *rand.Rand) func() time.Duration {
	return func() time.Duration { return time.Duration(r.ExpFloat64() * float64(time.Second) / simulatedRate) }
}

// bursty arrivals come 50 at the same moment, and then not for a while.
func bursty(r *rand.Rand) func() time.Duration {
	n := 0
	return func() time.Duration {
		if n++; n%50 != 0 {
			return 0
		}
		return time.Duration(r.ExpFloat64() * 50 * float64(time.Second) / simulatedRate)
	}
}

func uniform(r *rand.Rand) func() uint64 {
	return func() uint64 { return r.Uint64N(simulatedKeys) }
}

// zipf makes the first key the busiest by far.
func zipf(r *rand.Rand) func() uint64 { return rand.NewZipf(r, 1.2, 1, simulatedKeys-1).Uint64 }

type outcome struct {
	p50, p99 time.Duration // from Do to its answer
	size     float64       // items in a batch, in the mean
	rate     float64       // items a second, from the first arrival to the last answer
	refused  int64         // items that found their batch full
}

// simulate runs a load through a batcher. It must be called in a bubble: all its time is virtual. With a pace above 0 the
// batches of a key must start that far apart, and the items they have no room for are refused; otherwise nobody is.
func simulate(t *testing.T, l load, options batch.Options, pace time.Duration) outcome {
	r := rand.New(rand.NewPCG(20, 26))
	gap, key := l.gaps(r), l.keys(r)
	var batches, refused atomic.Int64
	var began [simulatedKeys]time.Time // each read and written by the one batch of its key
	options.Concurrency = 1            // one row lock
	if pace == 0 {
		options.MaxWaiting = simulatedItems
	}
	b := batch.New(func(_ context.Context, key uint64, in []int) ([]int, error) {
		batches.Add(1)
		if apart := time.Since(began[key]); apart < pace {
			t.Errorf("%s: batches of key %d began %v apart, want at least %v", l.name, key, apart, pace)
		}
		began[key] = time.Now()
		time.Sleep(perBatch + time.Duration(len(in))*perItem)
		return in, nil
	}, options)

	const none = -1
	latencies := make([]time.Duration, simulatedItems)
	start := time.Now()
	var group sync.WaitGroup
	for i := range simulatedItems {
		time.Sleep(gap())
		k := key()
		arrived := time.Now()
		group.Go(func() {
			switch _, err := b.Do(t.Context(), k, i); {
			case pace > 0 && errors.Is(err, batch.ErrQueueFull):
				refused.Add(1)
				latencies[i] = none
				return
			case err != nil:
				t.Error(err)
			}
			latencies[i] = time.Since(arrived)
		})
	}
	group.Wait()
	took := time.Since(start)
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	latencies = slices.DeleteFunc(latencies, func(l time.Duration) bool { return l == none })
	slices.Sort(latencies)
	return outcome{
		p50:  latencies[len(latencies)/2],
		p99:  latencies[len(latencies)*99/100],
		size: float64(simulatedItems-refused.Load()) / float64(batches.Load()),
		rate: float64(simulatedItems-refused.Load()) / took.Seconds(),

		refused: refused.Load(),
	}
}

// TestSimulator prints how the policies fare under different loads:
//
//	go test ./batch -run Simulator -v
//
// It fails if a policy gets less done than no batching at all where one key is too busy for that, if Immediate
// answers later than Duration does, if batches under a hard pace start too soon, or if a busy key is not held back by it.
func TestSimulator(t *testing.T) {
	policies := []struct {
		name    string
		options batch.Options
		pace    time.Duration
	}{
		{"no batching", batch.Options{MaxBatch: 1}, 0},
		{"Immediate()", batch.Options{Policy: batch.Immediate()}, 0},
		{"Balanced(5)", batch.Options{Policy: batch.Balanced(5)}, 0},
		{"Duration(20ms)", batch.Options{Policy: batch.Duration(20 * time.Millisecond)}, 0},
		{"Size(), MaxBatch 20", batch.Options{Policy: batch.Size(), MaxBatch: 20, MaxWait: 100 * time.Millisecond}, 0},
		{"Duration(20ms).RejectWhenFull(), MaxBatch 4", batch.Options{Policy: batch.Duration(20 * time.Millisecond).RejectWhenFull(), MaxBatch: 4}, 20 * time.Millisecond},
	}
	loads := []load{
		{"poisson, uniform keys", poisson, uniform},
		{"poisson, zipf keys", poisson, zipf},
		{"bursty, uniform keys", bursty, uniform},
		{"bursty, zipf keys", bursty, zipf},
	}
	table := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "load\tpolicy\tp50\tp99\titems/batch\titems/s\trefused\t")
	for _, l := range loads {
		outcomes := make(map[string]outcome)
		for _, p := range policies {
			synctest.Test(t, func(t *testing.T) {
				o := simulate(t, l, p.options, p.pace)
				outcomes[p.name] = o
				fmt.Fprintf(table, "%s\t%s\t%.1f ms\t%.1f ms\t%.1f\t%.0f\t%d\t\n", l.name, p.name,
					o.p50.Seconds()*1000, o.p99.Seconds()*1000, o.size, o.rate, o.refused)
			})
		}
		for _, p := range policies[1:] {
			if p.pace > 0 {
				if o := outcomes[p.name]; l.name == "poisson, zipf keys" && o.refused == 0 {
					t.Errorf("%s, %s: nothing was refused", l.name, p.name)
				}
				continue
			}
			if none := outcomes["no batching"]; l.name == "poisson, zipf keys" && outcomes[p.name].rate <= none.rate {
				t.Errorf("%s, %s: %.0f items a second, not more than %.0f without batching", l.name, p.name, outcomes[p.name].rate, none.rate)
			}
		}
		if at, after := outcomes["Immediate()"].p50, outcomes["Duration(20ms)"].p50; at >= after {
			t.Errorf("%s: the median of Immediate, %v, is not below that of Duration, %v", l.name, at, after)
		}
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
}
