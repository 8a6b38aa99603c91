package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/ncruces/go-sqlite3/vfs/memdb" // the file system of stores in memory

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// File opens the store in a file, which is made if it is not there. The user's
// own tables may live in the same file.
func File(path string, options ...Options) store.Opener {
	return opener{path: path, options: options}
}

// Memory opens a new, empty store in memory; it ends with Close.
func Memory(options ...Options) store.Opener {
	return opener{memory: true, options: options}
}

type opener struct {
	path    string
	memory  bool
	options []Options
	vfs     string // of tests that make the disk fail
}

// Store is one namespace of one SQLite database.
type Store struct {
	file    database
	options Options
	logger  *slog.Logger

	namespace int64
	keep      func(queue string) job.Keep
	maxLost   int
	clock     clock
	claims    claims
	alive     *aliveFile
	splits    atomic.Bool // a worker of this process has totals: listen for changes of the registry

	lock    *writeLock
	writer  *writer
	readers *readers
	log     *wal
	db      *sql.DB

	closing   chan struct{}
	closeOnce sync.Once
	closeErr  error
}

var _ store.Store = (*Store)(nil)
var _ store.Listener = (*Store)(nil)
var _ store.Examiner = (*Store)(nil)

var memories atomic.Int64

// Open makes the store ready for use.
func (o opener) Open(ctx context.Context, settings store.Settings) (store.Store, error) {
	s, err := o.prepare(settings)
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx, settings); err != nil {
		if ctx.Err() != nil { // else it would say "interrupted"
			err = context.Cause(ctx)
		}
		return nil, errors.Join(s.file.explain("open", err), s.Close())
	}
	return s, nil
}

// prepare checks everything that can be checked without opening the file.
func (o opener) prepare(settings store.Settings) (*Store, error) {
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
	s := &Store{
		options: options, logger: settings.Logger, keep: settings.Keep, maxLost: settings.MaxLost,
		file:    database{busyLimit: options.BusyLimit, synchronous: options.Synchronous.pragma()},
		closing: make(chan struct{}),
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if s.keep == nil {
		s.keep = func(string) job.Keep { return job.Keep{} }
	}
	if s.maxLost == 0 {
		s.maxLost = job.MaxLost
	}
	if o.memory {
		s.file.memory, s.file.uri = true, true
		s.file.name = ":memory:"
		s.file.path = fmt.Sprintf("file:/pawl-%d?vfs=memdb", memories.Add(1))
		s.equip("")
		return s, nil
	}
	path, err := o.locate(options)
	if err != nil {
		return nil, err
	}
	s.file.name, s.file.path = o.path, path
	s.equip(path + "-wal")
	if o.vfs != "" {
		s.file.path, s.file.uri = (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "vfs=" + o.vfs}).String(), true
	}
	return s, nil
}

// equip gives the store what its connections share.
func (s *Store) equip(log string) {
	s.lock = newWriteLock(s.file.name, &s.clock, s.logger)
	s.readers = newReaders(s.closing)
	s.log = newWAL(log, s.file.name, &s.clock, s.logger)
}

// locate checks the path before SQLite makes a file of it, and makes it absolute.
func (o opener) locate(options Options) (string, error) {
	path := o.path
	switch {
	case path == "" || path == ":memory:":
		return "", job.Invalid("store file", path, "must be a path; Memory opens a store in memory")
	case strings.ContainsRune(path, 0):
		return "", job.Invalid("store file", path, "must not contain a zero byte")
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", path, err)
	}
	folder := filepath.Dir(absolute)
	info, err := os.Stat(folder)
	if err != nil {
		return "", fmt.Errorf("open %s: its folder: %w", path, err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("open %s: %s is not a folder", path, folder)
	}
	if info, err := os.Stat(absolute); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("open %s: %w: it is not a regular file", path, store.ErrForeign)
	}
	if kind, remote := networkFS(folder); remote && !options.TrustNetworkLocks {
		return "", fmt.Errorf("open %s: %w: %s has no locks that SQLite can trust", path, store.ErrNetworkFS, kind)
	}
	return absolute, nil
}

