package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Backlogs are such that the fastest takes a second or more, and filling them leaves time within the limit of a run.
const (
	postgresBacklog = 100_000
	snapshotBacklog = 150_000
	riverBestSlots  = 2000
	pawlBestSlots   = 100 // 200 were no faster, 1000 cost half as much CPU again per job
)

var (
	onPostgres     = needs{postgres: true}
	pawlOnPostgres = needs{postgres: true, store: "postgres"}
	onRedis        = needs{redis: true}
)

func postgresEnqueue16() work {
	return work{
		name: "postgres-enqueue-16",
		what: "enqueue one job at a time from 16 goroutines, Postgres (Asynq: Redis)",
		unit: perSecond,
		systems: []contender{
			{name: pawlName, needs: pawlOnPostgres, measure: enqueueOne(pawlPostgres, 16)},
			{name: "river", needs: onPostgres, measure: enqueueOne(riverPostgres, 16)},
			{name: "gue", needs: onPostgres, measure: enqueueOne(openGue, 16)},
			{name: "asynq", needs: onRedis, prepare: emptyAsynq, measure: enqueueOne(openAsynq, 16)},
		},
		targets: []target{faster("River", "river", 4, 6)},
	}
}

func postgresEnqueue256() work {
	return work{
		name: "postgres-enqueue-256",
		what: "enqueue one job at a time from 256 goroutines, Postgres; River from 16, where it is at its best",
		unit: perSecond,
		systems: []contender{
			{name: pawlName, needs: pawlOnPostgres, measure: enqueueOne(pawlPostgres, 256)},
			{name: "river, 16", needs: onPostgres, measure: enqueueOne(riverPostgres, 16)},
		},
		targets: []target{faster("River at 16", "river, 16", 15, 20)},
	}
}

func postgresBulk() work {
	return work{
		name: "postgres-bulk",
		what: "enqueue many jobs at once, Postgres",
		unit: perSecond,
		systems: []contender{
			{name: pawlName, needs: pawlOnPostgres, measure: bulk(pawlPostgres)},
			{name: "river", needs: onPostgres, measure: bulk(riverPostgres)},
			{name: "river, by 1000", needs: onPostgres, measure: bulk(riverPostgresByThousand)},
			{name: "gue", needs: onPostgres, measure: bulk(openGue)},
		},
		targets: []target{faster("River InsertManyFast", "river", 2.5, 4)},
	}
}

func postgresDrain100() work {
	asynq := drains("asynq", onRedis, openAsynq, 100, 20_000) // it cannot be filled faster
	fillAsynq := asynq.prepare
	asynq.prepare = func(ctx context.Context, at place) error {
		if err := emptyAsynq(ctx, at); err != nil {
			return err
		}
		return fillAsynq(ctx, at)
	}
	return work{
		name: "postgres-drain-100",
		what: "work off a backlog with 100 workers, Postgres (Asynq: Redis)",
		unit: perSecond,
		systems: []contender{
			drains(pawlName, pawlOnPostgres, pawlPostgres, 100, postgresBacklog),
			drains("river", onPostgres, riverPostgres, 100, postgresBacklog),
			drains("gue", onPostgres, openGue, 100, postgresBacklog),
			asynq,
		},
		targets: []target{faster("River, 100 workers, 2 ms cooldown", "river", 3, 4.5)},
	}
}

func postgresDrainBest() work {
	return work{
		name: "postgres-drain-best",
		what: "work off a backlog, each system with the workers that suit it best, Postgres",
		unit: perSecond,
		systems: []contender{
			drains(pawlName, pawlOnPostgres, pawlPostgres, pawlBestSlots, postgresBacklog),
			drains("river", onPostgres, riverPostgres, riverBestSlots, postgresBacklog),
		},
		targets: []target{faster("River, 2000 workers, 2 ms", "river", 2.5, 4)},
	}
}

func postgresDrain4x1ms() work {
	const ideal, backlog = 4000, 12_000
	millisecond := func() { wait(time.Millisecond) }
	return work{
		name: "postgres-drain-4x1ms",
		what: "4 workers, jobs of 1 ms: how much of the ideal of 4 per ms, Postgres",
		unit: perSecond,
		systems: []contender{
			drainsWith(pawlName, pawlOnPostgres, pawlPostgres, 4, backlog, millisecond),
			drainsWith("river", onPostgres, riverPostgres, 4, backlog, millisecond),
			{name: "wait alone", measure: onlyWork(4, backlog, millisecond)},
		},
		targets: []target{{against: "ideal of 4 per ms", ours: pawlName, fixed: ideal, unit: perSecond, atLeast: 0.8, aim: 0.95}},
	}
}

