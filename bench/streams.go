package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	streamBacklog = 200_000 // as much of it as is filled in time
	// streamTime is how long a consumer is watched beside publishers.
	streamTime = 3 * time.Second
)

// postgresStreamPublish is for 16 and for 256 goroutines. The peer is taken at its best of both.
func postgresStreamPublish(name string, callers int, atLeast, aim float64) work {
	return work{
		name: name,
		what: "publish one event at a time from so many goroutines, Postgres; Watermill SQL from 16 and from 256",
		unit: perSecond,
		systems: []contender{
			{name: pawlName, needs: pawlOnPostgres, measure: enqueueOne(pawlPostgresStream, callers)},
			{name: "watermill, 16", needs: onPostgres, measure: enqueueOne(openWatermill, 16)},
			{name: "watermill, 256", needs: onPostgres, measure: enqueueOne(openWatermill, 256)},
		},
		targets: []target{fasterThanBest("Watermill SQL at its best of 16 and 256", []string{"watermill, 16", "watermill, 256"}, atLeast, aim)},
	}
}

func postgresStreamConsume() work {
	return work{
		name: "postgres-stream-consume",
		what: "consume and acknowledge a backlog of events, one group in one process, Postgres",
		unit: perSecond,
		systems: []contender{
			drains(pawlName, pawlOnPostgres, pawlPostgresStream, 0, streamBacklog),
			drains("watermill", onPostgres, openWatermill, 0, streamBacklog),
			drains("watermill, by 1000", onPostgres, openWatermillByThousand, 0, streamBacklog),
		},
		targets: []target{fasterThanBest("Watermill SQL, by 100 or by 1000", []string{"watermill", "watermill, by 1000"}, 8, 15)},
	}
}

func postgresStreamSnapshot() work {
	const held = "pawl, snapshot held"
	beside := consumesBeside(pawlPostgresStream, 16)
	prepare := fill(pawlPostgresStream, streamBacklog)
	return work{
		name: "postgres-stream-snapshot",
		what: "consume and acknowledge a backlog while 16 goroutines publish and another connection holds a snapshot, Postgres",
		unit: perSecond,
		systems: []contender{
			{name: held, needs: pawlOnPostgres, prepare: prepare, measure: underSnapshot(beside)},
			{name: pawlName, needs: pawlOnPostgres, prepare: prepare, measure: beside},
		},
		targets: []target{{against: "itself without", ours: held, theirs: pawlName, unit: perSecond, atLeast: 0.9, aim: 1}},
	}
}

// consumesBeside measures how fast a backlog is consumed while callers publish.
func consumesBeside(open opener, callers int) func(context.Context, place) (measurement, error) {
	return func(ctx context.Context, at place) (measurement, error) {
		q, err := open(ctx, at)
		if err != nil {
			return measurement{}, err
		}
		backlog, err := q.Left(ctx)
		if err != nil {
			return measurement{}, err
		}
		publishing, cancel := context.WithCancel(ctx)
		defer cancel()
		failed := make([]error, callers)
		var wait sync.WaitGroup
		for i := range callers {
			wait.Go(func() {
				for seq := int64(i); publishing.Err() == nil && failed[i] == nil; seq += int64(callers) {
					failed[i] = q.Enqueue(ctx, newPayload(seq))
				}
			})
		}
		begin, cpu := time.Now(), startCPU()
		stop, err := q.Work(ctx, 0, func(payload) {})
		if err != nil {
			return measurement{}, err
		}
		group := q.(*pawlStream)
		for group.acked() < backlog && time.Since(begin) < streamTime && err == nil {
			err = pause(ctx, time.Millisecond)
		}
		m := rate(group.acked(), time.Since(begin), cpu)
		cancel()
		wait.Wait()
		return m, errors.Join(err, errors.Join(failed...), stop(), q.Close())
	}
}

func sqliteStreamConsume() work {
	return work{
		name: "sqlite-stream-consume",
		what: "consume and acknowledge a backlog of events, one group in one process, SQLite, against a loop that reads and commits",
		unit: perSecond,
		systems: []contender{
			drains(pawlName, needs{}, pawlSQLiteStream, 0, streamBacklog),
			drains("raw loop", needs{}, openRawStream, 0, streamBacklog),
		},
		targets: []target{faster("raw read + commit written for it", "raw loop", 0.6, 0.9)},
	}
}

// streamIdle is about events that meet an idle group.
func streamIdle(name, what string, n needs, open opener, peers ...contender) work {
	return work{
		name: name, what: what, unit: p50,
		systems: append([]contender{{name: pawlName, needs: n, measure: idle(open)}}, peers...),
		targets: []target{below("2 ms, p50", 2, p50, 1, 2)},
	}
}

func postgresStreamIdle() work {
	return streamIdle("postgres-stream-idle", "from publish to the start of the handler of an idle group, Postgres; Watermill SQL polls every ms",
		pawlOnPostgres, pawlPostgresStream, contender{name: "watermill", needs: onPostgres, measure: idle(openWatermill)})
}

func sqliteStreamIdle() work {
	return streamIdle("sqlite-stream-idle", "from publish to the start of the handler of an idle group, SQLite", needs{}, pawlSQLiteStream)
}
