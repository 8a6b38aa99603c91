package main

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// asynqDatabase is the numbered Redis database that the bench empties and uses.
const asynqDatabase = 15

// asynqQueue is Asynq on a Redis that syncs its log before it answers, as a database does. Redis' usual setting
// syncs once a second: faster, and up to a second of accepted jobs are lost with the machine.
type asynqQueue struct {
	redis   *redis.Client
	client  *asynq.Client
	inspect *asynq.Inspector
	options asynq.RedisClientOpt
	restore map[string]string // settings as they were
}

func openAsynq(ctx context.Context, at place) (queue, error) {
	options := asynq.RedisClientOpt{Addr: at.Redis, DB: asynqDatabase, PoolSize: 128}
	q := &asynqQueue{options: options, redis: redis.NewClient(&redis.Options{Addr: at.Redis, DB: asynqDatabase}), restore: make(map[string]string)}
	q.client, q.inspect = asynq.NewClient(options), asynq.NewInspector(options)
	for _, setting := range [][2]string{{"appendonly", "yes"}, {"appendfsync", "always"}} {
		was, err := q.redis.ConfigGet(ctx, setting[0]).Result()
		if err == nil {
			q.restore[setting[0]] = was[setting[0]]
			err = q.redis.ConfigSet(ctx, setting[0], setting[1]).Err()
		}
		if err != nil {
			return nil, errors.Join(err, q.Close())
		}
	}
	return q, nil
}

// emptyAsynq removes what an earlier run left: unlike a Postgres database, a numbered Redis database is not made for one run.
func emptyAsynq(ctx context.Context, at place) error {
	client := redis.NewClient(&redis.Options{Addr: at.Redis, DB: asynqDatabase})
	return errors.Join(client.FlushDB(ctx).Err(), client.Close())
}

func (q *asynqQueue) Enqueue(ctx context.Context, p payload) error {
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, err = q.client.EnqueueContext(ctx, asynq.NewTask(jobKind, body))
	return err
}

// Fill enqueues from many goroutines: Asynq has no call for many tasks.
func (q *asynqQueue) Fill(ctx context.Context, ps []payload) error {
	const callers = 64
	failed := make([]error, callers)
	var wait sync.WaitGroup
	for i := range callers {
		wait.Go(func() {
			for at := i; at < len(ps) && failed[i] == nil; at += callers {
				failed[i] = q.Enqueue(ctx, ps[at])
			}
		})
	}
	wait.Wait()
	return errors.Join(failed...)
}

func (q *asynqQueue) Work(_ context.Context, workers int, handle func(payload)) (func() error, error) {
	server := asynq.NewServer(q.options, asynq.Config{Concurrency: workers, LogLevel: asynq.ErrorLevel, TaskCheckInterval: 10 * time.Millisecond})
	err := server.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		var p payload
		if err := json.Unmarshal(t.Payload(), &p); err != nil {
			return err
		}
		handle(p)
		return nil
	}))
	if err != nil {
		return nil, err
	}
	return func() error {
		server.Shutdown()
		return nil
	}, nil
}

func (q *asynqQueue) Left(context.Context) (int, error) {
	info, err := q.inspect.GetQueueInfo("default")
	if err != nil {
		return 0, err
	}
	return info.Pending + info.Active + info.Scheduled + info.Retry, nil
}

func (q *asynqQueue) Close() error {
	var failed []error
	for name, value := range q.restore {
		failed = append(failed, q.redis.ConfigSet(context.Background(), name, value).Err())
	}
	return errors.Join(append(failed, q.client.Close(), q.inspect.Close(), q.redis.Close())...)
}
