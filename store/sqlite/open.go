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
	"github.com/pawlwork/pawl/store/sqlite/internal/intents"
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
	intents   intents.Appliers
	splits    atomic.Bool // a worker of this process has totals: listen for changes of the registry

	lock    *lite.WriteLock
	writer  *writer
	applier *applier
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
	file, log, err := o.database(options)
	if err != nil {
		return nil, err
	}
	s := &Store{
		file: file, options: options, logger: settings.Logger, rules: jobs.Rules{Keep: settings.Keep, MaxLost: settings.MaxLost},
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
	s.lock = lite.NewWriteLock(file.Name, &s.clock, s.logger)
	s.readers = lite.NewReaders(s.closing)
	s.log = lite.NewWAL(log, file.Name, &s.clock, s.logger)
	return s, nil
}

// database says where the database is, and where its log; a store in memory has
// none.
func (o opener) database(options Options) (d lite.Database, log string, err error) {
	d.BusyLimit, d.Synchronous = options.BusyLimit, options.Synchronous.pragma()
	if o.memory {
		d.Name, d.Path = ":memory:", fmt.Sprintf("file:/pawl-%d?vfs=memdb", memories.Add(1))
		d.Memory, d.URI = true, true
		return d, "", nil
	}
	path, err := o.locate(options)
	if err != nil {
		return d, "", err
	}
	d.Name, d.Path = o.path, path
	if o.vfs != "" {
		d.Path, d.URI = (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "vfs=" + o.vfs}).String(), true
	}
	return d, path + "-wal", nil
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
	if s.namespace, err = setUp(ctx, &s.file, c, settings); err != nil {
		return errors.Join(err, c.Close())
	}
	s.writer = startWriter(s, c)
	if !s.file.Memory {
		if err := s.readers.Open(ctx, &s.file); err != nil {
			return err
		}
	}
	s.db = openDB(s)
	s.applier = startApplier(s)
	if !s.file.Memory && !s.file.URI && !s.options.TrustNetworkLocks {
		s.alive = lite.OpenAlive(s.file.Path+lite.AliveSuffix, s.logger)
	}
	return nil
}

// setUp makes the file ours: journal mode, schema, namespace, whose number it
// returns.
func setUp(ctx context.Context, file *lite.Database, c *lite.Conn, settings store.Settings) (namespace int64, err error) {
	c.Raw.SetInterrupt(ctx)
	defer c.Raw.SetInterrupt(context.Background())
	if err := migrate(file, c, settings.Migrate); err != nil {
		return 0, err
	}
	name := settings.Namespace
	if name == "" {
		name = "default"
	}
	if err := job.CheckName("namespace", name); err != nil {
		return 0, err
	}
	return bindNamespace(c, name)
}

// What finds and adds a namespace, by its unique name.
const (
	findNamespace = `SELECT id
	FROM pawl_namespace
	WHERE name = ?`

	insertNamespace = `INSERT INTO pawl_namespace (name)
	VALUES (?)
	ON CONFLICT DO NOTHING`
)

func bindNamespace(c *lite.Conn, name string) (int64, error) {
	find := func() (int64, error) { return c.Query(findNamespace).Text(name).One() }
	id, err := find()
	if err != nil || id != 0 {
		return id, err
	}
	if err := c.Query(insertNamespace).Text(name).Exec(); err != nil {
		return 0, err
	}
	return find()
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
			if s.applier != nil {
				<-s.applier.stopped
			}
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
