package pgproxy_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/internal/need/pgproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

// table is one table of a test, seen past the proxy.
type table struct {
	t    *testing.T
	conn *pgx.Conn
}

func open(t *testing.T) (*pgproxy.Proxy, table) {
	t.Helper()
	db := need.Postgres(t)
	direct := connect(t, db.URL)
	if _, err := direct.Exec(t.Context(), "CREATE TABLE kept (n integer PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	return need.Proxy(t, db.URL), table{t, direct}
}

func (k table) rows() (n int) {
	k.t.Helper()
	if err := k.conn.QueryRow(k.t.Context(), "SELECT count(*) FROM kept").Scan(&n); err != nil {
		k.t.Fatal(err)
	}
	return n
}

// The ways in which pgx commits a row.
var ways = map[string]func(ctx context.Context, c *pgx.Conn) error{
	"statement": func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "INSERT INTO kept VALUES ($1)", 1)
		return err
	},
	"simple query": func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "INSERT INTO kept VALUES (1)", pgx.QueryExecModeSimpleProtocol)
		return err
	},
	"batch": func(ctx context.Context, c *pgx.Conn) error {
		b := &pgx.Batch{}
		b.Queue("SELECT 1")
		b.Queue("INSERT INTO kept VALUES ($1)", 1)
		return c.SendBatch(ctx, b).Close()
	},
	"batch that commits": func(ctx context.Context, c *pgx.Conn) error {
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		b.Queue("INSERT INTO kept VALUES ($1)", 1)
		b.Queue("COMMIT")
		return c.SendBatch(ctx, b).Close()
	},
	"transaction": func(ctx context.Context, c *pgx.Conn) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO kept VALUES ($1)", 1)
			return err
		})
	},
	"copy": func(ctx context.Context, c *pgx.Conn) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			_, err := tx.CopyFrom(ctx, pgx.Identifier{"kept"}, []string{"n"}, pgx.CopyFromRows([][]any{{1}}))
			return err
		})
	},
}

// warm makes pgx prepare its statements, so that what is judged is a commit.
func warm(t *testing.T, c *pgx.Conn, way func(context.Context, *pgx.Conn) error, k table) {
	t.Helper()
	if err := way(t.Context(), c); err != nil {
		t.Fatal("delivered:", err)
	}
	if k.rows() != 1 {
		t.Fatal("delivered, and there is no row")
	}
	if _, err := k.conn.Exec(t.Context(), "TRUNCATE kept"); err != nil {
		t.Fatal(err)
	}
}

// Whatever the way, the server has committed exactly when the fate says so, and the client learns nothing.
func TestProxy_FatesOfEveryWay(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			for _, fate := range []pgproxy.Fate{pgproxy.Cut, pgproxy.Mute, pgproxy.Drop, pgproxy.Late} {
				t.Run(fate.String(), func(t *testing.T) {
					p, k := open(t)
					c := connect(t, p.URL())
					warm(t, c, way, k)
					var seen []string
					p.Judge(func(c pgproxy.Commit) pgproxy.Fate {
						seen = c.Statements
						return fate
					})
					ctx := t.Context()
					if fate == pgproxy.Mute { // its own limit is all that ends the call
						limited, cancel := context.WithCancel(ctx)
						defer cancel()
						go func() {
							_ = p.Await(limited, pgproxy.Mute, 1)
							cancel()
						}()
						ctx = limited
					}
					err := way(ctx, c)
					p.Judge(nil)
					var refused *pgconn.PgError
					if err == nil || errors.As(err, &refused) {
						t.Fatalf("%v, want an error of the connection", err)
					}
					if text := strings.ToLower(strings.Join(seen, "; ")); !strings.Contains(text, "kept") {
						t.Errorf("judged %q, want the statement that writes the row", text)
					}
					if n := p.Lost(fate); n != 1 {
						t.Errorf("%d commits met the fate, want one", n)
					}
					switch fate {
					case pgproxy.Drop:
						if k.rows() != 0 {
							t.Error("the server committed")
						}
					case pgproxy.Late:
						if k.rows() != 0 {
							t.Error("the server committed before its time")
						}
						if n := p.Release(); n != 1 {
							t.Errorf("%d commits were late, want one", n)
						}
						fallthrough
					default:
						if k.rows() != 1 {
							t.Error("the server did not commit")
						}
					}
				})
			}
		})
	}
}

// An error of the server is delivered: no commit was lost.
func TestProxy_RefusedCommitsAreDelivered(t *testing.T) {
	p, k := open(t)
	if _, err := k.conn.Exec(t.Context(), "INSERT INTO kept VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	p.Judge(func(pgproxy.Commit) pgproxy.Fate { return pgproxy.Cut })
	for name, way := range ways {
		var refused *pgconn.PgError
		if err := way(t.Context(), connect(t, p.URL())); !errors.As(err, &refused) || refused.Code != "23505" {
			t.Errorf("%s: %v, want a unique violation", name, err)
		}
	}
	if n := p.Lost(pgproxy.Cut); n != 0 {
		t.Errorf("%d commits were lost, want none", n)
	}
	if n := p.Refused("23505"); n != len(ways) {
		t.Errorf("%d unique violations, want %d", n, len(ways))
	}
}

// Statements of an open transaction are not judged, and neither is one that was rolled back: only commits are.
func TestProxy_JudgesCommitsOnly(t *testing.T) {
	p, k := open(t)
	c := connect(t, p.URL())
	judged := 0
	p.Judge(func(pgproxy.Commit) pgproxy.Fate {
		judged++
		return pgproxy.Deliver
	})
	tx, err := c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "INSERT INTO kept VALUES ($1)", 1); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if judged != 0 || k.rows() != 0 {
		t.Errorf("%d judged, %d rows; want none", judged, k.rows())
	}
}

// What a slow link has not carried in time the server does not have; a fast one carries it.
func TestJ32_SlowLink(t *testing.T) {
	proxy, k := open(t)
	large := strings.Repeat("x", 64<<20) // far more than the sockets hold
	insert := func(n int) error {
		c := connect(t, proxy.URL())
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if n == 1 {
			proxy.Throttle(1<<20, 0)
			ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
		}
		_, err := c.Exec(ctx, "INSERT INTO kept SELECT $1 WHERE length($2::text) > 0", n, large)
		return err
	}
	if err := insert(1); err == nil || k.rows() != 0 {
		t.Errorf("64 MiB at 1 MiB/s within 2 s: %v, %d rows", err, k.rows())
	}
	proxy.Throttle(0, 0)
	if err := insert(2); err != nil || k.rows() != 1 {
		t.Errorf("%v, %d rows", err, k.rows())
	}
	if sent := proxy.Sent(); sent < 64<<20 {
		t.Errorf("%d bytes sent", sent)
	}
}
