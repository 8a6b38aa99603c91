package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/mikestefanello/backlite"
)

// backliteQueue is backlite on the driver of its documentation. It keeps no finished tasks: its own default, and
// the faster choice.
type backliteQueue struct {
	writer, reader *sql.DB
	client         *backlite.Client
	handle         func(payload)
}

// backliteTask gives the payload the configuration that backlite asks for.
type backliteTask struct{ payload }

// Config makes it a backlite task.
func (backliteTask) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: jobKind, MaxAttempts: 5, Timeout: time.Minute, Backoff: time.Second}
}

func openBacklite(_ context.Context, at place) (queue, error) {
	writer, reader, err := openFastest(at.file())
	if err != nil {
		return nil, err
	}
	q := &backliteQueue{writer: writer, reader: reader}
	if err := q.connect(idleWorkers); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, q.client.Install()
}

// connect makes the client anew: its workers are fixed when it is made.
func (q *backliteQueue) connect(workers int) (err error) {
	q.client, err = backlite.NewClient(backlite.ClientConfig{DB: q.writer, NumWorkers: workers, ReleaseAfter: time.Hour})
	if err != nil {
		return err
	}
	q.client.Register(backlite.NewQueue(func(_ context.Context, t backliteTask) error {
		q.handle(t.payload)
		return nil
	}))
	return nil
}

func (q *backliteQueue) Enqueue(ctx context.Context, p payload) error {
	_, err := q.client.Add(backliteTask{p}).Ctx(ctx).Save()
	return err
}

func (q *backliteQueue) Fill(ctx context.Context, ps []payload) error {
	tasks := make([]backlite.Task, len(ps))
	for i, p := range ps {
		tasks[i] = backliteTask{p}
	}
	_, err := q.client.Add(tasks...).Ctx(ctx).Save()
	return err
}

func (q *backliteQueue) Work(ctx context.Context, workers int, handle func(payload)) (func() error, error) {
	q.handle = handle
	if err := q.connect(workers); err != nil {
		return nil, err
	}
	q.client.Start(ctx)
	return func() error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if !q.client.Stop(ctx) {
			return fmt.Errorf("backlite did not stop in time")
		}
		return nil
	}, nil
}

// Left counts tasks: a finished one is deleted.
func (q *backliteQueue) Left(ctx context.Context) (left int, err error) {
	return left, q.reader.QueryRowContext(ctx, `select count(*) from backlite_tasks`).Scan(&left)
}

func (q *backliteQueue) Close() error { return errors.Join(q.writer.Close(), q.reader.Close()) }
