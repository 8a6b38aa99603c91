package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Migration is one step of the schema, for teams that apply SQL with a tool of
// their own and open with store.MigrateCheck.
type Migration struct {
	// Version is the schema's number after the step.
	Version int
	// Oldest is the oldest build that can use the schema after the step, as the
	// number of the newest step it knows. It lets two builds run side by side.
	Oldest int
	// Name says what the step is about.
	Name string
	// SQL is the whole step, including the note of its version. It runs in one
	// transaction and makes the schema if it is not there.
	SQL string
}

//go:embed schema/*.sql
var schemaFiles embed.FS

// Steps are only ever added. A step that an older build cannot live with raises
// Oldest; that build then refuses the schema with ErrSchemaNewer.
var steps = []Migration{
	{Version: 1, Oldest: 1, Name: "jobs"},
	{Version: 2, Oldest: 1, Name: "streams"},
}

const versionTable = `CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE pawl.version (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    version int NOT NULL,
    oldest  int NOT NULL -- the oldest build, by the newest step it knows, that may use this schema
);
`

// noteVersion ends a step.
const noteVersion = `
INSERT INTO pawl.version (version, oldest) VALUES (%d, %d)
ON CONFLICT (one) DO UPDATE SET version = excluded.version, oldest = excluded.oldest;
`

// Migrations returns every step in order, written for a schema of that name.
func Migrations(schema string) []Migration {
	quoted := pgx.Identifier{schema}.Sanitize()
	list := make([]Migration, len(steps))
	for i, m := range steps {
		text, err := schemaFiles.ReadFile(fmt.Sprintf("schema/%04d_%s.sql", m.Version, m.Name))
		if err != nil { // embedded: a step without its file does not pass the tests
			panic("postgres: " + err.Error())
		}
		m.SQL = string(text) + fmt.Sprintf(noteVersion, m.Version, m.Oldest)
		if i == 0 {
			m.SQL = versionTable + "\n" + m.SQL
		}
		m.SQL = strings.NewReplacer("pawl.", quoted+".", "{schema}", quoted).Replace(m.SQL)
		list[i] = m
	}
	return list
}

// migrate checks the schema and brings it up to date where that is allowed.
// Processes that open at once do it one after the other: the version is read
// again under a lock.
func (s *Store) migrate(ctx context.Context) error {
	if s.given.Migrate == store.MigrateOff {
		return nil
	}
	version, err := s.schemaVersion(ctx)
	if err != nil {
		return err
	}
	newest := steps[len(steps)-1].Version
	switch {
	case version.Version > newest && version.Oldest > newest:
		return fmt.Errorf("open %s: %w: it has schema %d, which needs a build that knows %d; this one knows %d", s.owner(), store.ErrSchemaNewer, version.Version, version.Oldest, newest)
	case version.Version >= newest:
		return nil
	case s.given.Migrate == store.MigrateCheck:
		return fmt.Errorf("open %s: %w: it has schema %d, this build needs %d", s.owner(), store.ErrSchemaOlder, version.Version, newest)
	}
	return s.pg.Retry(ctx, "migrate", pg.Always, func(ctx context.Context, _ bool) error { return s.applyMigrations(ctx) })
}

// schemaVersion reads the numbers of the schema; zeros when there is none.
func (s *Store) schemaVersion(ctx context.Context) (version Migration, err error) {
	err = s.pg.Retry(ctx, "open", pg.Reading, func(ctx context.Context, _ bool) error {
		version, err = readVersion(ctx, s, func(st *pg.Statement) error { return s.pg.Send(ctx, s.pg.Work, nil, st) })
		return err
	})
	return version, err
}

// findVersion reads the catalog itself: to_regclass answers from a cache of the
// server that does not learn what was committed while we waited for the lock.
const findVersion = `SELECT EXISTS (
	SELECT
	FROM pg_class AS c
	JOIN pg_namespace AS n ON n.oid = c.relnamespace
	WHERE n.nspname = $1 AND c.relname = 'version'
)`

func readVersion(ctx context.Context, s *Store, run func(*pg.Statement) error) (version Migration, err error) {
	found := false
	err = run(&pg.Statement{Text: findVersion, Args: []any{s.options.Schema}, Each: func(scan pg.Scan) error { return scan(&found) }})
	if err != nil || !found {
		return version, err
	}
	err = run(&pg.Statement{Text: "SELECT version, oldest FROM pawl.version", Each: func(scan pg.Scan) error { return scan(&version.Version, &version.Oldest) }})
	if pg.HasCode(err, "42703") { // no such column
		err = pg.Fault{Err: fmt.Errorf("%w: it has a table \"version\" of somebody else: %w", store.ErrForeign, err)}.AsError()
	}
	return version, err
}

// migrateLock is the advisory lock of all migrations: the name of the schema,
// hashed, beside a number of Pawl's own.
const migrateLock = "SELECT pg_advisory_xact_lock(7340, hashtext($1))"

func (s *Store) applyMigrations(ctx context.Context) error {
	conn, err := s.pg.Work.Acquire(ctx)
	if err != nil {
		return pg.Acquired(ctx, err)
	}
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: pg.BeginText})
	if err != nil {
		return pg.Judge(ctx, err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, pg.SetFreeText); err != nil {
		return pg.Judge(ctx, err)
	}
	if _, err := tx.Exec(ctx, migrateLock, s.options.Schema); err != nil {
		return pg.Judge(ctx, err)
	}
	// Another process may have done it meanwhile.
	version, err := readVersion(ctx, s, func(st *pg.Statement) error { return s.pg.Inside(tx).Run(ctx, st) })
	if err != nil {
		return err
	}
	for _, m := range Migrations(s.options.Schema) {
		if m.Version <= version.Version {
			continue
		}
		text := m.SQL
		if m.Version == 1 {
			if text, err = s.withoutSchema(ctx, tx, text); err != nil {
				return err
			}
		}
		// One string of several statements goes by the simple protocol.
		if _, err := tx.Conn().PgConn().Exec(ctx, text).ReadAll(); err != nil {
			if pg.HasCode(err, "42P07") {
				return fmt.Errorf("%w: schema step %d: %w", store.ErrForeign, m.Version, err)
			}
			return pg.Judge(ctx, fmt.Errorf("schema step %d: %w", m.Version, err))
		}
	}
	return pg.Judge(ctx, tx.Commit(ctx))
}

// withoutSchema leaves CREATE SCHEMA out where the schema is there: it needs a
// right on the database that the owner of the schema may not have.
func (s *Store) withoutSchema(ctx context.Context, tx pgx.Tx, text string) (string, error) {
	var there bool
	err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", s.options.Schema).Scan(&there)
	if err != nil {
		return "", pg.Judge(ctx, err)
	}
	if !there {
		return text, nil
	}
	_, rest, ok := strings.Cut(text, ";\n")
	if !ok {
		return "", errors.New("postgres: the first step does not begin with its schema")
	}
	return rest, nil
}
