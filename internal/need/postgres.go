package need

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
const dropLimit = time.Minute

// Postgres gives the test an empty schema of its own on the shared server. Everything else of a server is shared with
// the tests that run beside it: roles, channels of NOTIFY, advisory locks, the horizon of vacuum. A test that needs
// those for itself takes PostgresServer.
func Postgres(t testing.TB) Database {
	t.Helper()
	db := create(t)
	t.Cleanup(func() {
		if err := drop(db); err != nil {
			t.Errorf("need: dropping the test's schema (does a connection hold locks on it?): %v", err)
		}
	})
	return db
}

func create(t testing.TB) Database {
	t.Helper()
	server := address(t, "postgres", postgresVariable)
	schema := unique(t)
	if err := execute(server, "CREATE SCHEMA "+pgx.Identifier{schema}.Sanitize()); err != nil {
		t.Fatalf("need: %s: %v", postgresVariable, err)
	}
	return Database{URL: withSearchPath(t, server, schema), Server: server, Schema: schema}
}

func drop(db Database) error {
	return execute(db.Server, "DROP SCHEMA "+pgx.Identifier{db.Schema}.Sanitize()+" CASCADE")
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
	return started(t, func(c pgserver.Config) (*pgserver.Server, error) {
		c.Settings = settings
		return pgserver.New(c)
	})
}

// PostgresStandby gives the test a standby of a server of its own, which reads what the primary commits from a port: the
// primary's, or that of a way to it which the test can cut.
func PostgresStandby(t testing.TB, port int, settings ...string) *pgserver.Server {
	t.Helper()
	return started(t, func(c pgserver.Config) (*pgserver.Server, error) {
		c.Settings = settings
		return pgserver.NewStandby(c, port)
	})
}

// ClockedPostgres gives the test a Postgres of its own whose clock it can set: step says how far off the clock is from
// then on. Everything in the server sees the step, also sessions that are open; only waits are not hurried, since what
// measures them cannot be set in a real machine either.
func ClockedPostgres(t testing.TB, settings ...string) (server *pgserver.Server, step func(off time.Duration)) {
	t.Helper()
	preload, err := exec.Command(Tool(t, "faketime"), "-f", "+0", "printenv", "LD_PRELOAD").Output()
	if err != nil {
		t.Fatalf("need: faketime: %v", err)
	}
	dir := openDir(t)
	file := filepath.Join(dir, "clock")
	step = func(off time.Duration) {
		t.Helper()
		next := filepath.Join(dir, "next")
		err := os.WriteFile(next, fmt.Appendf(nil, "%+.3f\n", off.Seconds()), 0o644)
		if err = errors.Join(err, os.Rename(next, file)); err != nil { // never half a file
			t.Fatalf("need: %v", err)
		}
	}
	step(0)
	return started(t, func(c pgserver.Config) (*pgserver.Server, error) {
		c.Settings = settings
		c.Env = []string{"LD_PRELOAD=" + strings.TrimSpace(string(preload)), "FAKETIME_TIMESTAMP_FILE=" + file,
			"FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"}
		return pgserver.New(c)
	}), step
}

// started makes and starts a server that is removed when the test ends.
func started(t testing.TB, make func(pgserver.Config) (*pgserver.Server, error)) *pgserver.Server {
	t.Helper()
	bin := PostgresBin(t)
	server, err := make(pgserver.Config{Bin: bin, Dir: filepath.Join(openDir(t), "pg")})
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

// openDir is a folder that the user can reach whom Postgres runs as.
func openDir(t testing.TB) string {
	t.Helper()
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
	return dir
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
