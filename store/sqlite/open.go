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
	"github.com/pawlwork/pawl/store/sqlite/internal/claims"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
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
	file    lite.Database
	options Options
	logger  *slog.Logger

	namespace int64
	rules     jobs.Rules
	clock     lite.Clock
	claims    claims.Memory
	alive     *lite.Alive
	splits    atomic.Bool // a worker of this process has totals: listen for changes of the registry

	lock    *lite.WriteLock
	writer  *writer
	readers *lite.Readers
	log     *lite.WAL
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
		return nil, errors.Join(s.file.Explain("open", err), s.Close())
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
		options: options, logger: settings.Logger, rules: jobs.Rules{Keep: settings.Keep, MaxLost: settings.MaxLost},
		file:    lite.Database{BusyLimit: options.BusyLimit, Synchronous: options.Synchronous.pragma()},
		closing: make(chan struct{}),
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if s.rules.Keep == nil {
		s.rules.Keep = func(string) job.Keep { return job.Keep{} }
	}
	if s.rules.MaxLost == 0 {
		s.rules.MaxLost = job.MaxLost
	}
	if o.memory {
		s.file.Memory, s.file.URI = true, true
		s.file.Name = ":memory:"
		s.file.Path = fmt.Sprintf("file:/pawl-%d?vfs=memdb", memories.Add(1))
		s.equip("")
		return s, nil
	}
	path, err := o.locate(options)
	if err != nil {
		return nil, err
	}
	s.file.Name, s.file.Path = o.path, path
	s.equip(path + "-wal")
	if o.vfs != "" {
		s.file.Path, s.file.URI = (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "vfs=" + o.vfs}).String(), true
	}
	return s, nil
}

// equip gives the store what its connections share.
func (s *Store) equip(log string) {
	s.lock = lite.NewWriteLock(s.file.Name, &s.clock, s.logger)
	s.readers = lite.NewReaders(s.closing)
	s.log = lite.NewWAL(log, s.file.Name, &s.clock, s.logger)
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
	if kind, remote := lite.NetworkFS(folder); remote && !options.TrustNetworkLocks {
		return "", fmt.Errorf("open %s: %w: %s has no locks that SQLite can trust", path, store.ErrNetworkFS, kind)
	}
	return absolute, nil
}

func (s *Store) open(ctx context.Context, settings store.Settings) error {
	c, err := s.file.Connect(ctx, lite.WriterCache)
	if err != nil {
		return err
	}
	if err := s.setUp(ctx, c, settings); err != nil {
		return errors.Join(err, c.Close())
	}
	s.writer = startWriter(s, c)
	if !s.file.Memory {
		if err := s.readers.Open(ctx, &s.file); err != nil {
			return err
		}
	}
	s.db = s.openDB()
	if !s.file.Memory && !s.file.URI && !s.options.TrustNetworkLocks {
		s.alive = lite.OpenAlive(s.file.Path+lite.AliveSuffix, s.logger)
	}
	return nil
}

// setUp makes the file ours: journal mode, schema, namespace.
func (s *Store) setUp(ctx context.Context, c *lite.Conn, settings store.Settings) error {
	c.Raw.SetInterrupt(ctx)
	defer c.Raw.SetInterrupt(context.Background())
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

func (s *Store) bindNamespace(c *lite.Conn, name string) error {
	find := func() (int64, error) { return c.Query("SELECT id FROM pawl_namespace WHERE name = ?").Text(name).One() }
	id, err := find()
	if err != nil {
		return err
	}
	if id == 0 {
		if err := c.Query("INSERT INTO pawl_namespace (name) VALUES (?) ON CONFLICT DO NOTHING").Text(name).Exec(); err != nil {
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
func (s *Store) write(ctx context.Context, rows int, run func(*jobs.Transition) error) error {
	return s.writer.do(ctx, rows, run)
}

// ask is write for a transition that answers; nothing is answered with an error.
func ask[T any](ctx context.Context, s *Store, rows int, run func(*jobs.Transition) (T, error)) (T, error) {
	var answer, none T
	err := s.write(ctx, rows, func(t *jobs.Transition) (err error) {
		answer, err = run(t)
		return err
	})
	if err != nil {
		return none, err
	}
	return answer, nil
}

// transition begins one on a connection whose transaction is open.
func (s *Store) transition(c *lite.Conn) *jobs.Transition {
	return jobs.NewTransition(lite.NewSession(c, s.namespace, &s.clock), s.rules)
}

// view is read for what answers.
func view[T any](ctx context.Context, s *Store, f func(*lite.Snapshot) (T, error)) (answer T, err error) {
	err = s.read(ctx, func(c *lite.Snapshot) (err error) {
		answer, err = f(c)
		return err
	})
	return answer, err
}

// read runs f in one snapshot. It may run beside the writer, except in memory,
// where a reader would block the writer's commit and so takes its turn with it.
func (s *Store) read(ctx context.Context, f func(*lite.Snapshot) error) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if s.file.Memory {
		return s.writer.do(ctx, 0, func(t *jobs.Transition) error { return f(&t.Snapshot) })
	}
	c, err := s.readers.Take(ctx)
	if err != nil {
		return err
	}
	reads := lite.NewReading("a call of the engine", &s.clock)
	s.log.Readings.Begin(reads)
	defer func() {
		s.log.Readings.End(reads)
		s.readers.GiveBack(c)
	}()
	c.Raw.SetInterrupt(ctx)
	defer c.Raw.SetInterrupt(context.Background())
	err = c.InSnapshot(func() error { return f(&lite.Snapshot{Conn: c, Namespace: s.namespace, Clock: &s.clock}) })
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return s.file.Explain("read", err)
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
			errs = append(errs, s.readers.Close()...)
			errs = append(errs, s.writer.conn.Close())
		}
		errs = append(errs, s.alive.Close())
		s.closeErr = errors.Join(errs...)
	})
	return s.closeErr
}

// Health is an error while the log is large and cannot be emptied; it says who
// reads from it.
func (s *Store) Health(ctx context.Context) error {
	if err := s.usable(ctx); err != nil || s.log.Path == "" {
		return err
	}
	c, err := s.readers.Take(ctx)
	if err != nil {
		return err
	}
	defer s.readers.GiveBack(c)
	return s.log.Health(c)
}

// SetClockOffset moves the store's clock against the process's. It is there
// for storetest, which proves that a step of the clock does no harm; nothing
// else may call it.
func (s *Store) SetClockOffset(d time.Duration) { s.clock.SetOffset(d) }
