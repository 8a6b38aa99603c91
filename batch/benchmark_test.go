package batch_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl/batch"
)

// channelLoop is what one writes without this package: one goroutine that takes what has come, up to a limit,
// processes it, and answers each caller on the caller's channel. It has no keys, no limits and no panics.
type channelLoop struct {
	requests chan request
	stopped  chan struct{}
}

type request struct {
	in    int
	reply chan reply
}

type reply struct {
	out int
	err error
}

func startChannelLoop(most int, process func(ctx context.Context, in []int) ([]int, error)) *channelLoop {
	l := &channelLoop{requests: make(chan request, most), stopped: make(chan struct{})}
	go func() {
		defer close(l.stopped)
		var held []request
		for first := range l.requests {
			held = append(held[:0], first)
		gather:
			for len(held) < most {
				select {
				case r, ok := <-l.requests:
					if !ok {
						break gather
					}
					held = append(held, r)
				default:
					break gather
				}
			}
			in := make([]int, len(held))
			for i, r := range held {
				in[i] = r.in
			}
			outs, err := process(context.Background(), in)
			for i, r := range held {
				if err != nil {
					r.reply <- reply{err: err}
					continue
				}
				r.reply <- reply{out: outs[i]}
			}
		}
	}()
	return l
}

func (l *channelLoop) do(ctx context.Context, in int) (int, error) {
	r := request{in: in, reply: make(chan reply, 1)}
	select {
	case l.requests <- r:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	select {
	case a := <-r.reply:
		return a.out, a.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (l *channelLoop) stop() { close(l.requests); <-l.stopped }

const callers = 64

// fromCallers spreads b.N calls over 64 goroutines.
func fromCallers(b *testing.B, call func(n int) error) {
	b.ReportAllocs()
	var next atomic.Int64
	var group sync.WaitGroup
	b.ResetTimer()
	for range callers {
		group.Go(func() {
			for {
				n := int(next.Add(1))
				if n > b.N {
					return
				}
				if err := call(n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// A process function either costs nothing, which shows what the batcher costs, or waits as for a commit, which shows
// what its batches are worth.
var costs = []struct {
	name string
	wait time.Duration
}{{"cost=none", 0}, {"cost=100us", 100 * time.Microsecond}}

func double(in []int, wait time.Duration) ([]int, error) {
	if wait > 0 {
		time.Sleep(wait) // stimulus: a commit that takes its time
	}
	outs := make([]int, len(in))
	for i := range in {
		outs[i] = 2 * in[i]
	}
	return outs, nil
}

var contexts = []struct {
	name string
	make func() (context.Context, context.CancelFunc)
}{
	{"ctx=background", func() (context.Context, context.CancelFunc) { return context.Background(), func() {} }},
	{"ctx=cancellable", func() (context.Context, context.CancelFunc) { return context.WithCancel(context.Background()) }},
}

func BenchmarkDo64OneKey(b *testing.B) {
	for _, cost := range costs {
		for _, kind := range contexts {
			b.Run(cost.name+"/"+kind.name+"/system=batch", func(b *testing.B) {
				ctx, cancel := kind.make()
				defer cancel()
				var batches atomic.Int64
				x := batch.New(func(_ context.Context, _ string, in []int) ([]int, error) {
					batches.Add(1)
					return double(in, cost.wait)
				}, batch.Options{MaxBatch: callers, Concurrency: 1})
				fromCallers(b, func(n int) error { _, err := x.Do(ctx, "key", n); return err })
				b.ReportMetric(float64(b.N)/float64(batches.Load()), "items/batch")
				if err := x.Close(context.Background()); err != nil {
					b.Fatal(err)
				}
			})
			b.Run(cost.name+"/"+kind.name+"/system=channel-loop", func(b *testing.B) {
				ctx, cancel := kind.make()
				defer cancel()
				var batches atomic.Int64
				l := startChannelLoop(callers, func(_ context.Context, in []int) ([]int, error) {
					batches.Add(1)
					return double(in, cost.wait)
				})
				fromCallers(b, func(n int) error { _, err := l.do(ctx, n); return err })
				b.ReportMetric(float64(b.N)/float64(batches.Load()), "items/batch")
				l.stop()
			})
		}
	}
}

// On 1,000 keys items hardly ever meet. The channel loops are one goroutine per key that stays for ever; the batcher has
// none for a key that is idle.
func BenchmarkDo64ThousandKeys(b *testing.B) {
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = "key-" + strconv.Itoa(i)
	}
	for _, kind := range contexts {
		b.Run(kind.name+"/system=batch", func(b *testing.B) {
			ctx, cancel := kind.make()
			defer cancel()
			x := batch.New(func(_ context.Context, _ string, in []int) ([]int, error) {
				return double(in, 0)
			}, batch.Options{})
			fromCallers(b, func(n int) error { _, err := x.Do(ctx, keys[n*7919%len(keys)], n); return err })
			if err := x.Close(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
		b.Run(kind.name+"/system=channel-loops", func(b *testing.B) {
			ctx, cancel := kind.make()
			defer cancel()
			loops := make(map[string]*channelLoop)
			for _, key := range keys {
				loops[key] = startChannelLoop(callers, func(_ context.Context, in []int) ([]int, error) { return double(in, 0) })
			}
			fromCallers(b, func(n int) error { _, err := loops[keys[n*7919%len(keys)]].do(ctx, n); return err })
			for _, l := range loops {
				l.stop()
			}
		})
	}
}

// BenchmarkDoAlone is one caller with nobody to share a batch with: what an idle batcher adds to a call.
func BenchmarkDoAlone(b *testing.B) {
	b.ReportAllocs()
	x := batch.New(func(_ context.Context, _ string, in []int) ([]int, error) { return double(in, 0) }, batch.Options{})
	for b.Loop() {
		if _, err := x.Do(context.Background(), "key", 1); err != nil {
			b.Fatal(err)
		}
	}
	if err := x.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}
