package postgres_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/internal/need/child"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/storetest"
)

// maxPooled is how many databases a pooler can name: its configuration is
// written before the tests that use it are known.
const maxPooled = 600

// pooler is a pgbouncer in transaction mode in front of the shared server. It
// refuses a search_path at connect, so each of its names has one set: the name
// pooled_7 is the test's database with the schema <prefix>_7 as search_path.
type pooler struct {
	address *url.URL
	server  string
	prefix  string
	named   atomic.Int32
}

func startPooler(t *testing.T) *pooler {
	t.Helper()
	program := need.Tool(t, "pgbouncer")
	db := need.Postgres(t)
	server, err := url.Parse(db.Server)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	var config strings.Builder
	config.WriteString("[databases]\n")
	for n := range maxPooled {
		fmt.Fprintf(&config, "pooled_%d = host=%s port=%s user=%s dbname=%s connect_query='SET search_path = %s_%d'\n",
			n, server.Hostname(), server.Port(), server.User.Username(), strings.TrimPrefix(server.Path, "/"), db.Schema, n)
	}
	// Few connections for many clients: neighbours in a pool get each other's.
	fmt.Fprintf(&config, `[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 1000
default_pool_size = 5
server_idle_timeout = 1
`, port)

	// Not t.TempDir: its parent is closed to the user that the pooler runs as when the test is root.
	dir, err := os.MkdirTemp("", "pawl-pooler-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(config.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	credential, err := child.Unprivileged("postgres")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	process, log, err := child.Serve(cmd, syscall.SIGKILL, "process up")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Signal(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		<-process.Done()
		if t.Failed() {
			t.Log(log)
		}
	})
	address := *server
	address.Host = fmt.Sprintf("127.0.0.1:%d", port)
	return &pooler{address: &address, server: db.Server, prefix: db.Schema}
}

// fresh makes an empty database behind the pooler.
func (p *pooler) fresh(t *testing.T) store.Opener {
	t.Helper()
	address := p.database(t)
	query := address.Query()
	query.Set("pawl_poll_only", "true")
	address.RawQuery = query.Encode()
	return parse(t, address)
}

func parse(t *testing.T, address *url.URL) store.Opener {
	t.Helper()
	opener, err := store.Parse(address.String())
	if err != nil {
		t.Fatal(err)
	}
	return opener
}

// database makes an empty one and returns its address.
func (p *pooler) database(t *testing.T) *url.URL {
	t.Helper()
	n := p.named.Add(1) - 1
	if n >= maxPooled {
		t.Fatalf("more than %d tests want a database behind the pooler", maxPooled)
	}
	schema := fmt.Sprintf("%s_%d", p.prefix, n)
	direct := connect(t, p.server)
	if _, err := direct.Exec(t.Context(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := direct.Exec(context.Background(), "DROP SCHEMA "+schema+" CASCADE"); err != nil {
			t.Error(err)
		}
	})
	address := *p.address
	address.Path = fmt.Sprintf("/pooled_%d", n)
	query := address.Query()
	query.Set("pawl_schema", schema)
	address.RawQuery = query.Encode()
	return &address
}

// A pooler that the store was not told of: the next client gets the session.
func TestP8_NothingIsLeftInASessionOfAPooler(t *testing.T) {
	address := startPooler(t).database(t)
	s, err := parse(t, address).Open(t.Context(), store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Enqueue(t.Context(), []job.Draft{{ID: job.NewID(), Queue: "q", Kind: "k", Priority: 5, Attempts: 1}}); err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	query.Del("pawl_schema")
	address.RawQuery = query.Encode()
	conn, err := pgx.Connect(t.Context(), address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var left []string
	rows, err := conn.Query(t.Context(), "SELECT name || ' = ' || setting FROM pg_settings WHERE source = 'session' AND name <> 'search_path'", pgx.QueryExecModeExec)
	if err == nil {
		left, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("the store left %v", left)
	}
}

// Behind a pooler in transaction mode nothing may live in the session: no
// prepared statement, no LISTEN, no setting, no lock.
func TestConformance_BehindAPooler(t *testing.T) {
	t.Parallel()
	p := startPooler(t)
	storetest.Run(t, storetest.Declared("postgres poll-only"), p.fresh)
}
