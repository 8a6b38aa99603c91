package main

import (
	"context"
	"time"
)

// A work is one line of the table that counts: something to do, and the systems that do it in turns.
type work struct {
	name     string
	what     string // for people
	unit     unit
	systems  []contender
	targets  []target
	onDemand bool          // only when named by -only
	limit    time.Duration // of one run; zero means runLimit
}

// runLimit bounds one run of one system, its preparation included. A run that takes longer is ended.
const runLimit = 10 * time.Second

// A contender is one system doing one work.
type contender struct {
	name  string // as the JSON names it
	needs needs
	// prepare fills the place in a process of its own, outside what is measured. Nil means nothing to prepare.
	prepare func(ctx context.Context, at place) error
	measure func(ctx context.Context, at place) (measurement, error)
}

// needs names what a contender cannot run without: servers, and a store of Pawl that this build must have.
type needs struct {
	postgres, redis bool
	store           string // scheme of its address
}

// measurement is what one run came to. A field that was not measured is nil.
type measurement struct {
	PerSecond  *float64    `json:"per_s"`
	P50        *float64    `json:"p50_ms"`
	P99        *float64    `json:"p99_ms"`
	RSS        *float64    `json:"rss_mb"` // peak of the process
	CPU        *float64    `json:"cpu_us_per_op"`
	Goroutines *goroutines `json:"goroutines,omitempty"`
	Costs      *costs      `json:"costs,omitempty"`
	Done       int         `json:"done,omitempty"` // things done, where they were counted
}

// goroutines counts them before the work began and after everything was closed.
type goroutines struct {
	Before int `json:"before"`
	After  int `json:"after"`
}

// unit says which figure of a measurement the work is about.
type unit struct {
	name string
	of   func(measurement) *float64
}

var (
	perSecond = unit{"per s", func(m measurement) *float64 { return m.PerSecond }}
	p50       = unit{"p50 ms", func(m measurement) *float64 { return m.P50 }}
	p99       = unit{"p99 ms", func(m measurement) *float64 { return m.P99 }}
	rss       = unit{"MB", func(m measurement) *float64 { return m.RSS }}
)

// works are all of them, in the order of PERFORMANCE.md.
func works() []work {
	return []work{
		postgresEnqueue1(),
		postgresEnqueue16(),
		postgresEnqueue256(),
		postgresBulk(),
		postgresDrain100(),
		postgresDrainBest(),
		postgresDrain4x1ms(),
		postgresDrainSnapshot(),
		postgresDrainTied(),
		postgresKeyed(),
		postgresDrainBeside(),
		postgresSteady(),
		postgresIdle(),
		postgresIdleOther(),
		postgresDrainMemory(),
		postgresIdleStatements(),
		sqliteEnqueue(16, 5, 8),
		sqliteEnqueue(256, 20, 35),
		sqliteDrain100(),
		sqliteKeyed(),
		sqliteSteady(),
		sqliteIdle(),
		postgresStreamPublish("postgres-stream-publish-16", 16, 1.3, 2),
		postgresStreamPublish("postgres-stream-publish-256", 256, 5, 7),
		postgresStreamConsume(),
		postgresStreamSnapshot(),
		postgresStreamIdle(),
		sqliteStreamConsume(),
		sqliteStreamIdle(),
		batchDo64(),
		sqliteMillion(),
	}
}
