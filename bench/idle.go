package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	idleTime    = 4 * time.Second // at most
	idleJobs    = 150
	idleWorkers = 10
	// idlePause is about how long a system rests between two jobs: long enough that nothing of the last one is
	// still under way, and never the same, so that no poll falls into step with it.
	idlePause = 20 * time.Millisecond
)

// idle measures how long a job waits that meets an idle system: from the call that enqueues it until its handler begins.
func idle(open opener) func(context.Context, place) (measurement, error) {
	return idleFrom(open, false)
}

// idleOther is idle where another process enqueues than the one that works. The two share a process here, and nothing else.
func idleOther(open opener) func(context.Context, place) (measurement, error) {
	return idleFrom(open, true)
}

func idleFrom(open opener, other bool) func(context.Context, place) (measurement, error) {
	return func(ctx context.Context, at place) (m measurement, err error) {
		q, err := open(ctx, at)
		if err != nil {
			return measurement{}, err
		}
		defer func() { err = errors.Join(err, q.Close()) }()
		sender := q
		if other {
			if sender, err = open(ctx, at); err != nil {
				return measurement{}, err
			}
			defer func() { err = errors.Join(err, sender.Close()) }()
		}
		type start struct {
			seq int64
			at  time.Time
		}
		started := make(chan start, idleJobs)
		stop, err := q.Work(ctx, idleWorkers, func(p payload) { started <- start{p.Seq, time.Now()} })
		if err != nil {
			return measurement{}, err
		}
		defer func() { err = errors.Join(err, stop()) }()
		var waits []time.Duration
		const warm = 10 // first jobs that only warm up
		end := time.Now().Add(idleTime)
		for seq := int64(0); seq < warm+idleJobs && (len(waits) == 0 || time.Now().Before(end)); seq++ {
			if err := pause(ctx, idlePause/2+rand.N(idlePause)); err != nil {
				return measurement{}, err
			}
			begin := time.Now()
			if err := sender.Enqueue(ctx, newPayload(seq)); err != nil {
				return measurement{}, err
			}
			select {
			case s := <-started:
				if s.seq != seq {
					return measurement{}, fmt.Errorf("job %d ran when job %d was enqueued: it ran twice", s.seq, seq)
				}
				if seq >= warm {
					waits = append(waits, s.at.Sub(begin))
				}
			case <-ctx.Done():
				return measurement{}, fmt.Errorf("waiting for job %d: %w", seq, ctx.Err())
			}
		}
		m.P50, m.P99 = percentiles(waits)
		return m, nil
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
