package main

// steadyCallers enqueue as fast as they can what steadyWorkers of the same process work on.
const steadyCallers, steadyWorkers = 16, 100

func postgresSteady() work {
	return work{
		name: "postgres-steady",
		what: "16 goroutines enqueue, 100 workers of the same process keep up: jobs a second end to end, Postgres",
		unit: perSecond,
		systems: []contender{
			{name: pawlName, needs: pawlOnPostgres, measure: worksBeside(pawlPostgres, steadyCallers, steadyWorkers)},
			{name: "river", needs: onPostgres, measure: worksBeside(riverPostgresPrompt, steadyCallers, steadyWorkers)},
		},
		targets: []target{faster("River", "river", 3, 4)},
	}
}

func sqliteSteady() work {
	return work{
		name: "sqlite-steady",
		what: "16 goroutines enqueue, 100 workers of the same process keep up: jobs a second end to end, SQLite FULL",
		unit: perSecond,
		systems: []contender{
			{name: pawlName, measure: worksBeside(pawlSQLite, steadyCallers, steadyWorkers)},
			{name: "backlite", measure: worksBeside(openBacklite, steadyCallers, steadyWorkers)},
		},
		targets: []target{faster("backlite", "backlite", 5, 10)},
	}
}

func postgresEnqueue1() work {
	return work{
		name: "postgres-enqueue-1",
		what: "enqueue one job at a time from one goroutine, Postgres",
		unit: perSecond,
		systems: []contender{
			{name: pawlName, needs: pawlOnPostgres, measure: enqueueOne(pawlPostgres, 1)},
			{name: bareName, needs: onPostgres, measure: enqueueOne(openBarePostgres, 1)},
		},
		targets: []target{faster("one insert and its commit", bareName, 0.8, 0.9)},
	}
}
