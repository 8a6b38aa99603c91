package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

type opener struct {
	pool    *pgxpool.Pool
	options Options
}

// Store is one namespace of one Postgres schema.
type Store struct {
	options  Options
	schema   string // its name
	pollOnly bool
	onlyPool bool

	keepFor   func(queue string) job.Keep
	maxLost   int
	busyLimit time.Duration
	sorting   int // how many connections sort shared commits out
	frontier  frontier
	logger    *slog.Logger
	settings  store.Settings

	users    *pgxpool.Pool // the caller's, for transactions of users
	database string        // its name
	ownsPool bool          // and then Close ends it
	work     *pgxpool.Pool // enqueue, claim, reading
	reserved *pgxpool.Pool // heartbeat, finish, upkeep
	db       *sql.DB

	explicit   bool        // transactions have to say that they are READ COMMITTED
	settled    bool        // sessions keep the store's settings
	pooled     atomic.Bool // a pooler was met on the way to the server
	namespace  int32
	instance   string        // tells this store's notifications from those of others
	tryTimeout time.Duration // bounds one try
	clock      clock
	texts      texts
	frontiers  frontiers
	claims     claims
	hints      hints
	purges     purges

	plain    *gather[*enqueueCall] // enqueues that cannot meet a lock
	careful  *gather[*enqueueCall] // enqueues with a unique key or a chosen id
	blocked  blocked
	lines    lines // of calls that wait for a held key
	finisher *gather[*finishCall]
	notifier *notifier
	remover  *hintRemover
	begun    openTxs

	calls     sync.WaitGroup // under way
	gate      sync.RWMutex   // guards closed against calls that begin
	closed    bool
	ending    context.Context // ends when Close has waited for the calls
	end       context.CancelFunc
	closeOnce sync.Once
}

var (
	_ store.Store    = (*Store)(nil)
	_ store.Listener = listening{}
)

// listening is the store where the server can tell it of commits. In poll-only
// mode, or without a connection to listen on, there is no such power, and the
// engine polls.
type listening struct{ *Store }

// Listen tells of commits made by other processes, until ctx ends or the
// connection is lost.
func (l listening) Listen(ctx context.Context, hear func(store.Hint)) error {
	return l.listen(ctx, hear)
}

// Open makes the store ready for use: connections, schema, namespace.
func (o opener) Open(ctx context.Context, settings store.Settings) (store.Store, error) {
	s, err := o.prepare(settings)
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(explain("open", err), s.Close())
	}
	if !s.options.listens() {
		return s, nil
	}
	return listening{s}, nil
}

// of finds the store behind what Open returned.
func of(st store.Store) (*Store, bool) {
	switch s := st.(type) {
	case listening:
		return s.Store, true
	case *Store:
		return s, true
	}
	return nil, false
}

// prepare checks everything that can be checked without a server.
func (o opener) prepare(settings store.Settings) (*Store, error) {
	if o.pool == nil {
		return nil, job.Invalid("pool", "nil", "must be set")
	}
	options := o.options.withDefaults(settings.LostAfter)
	if settings.Namespace == "" {
		settings.Namespace = "default"
	}
	if err := errors.Join(o.options.checkGiven(), options.check(settings.LostAfter), options.checkPool(o.pool.Config()), job.CheckName("namespace", settings.Namespace)); err != nil {
		return nil, err
	}
	if settings.Logger == nil {
		settings.Logger = slog.New(slog.DiscardHandler)
	}
	if settings.Keep == nil {
		settings.Keep = func(string) job.Keep { return job.Keep{} }
	}
	if settings.MaxLost == 0 {
		settings.MaxLost = job.MaxLost
	}
	s := &Store{options: options, logger: settings.Logger, settings: settings, users: o.pool, database: o.pool.Config().ConnConfig.Database, instance: uuid.NewString(), tryTimeout: attemptLimit}
	s.settled = settles(options.PollOnly, options.OnlyPool, o.pool.Config())
	s.schema, s.pollOnly, s.onlyPool = options.Schema, options.PollOnly, options.OnlyPool
	s.keepFor, s.maxLost, s.busyLimit, s.sorting = settings.Keep, settings.MaxLost, options.BusyLimit, options.sorting()
	s.frontiers.guess = &s.clock
	s.frontier = frontier{s.frontiers.lower, s.frontiers.wake, s.frontiers.drop}
	s.texts = texts{schema: pgx.Identifier{options.Schema}.Sanitize(), clock: &s.clock}
	s.ending, s.end = context.WithCancel(context.Background())
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	var err error
	if s.work, err = s.connect(ctx, s.options.working()); err != nil {
		return err
	}
	if s.reserved, err = s.connect(ctx, s.options.Reserved); err != nil {
		return err
	}
	if err := s.examine(ctx); err != nil {
		return err
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	if err := s.bindNamespace(ctx); err != nil {
		return err
	}
	s.db = stdlib.OpenDBFromPool(s.users)
	s.plain = newGather(s, maxGathered, s.commitPlain)
	s.careful = newGather(s, maxGathered, s.commitCareful)
	s.finisher = newGather(s, maxGathered, s.commitFinishes)
	s.notifier = startNotifier(s)
	s.remover = startHintRemover(s)
	return nil
}

// bindNamespace finds or makes the number of the namespace.
func (s *Store) bindNamespace(ctx context.Context) error {
	return s.retry(ctx, "open", always, func(ctx context.Context, _ bool) error {
		find := statement{text: "SELECT id FROM pawl.namespace WHERE name = $1", args: []any{s.settings.Namespace},
			each: func(scan scan) error { return scan(&s.namespace) }}
		if err := s.send(ctx, s.work, upkeepLimits, &find); err != nil || s.namespace != 0 {
			return err
		}
		add := statement{text: "INSERT INTO pawl.namespace (name) VALUES ($1) ON CONFLICT DO NOTHING", args: []any{s.settings.Namespace}}
		return s.send(ctx, s.work, upkeepLimits, &add, &find)
	})
}

// DB is the database for the user's own rows, over the pool the store was
// opened with. Its transactions can take jobs along (WithinSQL).
func (s *Store) DB() *sql.DB { return s.db }

// Close waits for calls under way and releases everything. Transactions that are
// still open are undone.
func (s *Store) Close() (err error) {
	s.gate.Lock()
	s.closed = true
	s.gate.Unlock()
	s.closeOnce.Do(func() {
		s.calls.Wait()
		if s.notifier != nil {
			s.notifier.stop()
			s.plain.stop()
			s.careful.stop()
			s.finisher.stop()
			s.blocked.going.Wait()
		}
		s.end()
		if s.remover != nil {
			<-s.remover.stopped
		}
		s.begun.cut()
		if s.db != nil {
			_ = s.db.Close() // it owns no connection of its own
		}
		for _, p := range []*pgxpool.Pool{s.work, s.reserved} {
			if p != nil && p != s.users {
				p.Close()
			}
		}
		if s.ownsPool {
			err = closePool(s.users)
		}
	})
	return err
}

// owner describes the store for messages.
func (s *Store) owner() string {
	return fmt.Sprintf("schema %s, namespace %s", s.texts.schema, s.settings.Namespace)
}
