package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"maragu.dev/goqite"
	"maragu.dev/goqite/jobs"
)

// goqiteSchema is the one table that goqite asks its users to make, with its trigger and index.
const goqiteSchema = `
create table if not exists goqite (
	id text primary key default ('m_' || lower(hex(randomblob(16)))),
	created text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
	updated text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
	queue text not null,
	body blob not null,
	timeout text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')),
	received integer not null default 0,
	priority integer not null default 0
) strict;
create trigger if not exists goqite_updated_timestamp after update on goqite begin
	update goqite set updated = strftime('%Y-%m-%dT%H:%M:%fZ') where id = old.id;
end;
create index if not exists goqite_queue_priority_created_idx on goqite (queue, priority desc, created);`

// goqiteQueue is goqite with its job runner, on the driver and the single connection of its examples.
type goqiteQueue struct {
	writer, reader *sql.DB
	queue          *goqite.Queue
}

func openGoqite(ctx context.Context, at place) (queue, error) {
	writer, reader, err := openFastest(at.file())
	if err != nil {
		return nil, err
	}
	if _, err := writer.ExecContext(ctx, goqiteSchema); err != nil {
		return nil, errors.Join(err, writer.Close(), reader.Close())
	}
	// A minute instead of five seconds: no message may come back while 100 handlers queue for the connection.
	return &goqiteQueue{writer, reader, goqite.New(goqite.NewOpts{DB: writer, Name: jobKind, Timeout: time.Minute})}, nil
}

func (q *goqiteQueue) Enqueue(ctx context.Context, p payload) error {
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, err = jobs.Create(ctx, q.queue, jobKind, goqite.Message{Body: body})
	return err
}

func (q *goqiteQueue) Fill(ctx context.Context, ps []payload) error {
	tx, err := q.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, p := range ps {
		body, err := json.Marshal(p)
		if err == nil {
			_, err = jobs.CreateTx(ctx, tx, q.queue, jobKind, goqite.Message{Body: body})
		}
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

func (q *goqiteQueue) Work(ctx context.Context, workers int, handle func(payload)) (func() error, error) {
	// The poll interval is also how long the runner sleeps when all its slots are taken.
	runner := jobs.NewRunner(jobs.NewRunnerOpts{Limit: workers, PollInterval: time.Millisecond, Queue: q.queue})
	runner.Register(jobKind, func(_ context.Context, body []byte) error {
		var p payload
		if err := json.Unmarshal(body, &p); err != nil {
			return err
		}
		handle(p)
		return nil
	})
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runner.Start(ctx)
	}()
	return func() error {
		cancel()
		<-ended
		return nil
	}, nil
}

// Left counts messages: a finished one is deleted.
func (q *goqiteQueue) Left(ctx context.Context) (left int, err error) {
	return left, q.reader.QueryRowContext(ctx, `select count(*) from goqite`).Scan(&left)
}

func (q *goqiteQueue) Close() error { return errors.Join(q.writer.Close(), q.reader.Close()) }
