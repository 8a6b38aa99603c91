package need

import (
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/internal/need/pgserver"
)

// Database is one test's part of the shared Postgres.
type Database struct {
	URL    string // connects with Schema as search_path
	Server string // the same database without a search_path, for poolers, which refuse one at connect, and for new roles
	Schema string // empty at first; dropped with all it holds when the test ends
}

// dropLimit bounds the wait for a connection that the test left open with locks on the schema.
const dropLimit = 20 * time.Second

// Postgres gives the test an empty schema of its own on the shared server. Everything else of a server is shared with
// the tests that run beside it: roles, channels of NOTIFY, advisory locks, the horizon of vacuum. A test that needs
// those for itself takes PostgresServer.
func Postgres(t testing.TB) Database {
	t.Helper()
	server := address(t, "postgres", postgresVariable)
	schema := unique(t)
	if err := execute(server, "CREATE SCHEMA "+pgx.Identifier{schema}.Sanitize()); err != nil {
		t.Fatalf("need: %s: %v", postgresVariable, err)
	}
	t.Cleanup(func() {
		if err := execute(server, "DROP SCHEMA "+pgx.Identifier{schema}.Sanitize()+" CASCADE"); err != nil {
			t.Errorf("need: dropping the test's schema (does a connection hold locks on it?): %v", err)
		}
	})
	return Database{URL: withSearchPath(t, server, schema), Server: server, Schema: schema}
}

func execute(server, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), dropLimit)
	defer cancel()
	connection, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	_, err = connection.Exec(ctx, statement)
	return errors.Join(err, connection.Close(ctx))
}

func withSearchPath(t testing.TB, server, schema string) string {
	t.Helper()
	address, err := url.Parse(server)
	if err != nil {
		t.Fatalf("need: %s is not a URL: %v", postgresVariable, err)
	}
	query := address.Query()
	query.Set("search_path", schema)
	address.RawQuery = query.Encode()
	return address.String()
}

// PostgresServer gives the test a running Postgres of its own, to be stopped, aborted, killed and started again. It is
// removed when the test ends. More settings are given as name=value. It costs about a second: prefer Postgres.
func PostgresServer(t testing.TB, settings ...string) *pgserver.Server {
	t.Helper()
	bin := PostgresBin(t)
	// Not t.TempDir: its parent is closed to the user that Postgres runs as when the test is root.
	dir, err := os.MkdirTemp("", "pawl-pg-")
	if err != nil {
		t.Fatalf("need: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("need: %v", err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatalf("need: %v", err)
	}
	server, err := pgserver.New(pgserver.Config{Bin: bin, Dir: filepath.Join(dir, "pg"), Settings: settings})
	if err != nil {
		t.Fatalf("need: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Remove(); err != nil {
			t.Errorf("need: %v", err)
		}
	})
	if err := server.Start(); err != nil {
		t.Fatalf("need: %v", err)
	}
	return server
}

// PostgresBin is the folder of Postgres' programs, for a test that starts them itself (pg_basebackup for a standby).
func PostgresBin(t testing.TB) string {
	t.Helper()
	bin := os.Getenv(postgresBinVariable)
	if bin == "" {
		postgres, err := exec.LookPath("postgres")
		if err == nil {
			postgres, err = filepath.EvalSymlinks(postgres)
		}
		if err != nil {
			missing(t, "no Postgres programs: "+postgresBinVariable+" is not set and postgres is not in PATH")
		}
		bin = filepath.Dir(postgres)
	}
	record(t, "postgres")
	return bin
}
