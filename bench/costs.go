package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// costs is what a run asked of Postgres, for each thing it did: from when its process opened the store until it had
// measured. A counter stands in between, so that speeds measured with it do not count.
type costs struct {
	WAL         float64 `json:"wal_bytes_per_op"`
	Statements  float64 `json:"statements_per_op"`
	Connections float64 `json:"connections"` // the most at once
}

// count measures a contender from the far side of a counter. Nobody else may write to the server meanwhile.
func count(ctx context.Context, c contender, at place) (measurement, error) {
	watch, err := pgx.Connect(ctx, at.Postgres)
	if err != nil {
		return measurement{}, err
	}
	defer watch.Close(context.WithoutCancel(ctx))
	written := func() (n float64, err error) {
		return n, watch.QueryRow(ctx, "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").Scan(&n)
	}
	counter, err := startCounter(at.Postgres)
	if err != nil {
		return measurement{}, err
	}
	at.Postgres = counter.Address
	before, err := written()
	if err != nil {
		return measurement{}, err
	}
	m, err := c.measure(ctx, at)
	if err != nil {
		return measurement{}, err
	}
	statements := counter.Statements()
	after, err := written()
	if err != nil {
		return measurement{}, err
	}
	if m.Done == 0 {
		return measurement{}, errors.New("-costs: the work does not say how much it did")
	}
	n := float64(m.Done)
	m.Costs = &costs{WAL: (after - before) / n, Statements: float64(statements) / n, Connections: float64(counter.Connections())}
	return m, nil
}
