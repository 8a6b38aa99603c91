package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// enqueueTime is how long callers enqueue.
const enqueueTime = 2 * time.Second

// enqueueOne measures callers that each enqueue one job at a time and wait for it to be durable.
func enqueueOne(open opener, callers int) func(context.Context, place) (measurement, error) {
	return func(ctx context.Context, at place) (m measurement, err error) {
		q, err := open(ctx, at)
		if err != nil {
			return measurement{}, err
		}
		defer func() { err = errors.Join(err, q.Close()) }()
		// One call opens connections and prepares statements; it is not measured.
		if err := q.Enqueue(ctx, newPayload(0)); err != nil {
			return measurement{}, err
		}
		taken := make([][]time.Duration, callers)
		failed := make([]error, callers)
		var wait sync.WaitGroup
		begin, cpu := time.Now(), startCPU()
		for i := range callers {
			wait.Go(func() {
				for seq := int64(i); ; seq += int64(callers) {
					before := time.Now()
					if before.Sub(begin) >= enqueueTime {
						return
					}
					if failed[i] = q.Enqueue(ctx, newPayload(seq)); failed[i] != nil {
						return
					}
					taken[i] = append(taken[i], time.Since(before))
				}
			})
		}
		wait.Wait()
		elapsed := time.Since(begin)
		if err := errors.Join(failed...); err != nil {
			return measurement{}, err
		}
		calls := slices.Concat(taken...)
		m = rate(len(calls), elapsed, cpu)
		m.P50, m.P99 = percentiles(calls)
		return m, nil
	}
}

// percentiles returns the 50th and the 99th, in milliseconds. It sorts the durations.
func percentiles(taken []time.Duration) (half, most *float64) {
	if len(taken) == 0 {
		return nil, nil
	}
	slices.Sort(taken)
	return new(inMilliseconds(taken[len(taken)/2])), new(inMilliseconds(taken[len(taken)*99/100]))
}
