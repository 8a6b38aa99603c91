package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strconv"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store"
)

// pawlBulk is how many jobs one EnqueueMany hands in: as many as one InsertMany of River, and enough for COPY.
const pawlBulk = 5000

// pawlQueue is Pawl through its public face, with its defaults: finished jobs go to the archive, where they stay a week.
type pawlQueue struct {
	table  string // of the live jobs
	store  func() store.Opener
	engine *pawl.Engine
	tied   int // every so-many-th job of a backlog has a unique key; 0 for none
	keys   int // jobs of a backlog have so many keys, in turn, of which a limit lets 2 jobs run at once; 0 for none
}

func openPawl(table string, opener func() store.Opener) (queue, error) {
	q := &pawlQueue{table: table, store: opener}
	return q, q.open(nil)
}

func (q *pawlQueue) open(queues pawl.Queues) (err error) {
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	c := pawl.Config{Queues: queues, Logger: logger}
	if q.keys > 0 {
		c.Limits = []pawl.Limit{{Name: "keys", Queue: "default", PerKey: true, Concurrent: 2}}
	}
	q.engine, err = pawl.New(q.store(), c)
	return err
}

func (q *pawlQueue) Enqueue(ctx context.Context, p payload) error {
	_, err := q.engine.Enqueue(ctx, p)
	return err
}

func (q *pawlQueue) Fill(ctx context.Context, ps []payload) error {
	for len(ps) > 0 {
		n := min(len(ps), pawlBulk)
		items := make([]pawl.Item, n)
		for i, p := range ps[:n] {
			items[i] = pawl.NewItem(p)
			if q.tied > 0 && i%q.tied == 0 {
				items[i] = pawl.NewItem(p, pawl.Unique(pawl.ByKey(pawl.NewID().String())))
			}
			if q.keys > 0 {
				items[i] = pawl.NewItem(p, pawl.Key(strconv.Itoa(i%q.keys)))
			}
		}
		if _, err := q.engine.EnqueueMany(ctx, items...); err != nil {
			return err
		}
		ps = ps[n:]
	}
	return nil
}

func (q *pawlQueue) Work(ctx context.Context, workers int, handle func(payload)) (func() error, error) {
	return q.WorkQueues(ctx, map[string]int{"default": workers}, handle)
}

// WorkQueues makes the engine anew, since an engine's queues are fixed when it is made. Jobs enqueued from now on go
// through the engine that works, as in a program that does both.
func (q *pawlQueue) WorkQueues(ctx context.Context, queues map[string]int, handle func(payload)) (func() error, error) {
	config := make(pawl.Queues)
	for name, workers := range queues {
		config[name] = pawl.QueueConfig{Workers: workers}
	}
	if err := q.engine.Close(); err != nil {
		return nil, err
	}
	if err := q.open(config); err != nil {
		return nil, err
	}
	pawl.Handle(q.engine, func(_ context.Context, j *pawl.Job[payload]) error {
		handle(j.Args)
		return nil
	})
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- q.engine.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}

// Left counts live jobs: finished ones are in the archive. A count of Pawl's own has a bound.
func (q *pawlQueue) Left(ctx context.Context) (left int, err error) {
	err = q.engine.DB().QueryRowContext(ctx, "SELECT count(*) FROM "+q.table).Scan(&left)
	return left, err
}

func (q *pawlQueue) Close() error {
	if q.engine == nil {
		return errors.New("pawl: not open")
	}
	return q.engine.Close()
}

// keyed gives the jobs of a system 1,000 keys, each with a bound.
func keyed(open opener) opener {
	return func(ctx context.Context, at place) (queue, error) {
		q, err := open(ctx, at)
		if err != nil {
			return nil, err
		}
		p := q.(*pawlQueue)
		p.keys = 1000
		return p, errors.Join(p.engine.Close(), p.open(nil))
	}
}
