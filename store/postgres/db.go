package postgres

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB is the connections to one database, and how statements go over them. It
// knows the schema and the namespace that statements are about, and no table.
type DB struct {
	dbConfig
	work     *pgxpool.Pool // enqueue, claim, reading
	reserved *pgxpool.Pool // heartbeat, finish, upkeep

	explicit   bool        // transactions have to say that they are READ COMMITTED
	settled    bool        // sessions keep the store's settings
	pooled     atomic.Bool // a pooler was met on the way to the server
	namespace  int32
	tryTimeout time.Duration // bounds one try
	clock      clock
	texts      texts

	calls  sync.WaitGroup // under way
	gate   sync.RWMutex   // guards closed against calls that begin
	closed bool
	ending context.Context // ends when Close has waited for the calls
	end    context.CancelFunc
}

// dbConfig says how a database is reached.
type dbConfig struct {
	users    *pgxpool.Pool // the caller's, for transactions of users
	schema   string        // its name
	pollOnly bool
	onlyPool bool
	logger   *slog.Logger
}

// newDB makes what needs no server yet.
func newDB(c dbConfig) *DB {
	s := &DB{dbConfig: c, tryTimeout: attemptLimit}
	s.settled = settles(c.pollOnly, c.onlyPool, c.users.Config())
	s.texts = texts{schema: pgx.Identifier{c.schema}.Sanitize(), clock: &s.clock}
	s.ending, s.end = context.WithCancel(context.Background())
	return s
}

// open connects with so many connections of each kind, and looks at the server.
func (s *DB) open(ctx context.Context, working, reserved int) (err error) {
	if s.work, err = s.connect(ctx, working); err != nil {
		return err
	}
	if s.reserved, err = s.connect(ctx, reserved); err != nil {
		return err
	}
	return s.examine(ctx)
}

// refuse refuses calls from now on.
func (s *DB) refuse() {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.closed = true
}

// await waits for the calls under way.
func (s *DB) await() { s.calls.Wait() }

// close ends the store's own pools.
func (s *DB) close() {
	for _, p := range []*pgxpool.Pool{s.work, s.reserved} {
		if p != nil && p != s.users {
			p.Close()
		}
	}
}
