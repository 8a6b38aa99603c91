package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// besideTime is how long a process works on what it enqueues itself.
const besideTime = 4 * time.Second

// worksBeside lets one process enqueue one job at a time from some goroutines and work on them with some workers, and
// counts how many handlers have run.
func worksBeside(open opener, callers, workers int) func(context.Context, place) (measurement, error) {
	return func(ctx context.Context, at place) (measurement, error) {
		q, err := open(ctx, at)
		if err != nil {
			return measurement{}, err
		}
		var handled atomic.Int64
		stop, err := q.Work(ctx, workers, func(payload) { handled.Add(1) })
		if err != nil {
			return measurement{}, err
		}
		failed := make([]error, callers)
		var wait sync.WaitGroup
		begin, cpu := time.Now(), startCPU()
		for i := range callers {
			wait.Go(func() {
				for seq := int64(i); time.Since(begin) < besideTime && failed[i] == nil; seq += int64(callers) {
					failed[i] = q.Enqueue(ctx, newPayload(seq))
				}
			})
		}
		wait.Wait()
		m := rate(int(handled.Load()), time.Since(begin), cpu)
		return m, errors.Join(errors.Join(failed...), stop())
	}
}

func postgresDrainBeside() work {
	const callers, workers, held = 16, 100, "pawl, snapshot held"
	return work{
		name: "postgres-drain-beside",
		what: "16 goroutines enqueue, 100 workers of the same process work them off, while another connection holds a snapshot, Postgres",
		unit: perSecond,
		systems: []contender{
			{name: held, needs: pawlOnPostgres, measure: underSnapshot(worksBeside(pawlPostgres, callers, workers))},
			{name: pawlName, needs: pawlOnPostgres, measure: worksBeside(pawlPostgres, callers, workers)},
		},
		targets: []target{{against: "itself without the snapshot", ours: held, theirs: pawlName, unit: perSecond, atLeast: 0.9, aim: 1}},
	}
}

// underSnapshot measures while a snapshot is held.
func underSnapshot(measure func(context.Context, place) (measurement, error)) func(context.Context, place) (measurement, error) {
	return func(ctx context.Context, at place) (measurement, error) {
		release, err := holdSnapshot(ctx, at)
		if err != nil {
			return measurement{}, err
		}
		m, err := measure(ctx, at)
		return m, errors.Join(err, release())
	}
}