func (s *Store) open(ctx context.Context, settings store.Settings) error {
	c, err := s.file.connect(ctx, writerCache)
	if err != nil {
		return err
	}
	if err := s.setUp(ctx, c, settings); err != nil {
		return errors.Join(err, c.close())
	}
	s.writer = startWriter(s, c)
	if !s.file.memory {
		if err := s.readers.open(ctx, &s.file); err != nil {
			return err
		}
	}
	s.db = s.openDB()
	if !s.file.memory && !s.file.uri && !s.options.TrustNetworkLocks {
		s.alive = openAlive(s.file.path+aliveSuffix, s.logger)
	}
	return nil
}

// setUp makes the file ours: journal mode, schema, namespace.
func (s *Store) setUp(ctx context.Context, c *conn, settings store.Settings) error {
	c.raw.SetInterrupt(ctx)
	defer c.raw.SetInterrupt(context.Background())
	if err := s.migrate(c, settings.Migrate); err != nil {
		return err
	}
	name := settings.Namespace
	if name == "" {
		name = "default"
	}
	if err := job.CheckName("namespace", name); err != nil {
		return err
	}
	return s.bindNamespace(c, name)
}

func (s *Store) bindNamespace(c *conn, name string) error {
	find := func() (int64, error) { return c.query("SELECT id FROM pawl_namespace WHERE name = ?").text(name).one() }
	id, err := find()
	if err != nil {
		return err
	}
	if id == 0 {
		if err := c.query("INSERT INTO pawl_namespace (name) VALUES (?) ON CONFLICT DO NOTHING").text(name).exec(); err != nil {
			return err
		}
		if id, err = find(); err != nil {
			return err
		}
	}
	s.namespace = id
	return nil
}

// write runs a transition through the writer.
func (s *Store) write(ctx context.Context, rows int, run func(*transition) error) error {
	return s.writer.do(ctx, rows, run)
}

// read runs f in one snapshot. It may run beside the writer, except in memory,
// where a reader would block the writer's commit and so takes its turn with it.
func (s *Store) read(ctx context.Context, f func(*snapshot) error) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if s.file.memory {
		return s.writer.do(ctx, 0, func(t *transition) error { return f(&t.snapshot) })
	}
	c, err := s.readers.take(ctx)
	if err != nil {
		return err
	}
	reads := newReading("a call of the engine", &s.clock)
	s.log.readings.begin(reads)
	defer func() {
		s.log.readings.end(reads)
		s.readers.giveBack(c)
	}()
	c.raw.SetInterrupt(ctx)
	defer c.raw.SetInterrupt(context.Background())
	err = c.inSnapshot(func() error { return f(&snapshot{c, s.namespace, &s.clock}) })
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return s.file.explain("read", err)
}

// usable refuses calls after Close and calls whose time is over.
func (s *Store) usable(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-s.closing:
		return store.ErrClosed
	default:
		return nil
	}
}

// Close waits for calls under way and releases everything.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.closing)
		var errs []error
		if s.db != nil {
			errs = append(errs, s.db.Close())
		}
		if s.writer != nil {
			s.writer.close()
			errs = append(errs, s.readers.close()...)
			errs = append(errs, s.writer.conn.close())
		}
		errs = append(errs, s.alive.close())
		s.closeErr = errors.Join(errs...)
	})
	return s.closeErr
}

// Health is an error while the log is large and cannot be emptied; it says who
// reads from it.
func (s *Store) Health(ctx context.Context) error {
	if err := s.usable(ctx); err != nil || s.log.path == "" {
		return err
	}
	c, err := s.readers.take(ctx)
	if err != nil {
		return err
	}
	defer s.readers.giveBack(c)
	return s.log.health(c)
}

// SetClockOffset moves the store's clock against the process's. It is there
// for storetest, which proves that a step of the clock does no harm; nothing
// else may call it.
func (s *Store) SetClockOffset(d time.Duration) { s.clock.setOffset(d) }
