package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/ncruces/go-sqlite3"
)

// bareName is the contender that makes a job durable and does nothing else: one insert
// and its commit, into a table of the shape of a plain job. Its "work" is a function
// called behind the commit. Nothing that keeps a job can be faster.
const bareName = "bare insert"

const bareTable = `CREATE TABLE IF NOT EXISTS bare (
	namespace    int      NOT NULL,
	id           %s       NOT NULL,
	state        smallint NOT NULL,
	priority     smallint NOT NULL,
	due          %s       NOT NULL,
	created      %s       NOT NULL,
	max_attempts int      NOT NULL,
	queue        text     NOT NULL,
	kind         text     NOT NULL,
	args         %s       NOT NULL,
	PRIMARY KEY (namespace, id)
)`

// bareSchema is that table, with the store's words for an id, a time and bytes.
func bareSchema(id, time, bytes string) string { return fmt.Sprintf(bareTable, id, time, time, bytes) }

// handled calls what works, if anything does.
type handled struct {
	mu     sync.Mutex
	handle func(payload)
}

func (h *handled) Work(_ context.Context, _ int, handle func(payload)) (func() error, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handle = handle
	return func() error { return nil }, nil
}

func (h *handled) call(p payload) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.handle != nil {
		h.handle(p)
	}
}

func (h *handled) Left(context.Context) (int, error) { return 0, nil }

type barePostgres struct {
	handled
	db *pgx.Conn
}

func openBarePostgres(ctx context.Context, at place) (queue, error) {
	db, err := pgx.Connect(ctx, at.Postgres)
	if err != nil {
		return nil, err
	}
	_, err = db.Exec(ctx, bareSchema("uuid", "timestamptz", "bytea"))
	return &barePostgres{db: db}, err
}

func (q *barePostgres) Enqueue(ctx context.Context, p payload) error {
	args, err := json.Marshal(p)
	if err != nil {
		return err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	_, err = q.db.Exec(ctx, `INSERT INTO bare (namespace, id, state, priority, due, created, max_attempts, queue, kind, args)
VALUES (1, $1, 2, 5, now(), now(), 25, 'default', $2, $3)`, [16]byte(id), jobKind, args)
	if err == nil {
		q.call(p)
	}
	return err
}

func (q *barePostgres) Fill(ctx context.Context, ps []payload) (err error) {
	for _, p := range ps {
		err = errors.Join(err, q.Enqueue(ctx, p))
	}
	return err
}

func (q *barePostgres) Close() error { return q.db.Close(context.Background()) }

type bareSQLite struct {
	handled
	db     *sqlite3.Conn
	insert *sqlite3.Stmt
}

func openBareSQLite(_ context.Context, at place) (queue, error) {
	db, err := sqlite3.Open("file:" + at.file())
	if err != nil {
		return nil, err
	}
	q := &bareSQLite{db: db}
	err = db.Exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 5000;\n" + bareSchema("blob", "int", "blob"))
	if err == nil {
		q.insert, _, err = db.Prepare(`INSERT INTO bare (namespace, id, state, priority, due, created, max_attempts, queue, kind, args)
VALUES (1, ?, 2, 5, unixepoch(), unixepoch(), 25, 'default', ?, ?)`)
	}
	return q, err
}

func (q *bareSQLite) Enqueue(_ context.Context, p payload) error {
	args, err := json.Marshal(p)
	if err != nil {
		return err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	err = errors.Join(q.insert.BindBlob(1, id[:]), q.insert.BindText(2, jobKind), q.insert.BindBlob(3, args))
	q.insert.Step()
	if err = errors.Join(err, q.insert.Err(), q.insert.Reset()); err == nil {
		q.call(p)
	}
	return err
}

func (q *bareSQLite) Fill(ctx context.Context, ps []payload) (err error) {
	for _, p := range ps {
		err = errors.Join(err, q.Enqueue(ctx, p))
	}
	return err
}

func (q *bareSQLite) Close() error { return errors.Join(q.insert.Close(), q.db.Close()) }
