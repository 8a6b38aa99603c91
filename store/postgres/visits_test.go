package postgres

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/store"
)

// sentStatements keeps what a store sends, so that a test can count what that
// visits.
type sentStatements struct {
	t    testing.TB
	s    *Store
	mu   sync.Mutex
	on   bool
	list []pgx.TraceBatchQueryData
}

// openTraced opens a store on a schema of the test's own.
func openTraced(t testing.TB) (*Store, *sentStatements) {
	t.Helper()
	db := need.Postgres(t)
	return openTracedOn(t, db.URL, db.Schema)
}

func openTracedOn(t testing.TB, address, schema string) (*Store, *sentStatements) {
	t.Helper()
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	sent := &sentStatements{t: t}
	config.ConnConfig.Tracer = sent
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	opened, err := Pool(pool, Options{Schema: schema}).Open(t.Context(), store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	sent.s, _ = of(opened)
	return sent.s, sent
}

// visits counts the rows and entries of indexes of jobs that a call visits.
func (s *sentStatements) visits(call func()) int {
	s.t.Helper()
	return s.visitsOf("job", call)
}

// visitsOf counts the rows and entries of indexes of tables with such names that a call
// visits, whatever its plans: it is made, and each statement that it sent is run again.
// The call only reads.
func (s *sentStatements) visitsOf(tables string, call func()) (total int) {
	s.t.Helper()
	s.record(true)
	call()
	ctx := context.Background()
	tx, err := s.s.pg.Users.Begin(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	count := func() (n int) {
		const all = `SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(c.oid)), 0)::bigint
		FROM pg_class AS c
		WHERE c.relnamespace = $1::regnamespace AND c.relname LIKE $2 || '%' AND c.relkind IN ('r', 'i')`
		if err := tx.QueryRow(ctx, all, s.s.pg.Texts.Schema, tables).Scan(&n); err != nil {
			s.t.Fatal(err)
		}
		return n
	}
	before := count()
	for _, q := range s.record(false) {
		rows, err := tx.Query(ctx, q.SQL, q.Args...)
		if err == nil {
			rows.Close()
			err = rows.Err()
		}
		if err != nil {
			s.t.Fatalf("%s: %v", q.SQL, err)
		}
	}
	return count() - before
}

// record begins to keep what is sent, or ends it and returns that.
func (s *sentStatements) record(on bool) []pgx.TraceBatchQueryData {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.on, s.list = on, nil
	return list
}

// A store sends batches; the methods are those of pgx's tracers.

func (s *sentStatements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on && data.SQL != "begin" && data.SQL != "commit" {
		s.list = append(s.list, data)
	}
}

func (s *sentStatements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (s *sentStatements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (s *sentStatements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (s *sentStatements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
