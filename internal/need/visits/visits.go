// Package visits counts the rows that Postgres visits for a call, whatever its plans:
//
//	sent := visits.Connect(t, address)
//	… a store on sent.Pool …
//	n := sent.During("pawl", "job", func() { … }) // in tables of a schema whose names begin with job
package visits

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Sent keeps the batches that the connections of its pool send, while it is told to. It is their tracer.
type Sent struct {
	Pool *pgxpool.Pool
	// Settings are statements by which a session plans as those of the store do: where statistics are old, others plan otherwise.
	Settings []string
	t        testing.TB
	mu       sync.Mutex
	on       bool
	list     []pgx.TraceBatchQueryData
}

// Connect makes a pool, which is closed when the test ends.
func Connect(t testing.TB, address string) *Sent {
	t.Helper()
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	s := &Sent{t: t}
	config.ConnConfig.Tracer = s
	if s.Pool, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Pool.Close)
	return s
}

// During counts the rows, and the entries of indexes, that a call visits in tables of a schema with such names: the call is made,
// and each statement that it sent is run again in one transaction, behind others that undo what it wrote. So it must only read,
// or they must.
func (s *Sent) During(schema, tables string, call func(), undo ...string) int {
	s.t.Helper()
	return s.again("pg_stat_get_xact_tuples_returned", schema, tables, call, undo)
}

// Scans counts in the same way how often a table or an index is begun to be read: a seek is one.
func (s *Sent) Scans(schema, tables string, call func(), undo ...string) int {
	s.t.Helper()
	return s.again("pg_stat_get_xact_numscans", schema, tables, call, undo)
}

// again makes a call, runs its statements again, and tells by how much that raised a number that the server keeps of each table.
func (s *Sent) again(number, schema, tables string, call func(), undo []string) int {
	t := s.t
	t.Helper()
	list := s.Statements(call)
	ctx := context.Background()
	tx, err := s.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	all := `SELECT coalesce(sum(` + number + `(c.oid)), 0)::bigint
		FROM pg_class AS c
		WHERE c.relnamespace = $1::regnamespace AND c.relname LIKE $2 || '%' AND c.relkind IN ('r', 'i')`
	count := func() (n int) {
		if err := tx.QueryRow(ctx, all, schema, tables).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, text := range slices.Concat(s.Settings, undo) {
		if _, err := tx.Exec(ctx, text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	before := count()
	for _, q := range list {
		rows, err := tx.Query(ctx, q.SQL, q.Args...)
		if err == nil {
			rows.Close()
			err = rows.Err()
		}
		if err != nil {
			t.Fatalf("%s: %v", q.SQL, err)
		}
	}
	return count() - before
}

// Statements are those that a call sends.
func (s *Sent) Statements(call func()) []pgx.TraceBatchQueryData {
	s.record(true)
	call()
	return s.record(false)
}

// record begins to keep what is sent, or ends it and returns that.
func (s *Sent) record(on bool) []pgx.TraceBatchQueryData {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.on, s.list = on, nil
	return list
}

// A store sends batches; the methods are those of pgx's tracers.

// TraceBatchQuery keeps a statement of a batch.
func (s *Sent) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on && data.SQL != "begin" && data.SQL != "commit" {
		s.list = append(s.list, data)
	}
}

// TraceBatchStart does nothing.
func (s *Sent) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchEnd does nothing.
func (s *Sent) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// TraceQueryStart does nothing.
func (s *Sent) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd does nothing.
func (s *Sent) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
