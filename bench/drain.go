package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// fillTime is how long a backlog is written: on a slow machine it is shorter than asked for.
	fillTime  = 2500 * time.Millisecond
	fillChunk = 2000
	// drainTime is how long a drain is watched. A system that is not through its backlog by then is measured by what
	// it has committed.
	drainTime = 3500 * time.Millisecond
)

// drains is a contender that works off a backlog of jobs that do nothing.
func drains(name string, n needs, open opener, workers, backlog int) contender {
	return drainsWith(name, n, open, workers, backlog, func() {})
}

// drainsWith gives the jobs something to do.
func drainsWith(name string, n needs, open opener, workers, backlog int, body func()) contender {
	return contender{
		name:    name,
		needs:   n,
		prepare: fill(open, backlog),
		measure: func(ctx context.Context, at place) (measurement, error) {
			q, err := open(ctx, at)
			if err != nil {
				return measurement{}, err
			}
			filled, err := q.Left(ctx)
			if err != nil {
				return measurement{}, err
			}
			m, left, err := workOff(ctx, q, workers, filled, body, drainTime)
			if err != nil || left > 0 {
				return m, err // and the process ends: nobody waits for workers that are in the midst of it
			}
			return m, q.Close()
		},
	}
}

// fill writes the backlog.
func fill(open opener, backlog int) func(context.Context, place) error {
	return func(ctx context.Context, at place) error {
		q, err := open(ctx, at)
		if err != nil {
			return err
		}
		begin := time.Now()
		for filled := 0; filled < backlog && time.Since(begin) < fillTime; filled += fillChunk {
			if err := q.Fill(ctx, payloads(min(fillChunk, backlog-filled))); err != nil {
				return err
			}
		}
		return q.Close()
	}
}

// workOff lets a system run until nothing is left, and stops it, or until time is up. The clock runs from the call
// that starts the workers until the store says that the last job is committed.
func workOff(ctx context.Context, q queue, workers, backlog int, body func(), limit time.Duration) (m measurement, left int, err error) {
	var handled atomic.Int64
	all := make(chan struct{})
	begin, cpu := time.Now(), startCPU()
	stop, err := q.Work(ctx, workers, func(payload) {
		body()
		if handled.Add(1) == int64(backlog) {
			close(all)
		}
	})
	if err != nil {
		return measurement{}, 0, err
	}
	left, err = await(ctx, q, all, limit)
	if err != nil {
		return measurement{}, 0, err
	}
	m = rate(backlog-left, time.Since(begin), cpu)
	switch left {
	case backlog:
		return measurement{}, left, errors.Join(fmt.Errorf("nothing was done in %v", limit), stop())
	case 0:
		return m, 0, stop()
	default:
		return m, left, nil
	}
}

// await waits until all handlers have run and then asks the store until the last finish is committed: asked earlier,
// it would be slowed down by the asking.
func await(ctx context.Context, q queue, all <-chan struct{}, limit time.Duration) (left int, err error) {
	timeUp := time.NewTimer(limit)
	defer timeUp.Stop()
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-timeUp.C:
		return q.Left(ctx)
	case <-all:
	}
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		left, err := q.Left(ctx)
		if err != nil || left == 0 {
			return left, err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-timeUp.C:
			return left, nil
		case <-look.C:
		}
	}
}

// cpuClock remembers what the process had spent.
type cpuClock struct {
	at time.Duration
	ok bool
}

func startCPU() cpuClock {
	at, ok := cpuTime()
	return cpuClock{at, ok}
}

// rate turns a count into a measurement.
func rate(done int, elapsed time.Duration, cpu cpuClock) measurement {
	m := measurement{PerSecond: new(float64(done) / elapsed.Seconds()), Done: done}
	if now, ok := cpuTime(); ok && cpu.ok && done > 0 {
		m.CPU = new(float64((now - cpu.at).Microseconds()) / float64(done))
	}
	return m
}
