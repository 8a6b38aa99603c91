package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

// River's settings: its fetch cooldown limits throughput and latency (its documentation says so), so it is 2 ms
// instead of 100. Completed jobs are kept for a day, which is its default and comes for free: completion only
// changes the row.
const (
	riverCooldown = 2 * time.Millisecond
	riverBulk     = 5000 // jobs of one InsertMany: a quarter faster than with 1000
)

// riverQueue is River on either of its drivers.
type riverQueue[Tx any] struct {
	driver riverdriver.Driver[Tx]
	client *river.Client[Tx] // inserts only
	notify time.Duration     // between two notifications of an inserting client; zero means the default of 100 ms
	bulk   int               // jobs of one InsertManyFast; zero means riverBulk
	poll   time.Duration
	left   func(ctx context.Context) (int, error)
	close  func() error
}

// riverPostgres opens River on pgx as it inserts fastest: notifying rarely.
func riverPostgres(ctx context.Context, at place) (queue, error) { return openRiver(ctx, at, 0) }

// riverPostgresPrompt opens River as it starts jobs soonest: notifying as often as workers fetch.
func riverPostgresPrompt(ctx context.Context, at place) (queue, error) {
	return openRiver(ctx, at, riverCooldown)
}

// riverPostgresByThousand inserts many jobs by 1000, as PERFORMANCE.md measured it.
func riverPostgresByThousand(ctx context.Context, at place) (queue, error) {
	q, err := openRiver(ctx, at, 0)
	if err == nil {
		q.(*riverQueue[pgx.Tx]).bulk = 1000
	}
	return q, err
}

// openRiver gives each of 16 callers a connection, and some to River itself.
func openRiver(ctx context.Context, at place, notify time.Duration) (queue, error) {
	pool, err := openPool(ctx, at, 32)
	if err != nil {
		return nil, err
	}
	q := &riverQueue[pgx.Tx]{driver: riverpgxv5.New(pool), notify: notify, poll: time.Second}
	q.close = func() error { pool.Close(); return nil }
	q.left = func(ctx context.Context) (left int, err error) {
		return left, pool.QueryRow(ctx, `select count(*) from river_job where state <> 'completed'`).Scan(&left)
	}
	if err := q.install(ctx); err != nil {
		return nil, errors.Join(err, q.close())
	}
	return q, nil
}

// riverSQLite opens River on database/sql with the pure Go driver it is tested with, and the single connection
// that its documentation asks for.
func riverSQLite(ctx context.Context, at place) (queue, error) {
	writer, reader, err := openPure(at.file())
	if err != nil {
		return nil, err
	}
	// Without notifications across connections River finds jobs by polling.
	q := &riverQueue[*sql.Tx]{driver: riversqlite.New(writer), poll: 10 * time.Millisecond}
	q.close = func() error { return errors.Join(writer.Close(), reader.Close()) }
	q.left = func(ctx context.Context) (left int, err error) {
		return left, reader.QueryRowContext(ctx, `select count(*) from river_job where state <> 'completed'`).Scan(&left)
	}
	if err := q.install(ctx); err != nil {
		return nil, errors.Join(err, q.close())
	}
	return q, nil
}

func (q *riverQueue[Tx]) install(ctx context.Context) error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	migrator, err := rivermigrate.New(q.driver, &rivermigrate.Config{Logger: logger})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	q.client, err = river.NewClient(q.driver, &river.Config{Logger: logger, FetchCooldown: q.notify})
	return err
}

func (q *riverQueue[Tx]) Enqueue(ctx context.Context, p payload) error {
	_, err := q.client.Insert(ctx, p, nil)
	return err
}

func (q *riverQueue[Tx]) Fill(ctx context.Context, ps []payload) error {
	for len(ps) > 0 {
		n := min(len(ps), cmp.Or(q.bulk, riverBulk))
		jobs := make([]river.InsertManyParams, n)
		for i, p := range ps[:n] {
			jobs[i].Args = p
		}
		if _, err := q.client.InsertManyFast(ctx, jobs); err != nil {
			return err
		}
		ps = ps[n:]
	}
	return nil
}

func (q *riverQueue[Tx]) Work(ctx context.Context, workers int, handle func(payload)) (func() error, error) {
	return q.WorkQueues(ctx, map[string]int{river.QueueDefault: workers}, handle)
}

// WorkQueues serves several queues with one client.
func (q *riverQueue[Tx]) WorkQueues(ctx context.Context, queues map[string]int, handle func(payload)) (func() error, error) {
	config := make(map[string]river.QueueConfig)
	for name, workers := range queues {
		config[name] = river.QueueConfig{MaxWorkers: workers}
	}
	registry := river.NewWorkers()
	river.AddWorker(registry, &riverWorker{handle: handle})
	client, err := river.NewClient(q.driver, &river.Config{
		FetchCooldown:     riverCooldown,
		FetchPollInterval: q.poll,
		Logger:            slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Queues:            config,
		Workers:           registry,
	})
	if err != nil {
		return nil, err
	}
	if err := client.Start(ctx); err != nil {
		return nil, err
	}
	return func() error { return client.Stop(ctx) }, nil
}

func (q *riverQueue[Tx]) Left(ctx context.Context) (int, error) { return q.left(ctx) }

func (q *riverQueue[Tx]) Close() error { return q.close() }

type riverWorker struct {
	river.WorkerDefaults[payload]
	handle func(payload)
}

// Work runs the handler.
func (w *riverWorker) Work(_ context.Context, j *river.Job[payload]) error {
	w.handle(j.Args)
	return nil
}

// openPool opens the run's database.
func openPool(ctx context.Context, at place, connections int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(at.Postgres)
	if err != nil {
		return nil, err
	}
	config.MaxConns = connections
	return pgxpool.NewWithConfig(ctx, config)
}