// onlyWork does the jobs with nothing around them: what the machine and Go's timers make of the ideal.
func onlyWork(workers, jobs int, body func()) func(context.Context, place) (measurement, error) {
	return func(context.Context, place) (measurement, error) {
		var wait sync.WaitGroup
		begin, cpu := time.Now(), startCPU()
		for range workers {
			wait.Go(func() {
				for range jobs / workers {
					body()
				}
			})
		}
		wait.Wait()
		return rate(jobs, time.Since(begin), cpu), nil
	}
}

func postgresDrainSnapshot() work {
	held := drains("pawl, snapshot held", pawlOnPostgres, pawlPostgres, 100, snapshotBacklog)
	held.measure = underSnapshot(held.measure)
	return work{
		name: "postgres-drain-snapshot",
		what: "work off a backlog with 100 workers while another connection holds a snapshot, Postgres",
		unit: perSecond,
		systems: []contender{
			held,
			drains(pawlName, pawlOnPostgres, pawlPostgres, 100, snapshotBacklog),
		},
		targets: []target{{against: "itself without", ours: held.name, theirs: pawlName, unit: perSecond, atLeast: 0.9, aim: 1}},
	}
}

func postgresDrainTied() work {
	tied := drains("pawl, 1 % tied", pawlOnPostgres, pawlPostgresTied, 100, postgresBacklog)
	return work{
		name: "postgres-drain-tied",
		what: "work off a backlog with 100 workers, one job in a hundred with a unique key, Postgres",
		unit: perSecond,
		systems: []contender{
			tied,
			drains(pawlName, pawlOnPostgres, pawlPostgres, 100, postgresBacklog),
		},
		targets: []target{{against: "itself without ties", ours: tied.name, theirs: pawlName, unit: perSecond, atLeast: 0.93, aim: 1}},
	}
}

func postgresKeyed() work {
	byKey := drains("pawl, 1,000 keys", pawlOnPostgres, keyed(pawlPostgres), 100, postgresBacklog)
	return work{
		name: "postgres-keyed",
		what: "work off a backlog with 100 workers, 1,000 keys of each of which 2 run at once, Postgres",
		unit: perSecond,
		systems: []contender{
			byKey,
			drains(pawlName, pawlOnPostgres, pawlPostgres, 100, postgresBacklog),
		},
		targets: []target{{against: "itself without keys", ours: byKey.name, theirs: pawlName, unit: perSecond, atLeast: 0.4, aim: 0.6}},
	}
}

// holdSnapshot opens a snapshot as a long report or a forgotten transaction does: no row version that dies from now
// on can be removed until it is released.
func holdSnapshot(ctx context.Context, at place) (release func() error, err error) {
	connection, err := pgx.Connect(ctx, at.Postgres)
	if err != nil {
		return nil, err
	}
	tx, err := connection.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err == nil {
		_, err = tx.Exec(ctx, "select count(*) from pg_class")
	}
	if err != nil {
		return nil, errors.Join(err, connection.Close(ctx))
	}
	return func() error { return errors.Join(tx.Rollback(ctx), connection.Close(ctx)) }, nil
}

func postgresIdle() work {
	return work{
		name: "postgres-idle",
		what: "from enqueue to the start of the handler in an idle system, Postgres",
		unit: p50,
		systems: []contender{
			{name: pawlName, needs: pawlOnPostgres, measure: idle(pawlPostgres)},
			{name: "river", needs: onPostgres, measure: idle(riverPostgresPrompt)},
			{name: bareName, needs: onPostgres, measure: idle(openBarePostgres)},
		},
		targets: []target{
			sooner("River tuned, p50", "river", 1.7, 2.2),
			sooner("one insert and its commit (postgres-idle-commit)", bareName, 0.7, 0.8),
		},
	}
}

func postgresIdleOther() work {
	return work{
		name: "postgres-idle-other",
		what: "the same, enqueued by another process than the one that works, Postgres",
		unit: p50,
		systems: []contender{
			{name: pawlName, needs: pawlOnPostgres, measure: idleOther(pawlPostgres)},
			{name: "river", needs: onPostgres, measure: idleOther(riverPostgresPrompt)},
		},
		targets: []target{sooner("River tuned, p50", "river", 1, 1.5)},
	}
}

func postgresDrainMemory() work {
	return work{
		name: "postgres-drain-memory",
		what: "peak memory of a process with 100 workers that works off a backlog, Postgres",
		unit: rss,
		systems: []contender{
			drains(pawlName, pawlOnPostgres, pawlPostgres, 100, postgresBacklog),
			drains("river", onPostgres, riverPostgres, 100, postgresBacklog),
		},
		targets: []target{{against: "River", ours: pawlName, theirs: "river", unit: rss, fewer: true, atLeast: 1, aim: 1.4}},
	}
}
