package pg

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
	Config
	Work     *pgxpool.Pool // enqueue, claim, reading
	Reserved *pgxpool.Pool // heartbeat, finish, upkeep

	explicit   bool        // transactions have to say that they are READ COMMITTED
	Settled    bool        // sessions keep the store's settings
	pooled     atomic.Bool // a pooler was met on the way to the server
	Namespace  int32
	TryTimeout time.Duration // bounds one try
	Clock      Clock
	Texts      texts

	calls  sync.WaitGroup // under way
	gate   sync.RWMutex   // guards closed against calls that begin
	closed bool
	Ending context.Context // ends when Close has waited for the calls
	End    context.CancelFunc
}

// Config says how a database is reached.
type Config struct {
	Users    *pgxpool.Pool // the caller's, for transactions of users
	Schema   string        // its name
	PollOnly bool
	OnlyPool bool
	Logger   *slog.Logger
}

// New makes what needs no server yet.
func New(c Config) *DB {
	s := &DB{Config: c, TryTimeout: attemptLimit}
	s.Settled = settles(c.PollOnly, c.OnlyPool, c.Users.Config())
	s.Texts = texts{Schema: pgx.Identifier{c.Schema}.Sanitize(), clock: &s.Clock}
	s.Ending, s.End = context.WithCancel(context.Background())
	return s
}

// Open connects with so many connections of each kind, and looks at the server.
func (s *DB) Open(ctx context.Context, working, reserved int) (err error) {
	if s.Work, err = s.connect(ctx, working); err != nil {
		return err
	}
	if s.Reserved, err = s.connect(ctx, reserved); err != nil {
		return err
	}
	return s.examine(ctx)
}

// Refuse refuses calls from now on.
func (s *DB) Refuse() {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.closed = true
}

// Await waits for the calls under way.
func (s *DB) Await() { s.calls.Wait() }

// Close ends the store's own pools.
func (s *DB) Close() {
	for _, p := range []*pgxpool.Pool{s.Work, s.Reserved} {
		if p != nil && p != s.Users {
			p.Close()
		}
	}
}
