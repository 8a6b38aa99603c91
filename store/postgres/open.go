package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/claims"
	"github.com/pawlwork/pawl/store/postgres/internal/groups"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/intents"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/limits"
	"github.com/pawlwork/pawl/store/postgres/internal/lists"
	"github.com/pawlwork/pawl/store/postgres/internal/log"
	"github.com/pawlwork/pawl/store/postgres/internal/metrics"
	"github.com/pawlwork/pawl/store/postgres/internal/operations"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/schedules"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
	"github.com/pawlwork/pawl/store/postgres/internal/workers"
)

// Store is one namespace of one Postgres schema.
type Store struct {
	options  Options
	given    store.Settings
	database string // its name
	spaces   *Spaces
	db       *sql.DB
	begun    openTxs

	// The rooms, each built on those before it.
	pg         *pg.DB
	hints      *hints.Room
	settings   *settings.Room
	limits     *limits.Room
	workers    *workers.Room
	jobs       *jobs.Room
	claims     *claims.Room
	lists      *lists.Room
	intents    *intents.Room
	operations *operations.Room
	schedules  *schedules.Room
	metrics    *metrics.Room
	log        *log.Room
	groups     *groups.Room

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
	return l.hints.Listen(ctx, hear)
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
func (o *Spaces) prepare(given store.Settings) (*Store, error) {
	if o.pool == nil {
		return nil, job.Invalid("pool", "nil", "must be set")
	}
	options := o.options.withDefaults(given.LostAfter)
	if given.Namespace == "" {
		given.Namespace = "default"
	}
	if err := errors.Join(o.options.checkGiven(), options.check(given.LostAfter), options.checkPool(o.pool.Config()), job.CheckName("namespace", given.Namespace)); err != nil {
		return nil, err
	}
	if given.Logger == nil {
		given.Logger = slog.New(slog.DiscardHandler)
	}
	if given.Keep == nil {
		given.Keep = func(string) job.Keep { return job.Keep{} }
	}
	if given.MaxLost == 0 {
		given.MaxLost = job.MaxLost
	}
	s := &Store{options: options, given: given, database: o.pool.Config().ConnConfig.Database, spaces: o}
	o.share(options, given.Logger)
	s.pg = pg.New(o.link, given.Logger)
	s.hints = hints.New(s.pg, o.wire, o.meets.hints)
	s.settings = settings.New(s.pg, s.hints)
	s.workers = workers.New(s.pg, s.hints, s.settings, o.meets.workers)
	s.jobs = jobs.New(s.pg, s.hints, s.settings, s.workers, o.meets.jobs, jobs.Config{
		KeepFor: given.Keep, MaxLost: given.MaxLost, BusyLimit: options.BusyLimit, Sorting: options.sorting(o.pool.Config()), Tables: tables, Asks: asks,
	})
	s.claims = claims.New(s.pg, s.hints, s.workers, s.jobs, o.meets.claims)
	s.lists = lists.New(s.pg, s.settings, s.workers, s.jobs)
	s.intents = intents.New(s.pg, s.hints)
	s.operations = operations.New(s.pg, s.settings, s.jobs, s.lists)
	s.schedules = schedules.New(s.pg, s.hints, s.settings, s.jobs)
	s.limits = limits.New(s.pg, s.settings)
	s.metrics = metrics.New(s.pg, s.workers)
	s.log = log.New(s.pg, s.settings, s.hints)
	s.groups = groups.New(s.pg, s.settings, s.hints, s.log)
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	if err := s.pg.Open(ctx, s.options.shared(s.spaces.pool.Config()), s.given.Logger); err != nil {
		return err
	}
	if err := s.spaces.migrateOnce(s.given.Migrate, func() error { return s.migrate(ctx) }); err != nil {
		return err
	}
	if err := s.bindNamespace(ctx); err != nil {
		return err
	}
	s.db = stdlib.OpenDBFromPool(s.pg.Users)
	s.jobs.Start()
	s.hints.Start()
	s.intents.Start()
	s.log.Start()
	return nil
}

// bindNamespace finds or makes the number of the namespace.
func (s *Store) bindNamespace(ctx context.Context) error {
	return s.pg.Retry(ctx, "open", pg.Always, func(ctx context.Context, _ bool) error {
		find := pg.Statement{Text: "SELECT id FROM pawl.namespace WHERE name = $1", Args: []any{s.given.Namespace},
			Each: func(scan pg.Scan) error { return scan(&s.pg.Namespace) }}
		if err := s.pg.Send(ctx, s.pg.Work, pg.UpkeepLimits, &find); err != nil || s.pg.Namespace != 0 {
			return err
		}
		add := pg.Statement{Text: "INSERT INTO pawl.namespace (name) VALUES ($1) ON CONFLICT DO NOTHING", Args: []any{s.given.Namespace}}
		return s.pg.Send(ctx, s.pg.Work, pg.UpkeepLimits, &add, &find)
	})
}

// DB is the database for the user's own rows, over the pool the store was
// opened with. Its transactions can take jobs along (WithinSQL).
func (s *Store) DB() *sql.DB { return s.db }

// Close waits for calls under way and releases everything. Transactions that are
// still open are undone.
func (s *Store) Close() (err error) {
	s.pg.Refuse()
	s.closeOnce.Do(func() {
		s.pg.Await()
		s.intents.Stop()
		s.workers.Asked.ForgetAll()
		s.hints.Stop()
		s.jobs.Stop()
		s.log.Stop()
		s.pg.End()
		s.hints.Await()
		s.intents.Await()
		s.begun.cut()
		if s.db != nil {
			_ = s.db.Close() // it owns no connection of its own
		}
		err = s.spaces.leave(s)
	})
	return err
}

// owner describes the store for messages.
func (s *Store) owner() string {
	return fmt.Sprintf("schema %s, namespace %s", s.pg.Texts.Schema, s.given.Namespace)
}
