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

// Link is the connections to one database, and how statements go over them. All
// namespaces of a database that a process opens together share one: it knows the
// schema, and no namespace.
type Link struct {
	LinkConfig
	Work     *pgxpool.Pool // enqueue, claim, reading
	Reserved *pgxpool.Pool // heartbeat, finish, upkeep

	explicit   bool          // transactions have to say that they are READ COMMITTED
	Settled    bool          // sessions keep the store's settings
	pooled     atomic.Bool   // a pooler was met on the way to the server
	TryTimeout time.Duration // bounds one try
	Clock      Clock
	Texts      texts

	opening sync.Mutex
	open    bool
}

// LinkConfig says how a database is reached.
type LinkConfig struct {
	Users    *pgxpool.Pool // the caller's, for transactions of users
	Schema   string        // its name
	PollOnly bool
	OnlyPool bool
}

// NewLink makes what needs no server yet.
func NewLink(c LinkConfig) *Link {
	l := &Link{LinkConfig: c, TryTimeout: attemptLimit}
	l.Settled = settles(c.PollOnly, c.OnlyPool, c.Users.Config())
	l.Texts = texts{Schema: pgx.Identifier{c.Schema}.Sanitize(), clock: &l.Clock}
	return l
}

// Open connects with so many connections of each kind, and looks at the server.
// Who comes second finds it done; what failed is tried again.
func (l *Link) Open(ctx context.Context, working, reserved int, logger *slog.Logger) (err error) {
	l.opening.Lock()
	defer l.opening.Unlock()
	if l.open {
		return nil
	}
	if l.Work == nil {
		if l.Work, err = l.connect(ctx, working); err != nil {
			return err
		}
	}
	if l.Reserved == nil {
		if l.Reserved, err = l.connect(ctx, reserved); err != nil {
			return err
		}
	}
	if err := l.examine(ctx, logger); err != nil {
		return err
	}
	l.open = true
	return nil
}

// Close ends the store's own pools.
func (l *Link) Close() {
	for _, p := range []*pgxpool.Pool{l.Work, l.Reserved} {
		if p != nil && p != l.Users {
			p.Close()
		}
	}
}
