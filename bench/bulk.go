package main

import (
	"context"
	"errors"
	"time"
)

const (
	bulkTime  = 2 * time.Second
	bulkChunk = 10_000 // jobs handed to a system at once; it cuts them as it likes best
)

// bulk measures one caller that enqueues as many jobs as it can, by the fastest way the system documents.
func bulk(open opener) func(context.Context, place) (measurement, error) {
	return func(ctx context.Context, at place) (m measurement, err error) {
		q, err := open(ctx, at)
		if err != nil {
			return measurement{}, err
		}
		defer func() { err = errors.Join(err, q.Close()) }()
		jobs := payloads(bulkChunk)
		if err := q.Fill(ctx, jobs[:1]); err != nil {
			return measurement{}, err
		}
		begin, cpu := time.Now(), startCPU()
		done := 0
		for time.Since(begin) < bulkTime {
			if err := q.Fill(ctx, jobs); err != nil {
				return measurement{}, err
			}
			done += len(jobs)
		}
		return rate(done, time.Since(begin), cpu), nil
	}
}
