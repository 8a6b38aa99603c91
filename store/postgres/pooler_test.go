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
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/internal/need/child"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres"
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
	shelf   shelf
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
	p := &pooler{address: &address, server: db.Server, prefix: db.Schema}
	direct := connect(t, db.Server)
	t.Cleanup(func() {
		for n := range p.shelf.made {
			if _, err := direct.Exec(context.Background(), "DROP SCHEMA IF EXISTS "+p.schema(n)+" CASCADE"); err != nil {
				t.Error(err)
			}
		}
	})
	return p
}

func (p *pooler) schema(n int) string { return fmt.Sprintf("%s_%d", p.prefix, n) }

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

// shelf is where tests leave numbered databases for others: making one takes longer than
// most cases of the suite.
type shelf struct {
	mu   sync.Mutex
	made int
	free []int
}

// take gives the test one that was left and emptied, or makes the next. When the test has
// failed it is not used again.
func (s *shelf) take(t *testing.T, make, empty func(int) error) int {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.made
	if last := len(s.free) - 1; last >= 0 {
		n, s.free = s.free[last], s.free[:last]
	} else if s.made++; true {
		if err := make(n); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		if err := empty(n); err != nil {
			t.Error(err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free = append(s.free, n)
	})
	return n
}

// database makes an empty one and returns its address.
func (p *pooler) database(t *testing.T) *url.URL {
	t.Helper()
	direct := connect(t, p.server)
	execute := func(statements string) error {
		_, err := direct.Exec(context.Background(), statements)
		return err
	}
	n := p.shelf.take(t, func(n int) error {
		if n >= maxPooled {
			return fmt.Errorf("more than %d tests want a database behind the pooler", maxPooled)
		}
		return execute("CREATE SCHEMA " + p.schema(n))
	}, func(n int) error {
		return execute("SET search_path = " + p.schema(n) + "; " + postgres.Emptying + "RESET search_path")
	})
	address := *p.address
	address.Path = fmt.Sprintf("/pooled_%d", n)
	query := address.Query()
	query.Set("pawl_schema", p.schema(n))
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
