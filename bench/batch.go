package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl/batch"
)

const (
	batchCallers = 64
	batchTime    = 2 * time.Second
)

// batchDo64 compares batch.Do with what one writes instead of it, around a function that costs nothing: all that is
// left is what handing items over and answers back costs.
func batchDo64() work {
	return work{
		name: "batch-do-64",
		what: "batch.Do from 64 goroutines, one key",
		unit: perSecond,
		systems: []contender{
			{name: pawlName, measure: func(ctx context.Context, _ place) (measurement, error) {
				b := batch.New(func(_ context.Context, _ string, in []int64) ([]int64, error) { return double(in), nil },
					batch.Options{MaxBatch: batchCallers, Concurrency: 1})
				m, err := callAll(func(n int64) (int64, error) { return b.Do(ctx, "key", n) })
				return m, errors.Join(err, b.Close(ctx))
			}},
			{name: "channel loop", measure: func(ctx context.Context, _ place) (measurement, error) {
				l := startLoop()
				defer l.stop()
				return callAll(func(n int64) (int64, error) { return l.do(ctx, n) })
			}},
		},
		targets: []target{faster("a channel loop written for it", "channel loop", 1, 3)},
	}
}

func double(in []int64) []int64 {
	out := make([]int64, len(in))
	for i := range in {
		out[i] = 2 * in[i]
	}
	return out
}

// callAll calls from all goroutines until time is up, and checks every answer.
func callAll(call func(int64) (int64, error)) (measurement, error) {
	var calls atomic.Int64
	failed := make([]error, batchCallers)
	var wait sync.WaitGroup
	begin, cpu := time.Now(), startCPU()
	for i := range failed {
		wait.Go(func() {
			n := int64(0)
			// The clock is read once in a while only: it costs as much as a tenth of a call.
			for ; n%64 != 0 || time.Since(begin) < batchTime; n++ {
				out, err := call(n)
				if err == nil && out != 2*n {
					err = errors.New("an answer went to the wrong caller")
				}
				if err != nil {
					failed[i] = err
					break
				}
			}
			calls.Add(n)
		})
	}
	wait.Wait()
	return rate(int(calls.Load()), time.Since(begin), cpu), errors.Join(failed...)
}

// loop is what one writes without the package: a goroutine takes what has come, up to a limit, and answers each caller
// on a channel of the caller's. It knows no keys, limits, panics or errors.
type loop struct {
	requests chan request
	ended    chan struct{}
}

type request struct {
	in  int64
	out chan int64
}

func startLoop() *loop {
	l := &loop{requests: make(chan request, batchCallers), ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		held := make([]request, 0, batchCallers)
		for first := range l.requests {
			held = append(held[:0], first)
			for more := true; more && len(held) < batchCallers; {
				select {
				case r, open := <-l.requests:
					if more = open; open {
						held = append(held, r)
					}
				default:
					more = false
				}
			}
			in := make([]int64, len(held))
			for i, r := range held {
				in[i] = r.in
			}
			for i, out := range double(in) {
				held[i].out <- out
			}
		}
	}()
	return l
}

func (l *loop) do(ctx context.Context, in int64) (int64, error) {
	r := request{in, make(chan int64, 1)}
	select {
	case l.requests <- r:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	select {
	case out := <-r.out:
		return out, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (l *loop) stop() {
	close(l.requests)
	<-l.ended
}
