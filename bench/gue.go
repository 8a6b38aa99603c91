package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/vgarvardt/gue/v5"
	"github.com/vgarvardt/gue/v5/adapter/pgxv5"
)

// gueSchema is the one table that gue asks its users to make, with its index.
const gueSchema = `
create table if not exists gue_jobs (
	job_id      text        not null primary key,
	priority    smallint    not null,
	run_at      timestamptz not null,
	job_type    text        not null,
	args        bytea       not null,
	error_count integer     not null default 0,
	last_error  text,
	queue       text        not null,
	created_at  timestamptz not null,
	updated_at  timestamptz not null
);
create index if not exists idx_gue_jobs_selector on gue_jobs (queue, run_at, priority);`

// gueBulk is how many jobs one statement holds: its parameters are bounded by the protocol (8 per job, 65,535 in all).
const gueBulk = 500

// gueQueue is gue on pgx. Each of its workers holds a transaction while it runs a job, so it gets a connection each.
type gueQueue struct {
	pool   *pgxpool.Pool
	client *gue.Client
}

func openGue(ctx context.Context, at place) (queue, error) {
	pool, err := openPool(ctx, at, 110)
	if err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, gueSchema); err != nil {
		pool.Close()
		return nil, err
	}
	client, err := gue.NewClient(pgxv5.NewConnPool(pool))
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &gueQueue{pool, client}, nil
}

func gueJob(p payload) (*gue.Job, error) {
	args, err := json.Marshal(p)
	return &gue.Job{Type: jobKind, Queue: jobKind, Args: args}, err
}

func (q *gueQueue) Enqueue(ctx context.Context, p payload) error {
	j, err := gueJob(p)
	if err != nil {
		return err
	}
	return q.client.Enqueue(ctx, j)
}

func (q *gueQueue) Fill(ctx context.Context, ps []payload) error {
	for len(ps) > 0 {
		n := min(len(ps), gueBulk)
		batch := make([]*gue.Job, n)
		for i, p := range ps[:n] {
			var err error
			if batch[i], err = gueJob(p); err != nil {
				return err
			}
		}
		if err := q.client.EnqueueBatch(ctx, batch); err != nil {
			return err
		}
		ps = ps[n:]
	}
	return nil
}

func (q *gueQueue) Work(ctx context.Context, workers int, handle func(payload)) (func() error, error) {
	// Ordered by due time the lookup follows gue's index; by priority, its default, it sorts the whole backlog each time.
	pool, err := gue.NewWorkerPool(q.client, gue.WorkMap{jobKind: func(_ context.Context, j *gue.Job) error {
		var p payload
		if err := json.Unmarshal(j.Args, &p); err != nil {
			return err
		}
		handle(p)
		return nil
	}}, workers, gue.WithPoolQueue(jobKind), gue.WithPoolPollInterval(10*time.Millisecond), gue.WithPoolPollStrategy(gue.RunAtPollStrategy))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- pool.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}

// Left counts jobs: a finished one is deleted.
func (q *gueQueue) Left(ctx context.Context) (left int, err error) {
	return left, q.pool.QueryRow(ctx, `select count(*) from gue_jobs`).Scan(&left)
}

func (q *gueQueue) Close() error {
	q.pool.Close()
	return nil
}
