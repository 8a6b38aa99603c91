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

	_ "github.com/ncruces/go-sqlite3/vfs/memdb" // the file system of stores in memory

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Page cache of a connection: negative numbers are KiB, as SQLite has it.
const (
	writerCache = -16_384
	readerCache = -4_096
	smallCache  = -256
)

// readers is how many reads go on at once.
const readers = 4

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
	name    string // for messages
	path    string // for SQLite
	uri     bool   // path is a URI
	memory  bool
	options Options
	logger  *slog.Logger

	namespace int64
	keep      func(queue string) job.Keep
	maxLost   int
	clock     clock
	claims    claims
	alive     *aliveFile
	splits    atomic.Bool // a worker of this process has totals: listen for changes of the registry

	lock    writeLock
	holder  atomic.Pointer[userTx] // the user's transaction that has the lock
	writer  *writer
	readers chan *conn
	reading int // connections that belong into readers
	db      *sql.DB

	log      logWatch
	readings readings

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
		return nil, errors.Join(s.explain("open", err), s.Close())
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
		lock: newWriteLock(), readers: make(chan *conn, readers), closing: make(chan struct{}),
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
		s.memory, s.uri = true, true
		s.name = ":memory:"
		s.path = fmt.Sprintf("file:/pawl-%d?vfs=memdb", memories.Add(1))
		return s, nil
	}
	if err := s.locate(o.path); err != nil {
		return nil, err
	}
	if o.vfs != "" {
		s.path, s.uri = (&url.URL{Scheme: "file", OmitHost: true, Path: s.path, RawQuery: "vfs=" + o.vfs}).String(), true
	}
	return s, nil
}

// locate checks the path before SQLite makes a file of it.
func (s *Store) locate(path string) error {
	switch {
	case path == "" || path == ":memory:":
		return job.Invalid("store file", path, "must be a path; Memory opens a store in memory")
	case strings.ContainsRune(path, 0):
		return job.Invalid("store file", path, "must not contain a zero byte")
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	s.name, s.path = path, absolute
	s.log.path, s.log.limit, s.log.worse, s.log.opened = absolute+"-wal", logLimit, unhealthyLog, s.clock.instant()
	folder := filepath.Dir(absolute)
	info, err := os.Stat(folder)
	if err != nil {
		return fmt.Errorf("open %s: its folder: %w", path, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("open %s: %s is not a folder", path, folder)
	}
	if info, err := os.Stat(absolute); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("open %s: %w: it is not a regular file", path, store.ErrForeign)
	}
	if kind, remote := networkFS(folder); remote && !s.options.TrustNetworkLocks {
		return fmt.Errorf("open %s: %w: %s has no locks that SQLite can trust", path, store.ErrNetworkFS, kind)
	}
	return nil
}

func (s *Store) open(ctx context.Context, settings store.Settings) error {
	c, err := s.connect(ctx, writerCache)
	if err != nil {
		return err
	}
	if err := s.setUp(ctx, c, settings); err != nil {
		return errors.Join(err, c.close())
	}
	s.writer = startWriter(s, c)
	if !s.memory {
		for range readers {
			r, err := s.connect(ctx, readerCache)
			if err != nil {
				return err
			}
			s.readers <- r
			s.reading++
		}
	}
	s.db = s.openDB()
	if !s.memory && !s.uri && !s.options.TrustNetworkLocks {
		s.alive = openAlive(s.path+aliveSuffix, s.logger)
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
func (s *Store) read(ctx context.Context, f func(*conn) error) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if s.memory {
		return s.writer.do(ctx, 0, func(t *transition) error { return f(t.conn) })
	}
	var c *conn
	select {
	case c = <-s.readers:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.closing:
		return store.ErrClosed
	}
	reads := s.newReading("a call of the engine")
	s.readings.begin(reads)
	defer func() {
		s.readings.end(reads)
		s.readers <- c
	}()
	c.raw.SetInterrupt(ctx)
	defer c.raw.SetInterrupt(context.Background())
	err := c.snapshot(f)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return s.explain("read", err)
}

// snapshot runs f between BEGIN and COMMIT, so that all it reads is of one moment.
func (c *conn) snapshot(f func(*conn) error) error {
	if err := c.exec("BEGIN"); err != nil {
		return err
	}
	err := f(c)
	c.raw.SetInterrupt(context.Background())
	if c.raw.GetAutocommit() {
		return err
	}
	return errors.Join(err, c.exec("ROLLBACK"))
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
			for range s.reading { // a reader that is out comes back when its call ends
				errs = append(errs, (<-s.readers).close())
			}
			errs = append(errs, s.writer.conn.close())
		}
		errs = append(errs, s.alive.close())
		s.closeErr = errors.Join(errs...)
	})
	return s.closeErr
}
