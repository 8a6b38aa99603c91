package postgres

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/claims"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/workers"
)

// Pool opens a store in the database of a pool. Pawl's own work goes over
// connections of its own, made with the pool's settings (unless
// [Options.OnlyPool] is set); transactions of Begin come from the pool itself,
// which stays the caller's to close.
func Pool(pool *pgxpool.Pool, options Options) store.Opener {
	return alone{pool: pool, options: options}
}

// alone opens namespaces that share nothing.
type alone struct {
	pool    *pgxpool.Pool
	options Options
}

// Open makes the store ready for use: connections, schema, namespace.
func (a alone) Open(ctx context.Context, settings store.Settings) (store.Store, error) {
	return (&Spaces{pool: a.pool, options: a.options, alone: true}).Open(ctx, settings)
}

// Spaces opens namespaces in the database of a pool that share the connections of
// one store, however many they are: what Options say of connections is for all of
// them together. It is a [store.Spaces].
type Spaces struct {
	pool     *pgxpool.Pool
	options  Options
	alone    bool // it is one store's, and ends with it
	ownsPool bool // and then the caller's pool ends with it
	rhythm   *store.Rhythm

	gate   sync.RWMutex // held by Open, guards closed
	closed bool

	mu       sync.Mutex
	link     *pg.Link // nil before the first store
	wire     *hints.Wire
	together *pg.Together // nil for one store
	meets    meets
	stores   map[*Store]struct{}
	migrated map[store.Migrate]bool

	closeOnce sync.Once
	closeErr  error
}

var _ store.Spaces = (*Spaces)(nil)

// NewSpaces is for processes that serve several namespaces: give it to pawl.New
// for each of them, and close it after the engines. The pool stays the caller's
// to close.
func NewSpaces(pool *pgxpool.Pool, options Options) *Spaces {
	return &Spaces{pool: pool, options: options, rhythm: store.NewRhythm(pg.Instant())}
}

// Open makes one namespace ready for use: connections, schema, namespace.
func (o *Spaces) Open(ctx context.Context, settings store.Settings) (store.Store, error) {
	o.gate.RLock()
	defer o.gate.RUnlock()
	if o.closed {
		return nil, store.ErrClosed
	}
	s, err := o.prepare(settings)
	if err != nil {
		return nil, err
	}
	o.enter(s)
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(pg.Explain("open", err), s.Close())
	}
	if !s.options.listens() {
		return s, nil
	}
	return listening{s}, nil
}

// share is what all stores have in common. The first of them says how it is made:
// what the options say of connections is the same in all.
func (o *Spaces) share(options Options, logger *slog.Logger) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.link != nil {
		return
	}
	o.link = pg.NewLink(pg.LinkConfig{
		Users: o.pool, Schema: options.Schema, PollOnly: options.PollOnly, OnlyPool: options.OnlyPool, ReadLimit: options.ReadLimit,
	})
	o.wire = hints.NewWire(o.link, logger)
	if !o.alone {
		o.together = pg.NewTogether(o.link)
	}
	o.meets = meets{hints.NewMeets(o.together, o.rhythm), workers.NewMeets(o.together), jobs.NewMeets(o.together, tables, asks), claims.NewMeets(o.together)}
}

// meets are the meetings of each room.
type meets struct {
	hints   *hints.Meets
	workers *workers.Meets
	jobs    *jobs.Meets
	claims  *claims.Meets
}

// migrateOnce looks at the schema for the first store that asks for it: it does
// not get older.
func (o *Spaces) migrateOnce(how store.Migrate, migrate func() error) error {
	o.mu.Lock()
	done := o.migrated[how]
	o.mu.Unlock()
	if done {
		return nil
	}
	if err := migrate(); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.migrated == nil {
		o.migrated = map[store.Migrate]bool{}
	}
	o.migrated[how] = true
	return nil
}

// Rhythm is that in which its stores are asked, nil for a store that is alone.
func (s *Store) Rhythm() *store.Rhythm { return s.spaces.rhythm }

func (o *Spaces) enter(s *Store) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stores == nil {
		o.stores = map[*Store]struct{}{}
	}
	o.stores[s] = struct{}{}
}

// leave takes a store out that has ended, and everything if it is nobody else's.
func (o *Spaces) leave(s *Store) error {
	o.mu.Lock()
	delete(o.stores, s)
	o.mu.Unlock()
	if o.alone {
		return o.release()
	}
	return nil
}

// Close closes the stores that are open, and then what they share.
func (o *Spaces) Close() error {
	o.gate.Lock()
	o.closed = true
	o.gate.Unlock()
	o.closeOnce.Do(func() {
		o.mu.Lock()
		var open []*Store
		for s := range o.stores {
			open = append(open, s)
		}
		o.mu.Unlock()
		errs := make([]error, len(open)+1)
		var closing sync.WaitGroup
		for i, s := range open {
			closing.Go(func() { errs[i] = s.Close() })
		}
		closing.Wait()
		errs[len(open)] = o.release()
		o.closeErr = errors.Join(errs...)
	})
	return o.closeErr
}

// release ends what is shared. No store is open any more.
func (o *Spaces) release() error {
	if o.together != nil {
		o.together.Close()
	}
	if o.link != nil {
		o.wire.Close()
		o.link.Close()
	}
	if o.ownsPool {
		return closePool(o.pool)
	}
	return nil
}
