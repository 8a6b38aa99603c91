package need

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	connection, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close(context.Background()) })
	return connection
}

func run(t *testing.T, connection *pgx.Conn, statement string, args ...any) {
	t.Helper()
	if _, err := connection.Exec(context.Background(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func value[T any](t *testing.T, connection *pgx.Conn, query string, args ...any) T {
	t.Helper()
	var v T
	if err := connection.QueryRow(context.Background(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// Tests beside each other make the same table, and each sees its own.
func TestPostgres_GivesEachTestItsOwnSchema(t *testing.T) {
	for _, content := range []string{"one", "two", "three"} {
		t.Run(content, func(t *testing.T) {
			t.Parallel()
			db := Postgres(t)
			c := connect(t, db.URL)
			if got := value[string](t, c, "SELECT current_schema()"); got != db.Schema {
				t.Errorf("connected to schema %q, want %q", got, db.Schema)
			}
			run(t, c, "CREATE TABLE job (content text)")
			run(t, c, "INSERT INTO job VALUES ($1)", content)
			if got := value[string](t, c, "SELECT string_agg(content, ',') FROM "+db.Schema+".job"); got != content {
				t.Errorf("table holds %q, want %q alone", got, content)
			}
		})
	}
}

func TestPostgres_DropsTheSchemaAtTheEnd(t *testing.T) {
	var db Database
	t.Run("Inner", func(t *testing.T) {
		db = Postgres(t)
		run(t, connect(t, db.URL), "CREATE TABLE job (content text)")
	})
	c := connect(t, Postgres(t).Server)
	if n := value[int](t, c, "SELECT count(*) FROM pg_namespace WHERE nspname = $1", db.Schema); n != 0 {
		t.Errorf("schema %q is still there", db.Schema)
	}
}

func TestPostgres_IsDurable(t *testing.T) {
	c := connect(t, Postgres(t).URL)
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		if got := value[string](t, c, "SELECT current_setting($1)", setting); got != "on" {
			t.Errorf("%s is %q: tests of durability would prove nothing", setting, got)
		}
	}
}

// Whatever way a server goes down, it comes back at the same address with what was committed.
func TestPostgresServer_ComesBack(t *testing.T) {
	server := PostgresServer(t, "log_min_messages=info")
	run(t, connect(t, server.URL()), "CREATE TABLE job (content text)")
	address := server.URL()
	for _, down := range []struct {
		name    string
		end     func() error
		recover bool
	}{
		{"Stop", server.Stop, false},
		{"Abort", server.Abort, true},
		{"Kill", server.Kill, true},
	} {
		run(t, connect(t, address), "INSERT INTO job VALUES ($1)", down.name)
		idle, pid := connect(t, address), server.PID() // a client that is there when it happens
		if err := down.end(); err != nil {
			t.Fatalf("%s: %v", down.name, err)
		}
		if server.PID() != 0 {
			t.Errorf("%s: process %d still counts as running", down.name, server.PID())
		}
		var died *pgconn.PgError
		if _, err := idle.Exec(context.Background(), "SELECT 1"); err == nil || errors.As(err, &died) && died.Code[:2] != "57" {
			t.Errorf("%s: the old connection says %v", down.name, err)
		}
		if err := server.Start(); err != nil {
			t.Fatalf("%s: %v", down.name, err)
		}
		if server.PID() == pid || server.URL() != address {
			t.Errorf("%s: process %d at %s, before %d at %s", down.name, server.PID(), server.URL(), pid, address)
		}
		if got := strings.Contains(server.Log(), "not properly shut down"); got != down.recover {
			t.Errorf("%s: recovered: %t, want %t\n%s", down.name, got, down.recover, server.Log())
		}
	}
	if got := value[string](t, connect(t, address), "SELECT string_agg(content, ',' ORDER BY content) FROM job"); got != "Abort,Kill,Stop" {
		t.Errorf("after the restarts: %q", got)
	}
	if err := server.Start(); err == nil {
		t.Error("a second Start of a running server succeeds")
	}
}

// A schema goes from one test to the next, emptied; one whose test has failed does not.
func TestReusedPostgres_IsEmptiedForTheNext(t *testing.T) {
	address(t, "postgres", postgresVariable)
	const empty = "DELETE FROM job"
	var first Database
	t.Run("First", func(t *testing.T) {
		first = ReusedPostgres(t, empty)
		c := connect(t, first.URL)
		run(t, c, "CREATE TABLE job (content text)")
		run(t, c, "INSERT INTO job VALUES ('left')")
	})
	t.Run("Second", func(t *testing.T) {
		second := ReusedPostgres(t, empty)
		if second.Schema != first.Schema {
			t.Errorf("it has schema %q, want that of the first, %q", second.Schema, first.Schema)
		}
		if n := value[int](t, connect(t, second.URL), "SELECT count(*)::int FROM job"); n != 0 {
			t.Errorf("%d rows are left", n)
		}
		if third := ReusedPostgres(t, empty); third.Schema == first.Schema {
			t.Error("two tests have the same schema")
		} else {
			run(t, connect(t, third.URL), "CREATE TABLE job (content text)")
		}
	})
	if err := DropReused(); err != nil {
		t.Fatal(err)
	}
	server := connect(t, first.Server)
	if n := value[int](t, server, "SELECT count(*)::int FROM pg_namespace WHERE nspname = $1", first.Schema); n != 0 {
		t.Error("its schema is still there")
	}
}
