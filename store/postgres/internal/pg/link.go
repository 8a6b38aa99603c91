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
	*Roles // nil before Open

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
	Users     *pgxpool.Pool // the caller's, for transactions of users
	Schema    string        // its name
	PollOnly  bool
	OnlyPool  bool
	ReadLimit time.Duration // ends a list, a count or a search
}

// NewLink makes what needs no server yet.
func NewLink(c LinkConfig) *Link {
	l := &Link{LinkConfig: c, TryTimeout: attemptLimit}
	l.Settled = settles(c.PollOnly, c.OnlyPool, c.Users.Config())
	l.Texts = texts{Schema: pgx.Identifier{c.Schema}.Sanitize(), clock: &l.Clock}
	return l
}

// Open connects with so many connections, which its roles share, and looks at the
// server. Who comes second finds it done; what failed is tried again.
func (l *Link) Open(ctx context.Context, connections int, logger *slog.Logger) error {
	l.opening.Lock()
	defer l.opening.Unlock()
	if l.open {
		return nil
	}
	if l.Roles == nil {
		pool, err := l.connect(ctx, connections)
		if err != nil {
			return err
		}
		l.Roles = Share(pool, connections)
	}
	if err := l.examine(ctx, logger); err != nil {
		return err
	}
	l.open = true
	return nil
}

// Close ends the store's own pool.
func (l *Link) Close() {
	if l.Roles != nil && l.Work.Pool != l.Users {
		l.Work.Close()
	}
}
