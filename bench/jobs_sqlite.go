package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// River, goqite and backlite are a tenth as fast as the backlog would need to be worked off in time: all systems get
// the same one, and the slow ones are measured by what they have done when time is up.
const sqliteBacklog = 100_000

func sqliteEnqueue(callers int, atLeast, aim float64) work {
	return work{
		name: fmt.Sprintf("sqlite-enqueue-%d", callers),
		what: fmt.Sprintf("enqueue one job at a time from %d goroutines, SQLite FULL", callers),
		unit: perSecond,
		systems: []contender{
			{name: pawlName, measure: enqueueOne(pawlSQLite, callers)},
			{name: "goqite", measure: enqueueOne(openGoqite, callers)},
			{name: "backlite", measure: enqueueOne(openBacklite, callers)},
			{name: "river", measure: enqueueOne(riverSQLite, callers)},
		},
		targets: []target{faster("goqite", "goqite", atLeast, aim)},
	}
}

func sqliteDrain100() work {
	return work{
		name: "sqlite-drain-100",
		what: "work off a backlog with 100 workers, SQLite FULL",
		unit: perSecond,
		systems: []contender{
			drains(pawlName, needs{}, pawlSQLite, 100, sqliteBacklog),
			drains("river", needs{}, riverSQLite, 100, sqliteBacklog),
			drains("goqite", needs{}, openGoqite, 100, sqliteBacklog),
			drains("backlite", needs{}, openBacklite, 100, sqliteBacklog),
		},
		targets: []target{
			faster("River SQLite", "river", 8, 12),
			faster("goqite runner", "goqite", 12, 20),
		},
	}
}

func sqliteKeyed() work {
	byKey := drains("pawl, 1,000 keys", needs{}, keyed(pawlSQLite), 100, sqliteBacklog)
	return work{
		name: "sqlite-keyed",
		what: "work off a backlog with 100 workers, 1,000 keys of each of which 2 run at once, SQLite FULL",
		unit: perSecond,
		systems: []contender{
			byKey,
			drains(pawlName, needs{}, pawlSQLite, 100, sqliteBacklog),
		},
		targets: []target{{against: "itself without keys", ours: byKey.name, theirs: pawlName, unit: perSecond, atLeast: 0.4, aim: 0.6}},
	}
}

func sqliteIdle() work {
	return work{
		name: "sqlite-idle",
		what: "from enqueue to the start of the handler in an idle system, SQLite FULL",
		unit: p50,
		systems: []contender{
			{name: pawlName, measure: idle(pawlSQLite)},
			{name: "backlite", measure: idle(openBacklite)},
			{name: bareName, measure: idle(openBareSQLite)},
		},
		targets: []target{
			sooner("backlite, p50", "backlite", 1.4, 1.7),
			sooner("one insert and its commit (sqlite-idle-commit)", bareName, 0.7, 0.8),
		},
	}
}

// sqliteMillion is no race: it shows that memory and goroutines do not grow with the work.
func sqliteMillion() work {
	return work{
		name:     "sqlite-million",
		what:     "1,000,000 jobs enqueued and drained in one process with 100 slots: peak memory, goroutines (on demand)",
		unit:     perSecond,
		systems:  []contender{{name: pawlName, measure: million}},
		targets:  []target{below("150 MB peak", 150, rss, 1, 1.5)},
		onDemand: true,
		limit:    15 * time.Minute,
	}
}

func million(ctx context.Context, at place) (m measurement, err error) {
	const jobs, chunk = 1_000_000, 10_000
	count := goroutines{Before: runtime.NumGoroutine()}
	q, err := pawlSQLite(ctx, at)
	if err != nil {
		return measurement{}, err
	}
	for filled := 0; filled < jobs; filled += chunk {
		if err := q.Fill(ctx, payloads(chunk)); err != nil {
			return measurement{}, errors.Join(err, q.Close())
		}
	}
	m, left, err := workOff(ctx, q, 100, jobs, func() {}, 10*time.Minute)
	if err == nil && left > 0 {
		err = fmt.Errorf("%d of %d jobs are left", left, jobs)
	}
	if err := errors.Join(err, q.Close()); err != nil {
		return measurement{}, err
	}
	// A goroutine whose last act was to say that it ends may still be counted for a moment.
	for range 100 {
		if count.After = runtime.NumGoroutine(); count.After <= count.Before {
			break
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return measurement{}, err
		}
	}
	m.Goroutines = &count
	return m, nil
}
