package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/hints"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// shared is what the namespaces of a file have in common: the one connection that
// writes, those that read, the write lock, the handle for users' own rows.
type shared struct {
	file    lite.Database
	options Options
	logger  *slog.Logger
	time    lite.Clock // of what is shared: it only measures

	alive   *lite.Alive
	lock    *lite.WriteLock
	writer  *writer
	readers *lite.Readers
	log     *lite.WAL
	db      *sql.DB
	beats   *beats         // nil where one store is alone
	watcher *hints.Watcher // likewise
	rhythm  *store.Rhythm  // likewise

	ending    chan struct{}
	closeOnce sync.Once
	closeErr  error
}

// newShared checks everything that can be checked without opening the file.
func (o opener) newShared(logger *slog.Logger) (*shared, error) {
	if len(o.options) > 1 {
		return nil, job.Invalid("options", fmt.Sprintf("%d values", len(o.options)), "must be at most one")
	}
	var options Options
	if len(o.options) == 1 {
		options = o.options[0]
	}
	options = options.withDefaults()
	if err := options.check(); err != nil {
		return nil, err
	}
	file, log, err := o.database(options)
	if err != nil {
		return nil, err
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	h := &shared{file: file, options: options, logger: logger, ending: make(chan struct{})}
	h.lock = lite.NewWriteLock(file.Name, &h.time, h.logger)
	h.readers = lite.NewReaders(h.ending)
	h.log = lite.NewWAL(log, file.Name, &h.time, h.logger)
	return h, nil
}

// open makes the connections, the first of which sets the file up.
func (h *shared) open(ctx context.Context, setUp func(*lite.Conn) error) error {
	c, err := h.file.Connect(ctx, lite.WriterCache)
	if err != nil {
		return err
	}
	if err := setUp(c); err != nil {
		return errors.Join(err, c.Close())
	}
	h.writer = startWriter(h, c)
	if !h.file.Memory {
		if err := h.readers.Open(ctx, &h.file); err != nil {
			return err
		}
	}
	h.db = openDB(h)
	if !h.file.Memory && !h.file.URI && !h.options.TrustNetworkLocks {
		h.alive = lite.OpenAlive(h.file.Path+lite.AliveSuffix, h.logger)
	}
	return nil
}

// close waits for calls under way and releases everything.
func (h *shared) close() error {
	h.closeOnce.Do(func() {
		close(h.ending)
		var errs []error
		if h.db != nil {
			errs = append(errs, h.db.Close())
		}
		if h.beats != nil {
			h.beats.Close()
		}
		if h.writer != nil {
			h.writer.close()
			errs = append(errs, h.readers.Close()...)
			errs = append(errs, h.writer.conn.Close())
		}
		errs = append(errs, h.alive.Close())
		h.closeErr = errors.Join(errs...)
	})
	return h.closeErr
}

// Spaces opens namespaces of one file that share its connections, however many
// they are. It is a [store.Spaces].
type Spaces struct {
	opener opener

	mu     sync.Mutex // held by Open and Close
	shared *shared    // nil before the first store
	stores map[*Store]struct{}
	closed bool
}

var _ store.Spaces = (*Spaces)(nil)

// NewSpaces is for processes that serve several namespaces of one file: give it to
// pawl.New for each of them, and close it after the engines. DB is one handle for
// all of them, so that one transaction can take jobs of several along; it ends
// with the Spaces.
func NewSpaces(path string, options ...Options) *Spaces {
	return &Spaces{opener: opener{path: path, options: options}}
}

// Open makes one namespace ready for use.
func (o *Spaces) Open(ctx context.Context, settings store.Settings) (store.Store, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, store.ErrClosed
	}
	h := o.shared
	if h == nil {
		made, err := o.opener.newShared(settings.Logger)
		if err != nil {
			return nil, err
		}
		h = made
		h.beats = newBeats(h)
		h.rhythm, h.watcher = store.NewRhythm(h.time.Instant()), hints.NewWatcher(&h.file, h.ending)
	}
	s := newStore(h, settings)
	s.spaces = o
	var err error
	if o.shared == nil {
		if err = s.open(ctx, settings); err != nil {
			err = errors.Join(err, h.close())
		}
	} else {
		err = s.bind(ctx, settings)
	}
	if err != nil {
		if ctx.Err() != nil { // else it would say "interrupted"
			err = context.Cause(ctx)
		}
		return nil, h.file.Explain("open", err)
	}
	o.shared = h
	if o.stores == nil {
		o.stores = map[*Store]struct{}{}
	}
	o.stores[s] = struct{}{}
	return s, nil
}

// leave takes a store out that is closed.
func (o *Spaces) leave(s *Store) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.stores, s)
}

// Close closes the stores that are open, and then what they share.
func (o *Spaces) Close() error {
	o.mu.Lock()
	o.closed = true
	var open []*Store
	for s := range o.stores {
		open = append(open, s)
	}
	h := o.shared
	o.mu.Unlock()
	var closing sync.WaitGroup
	for _, s := range open {
		closing.Go(func() { _ = s.Close() }) // what fails is shared
	}
	closing.Wait()
	if h == nil {
		return nil
	}
	return h.close()
}

// Rhythm is that in which the namespaces of a Spaces are asked: what they write at
// one moment is few commits. It is nil for a store that is alone.
func (s *Store) Rhythm() *store.Rhythm { return s.rhythm }
