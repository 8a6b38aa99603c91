package main

import (
	"context"
	"fmt"
	"time"
)

const (
	idleProcesses = 3
	idleQueues    = 5
	settleTime    = 1500 * time.Millisecond // for registration, elections and the first looks
	watchTime     = 5 * time.Second         // one heartbeat of Pawl: all that is periodic happens in it
)

// postgresIdleStatements counts what an idle cluster asks of its database.
func postgresIdleStatements() work {
	return work{
		name: "postgres-idle-statements",
		what: "statements a second of 3 idle workers with 5 queues each, Postgres",
		unit: perSecond,
		systems: []contender{
			{name: pawlName, needs: pawlOnPostgres, measure: idleStatements(pawlPostgres)},
			{name: "river", needs: onPostgres, measure: idleStatements(riverPostgres)},
		},
		targets: []target{below("limit of 10", 10, perSecond, 1, 2)},
	}
}

// queuesWorker is a system that can serve several queues at once.
type queuesWorker interface {
	WorkQueues(ctx context.Context, queues map[string]int, handle func(payload)) (stop func() error, err error)
}

// idleStatements starts the workers on the far side of a counter, lets them settle, and watches. They share a process,
// which changes nothing: each has its own connections. They end with the process.
func idleStatements(open opener) func(context.Context, place) (measurement, error) {
	return func(ctx context.Context, at place) (measurement, error) {
		counter, err := startCounter(at.Postgres)
		if err != nil {
			return measurement{}, err
		}
		at.Postgres = counter.Address
		queues := make(map[string]int)
		for i := range idleQueues {
			queues[fmt.Sprintf("queue-%d", i)] = idleWorkers
		}
		for range idleProcesses {
			q, err := open(ctx, at)
			if err != nil {
				return measurement{}, err
			}
			many, ok := q.(queuesWorker)
			if !ok {
				return measurement{}, fmt.Errorf("%T serves one queue only", q)
			}
			if _, err := many.WorkQueues(ctx, queues, func(payload) {}); err != nil {
				return measurement{}, err
			}
		}
		if err := pause(ctx, settleTime); err != nil {
			return measurement{}, err
		}
		before, begin := counter.Statements(), time.Now()
		if err := pause(ctx, watchTime); err != nil {
			return measurement{}, err
		}
		return measurement{PerSecond: new(float64(counter.Statements()-before) / time.Since(begin).Seconds())}, nil
	}
}
