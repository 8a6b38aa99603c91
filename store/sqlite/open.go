package sqlite

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/pawlwork/pawl/store/internal/crews"
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
	*shared // with the other namespaces of its Spaces, if it is one of several
	spaces  *Spaces

	namespace int64
	rules     jobs.Rules
	clock     lite.Clock
	claims    claims.Memory
	workers   sync.Map // of type job.WorkerID: those that are registered here and have not left
	intents   intents.Appliers
	applier   *applier
	splits    atomic.Bool // a worker of this process has totals: listen for changes of the registry
	crews     crews.Known
	delays    delayWatch
	newest    atomic.Int64 // event that a listener has seen
	groupNews atomic.Int64 // as a listener has seen it

	gate      sync.RWMutex   // of a store that shares: guards closing against calls that begin
	calls     sync.WaitGroup // of such a store, under way
	closing   chan struct{}
	closeOnce sync.Once
}

var _ store.Store = (*Store)(nil)
var _ store.Listener = (*Store)(nil)
var _ store.Examiner = (*Store)(nil)

var memories atomic.Int64

// Open makes the store ready for use.
func (o opener) Open(ctx context.Context, settings store.Settings) (store.Store, error) {
	h, err := o.newShared(settings.Logger)
	if err != nil {
		return nil, err
	}
	s := newStore(h, settings)
	if err := s.open(ctx, settings); err != nil {
		if ctx.Err() != nil { // else it would say "interrupted"
			err = context.Cause(ctx)
		}
		return nil, errors.Join(s.file.Explain("open", err), s.Close())
	}
	return s, nil
}

// newStore is one that is not open yet.
func newStore(h *shared, settings store.Settings) *Store {
	s := &Store{shared: h, rules: jobs.Rules{Keep: settings.Keep, MaxLost: settings.MaxLost}, closing: make(chan struct{})}
	if s.rules.Keep == nil {
		s.rules.Keep = func(string) job.Keep { return job.Keep{} }
	}
	if s.rules.MaxLost == 0 {
		s.rules.MaxLost = job.MaxLost
	}
	return s
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

// open opens the file, and binds the namespace.
func (s *Store) open(ctx context.Context, settings store.Settings) error {
	err := s.shared.open(ctx, func(c *lite.Conn) (err error) {
		s.namespace, err = setUp(ctx, &s.file, c, settings)
		return err
	})
	if err == nil {
		s.applier = startApplier(s)
	}
	return err
}

// bind binds a further namespace of a file that is open.
func (s *Store) bind(ctx context.Context, settings store.Settings) error {
	if err := s.lock.Acquire(ctx); err != nil {
		return err
	}
	defer s.lock.Release()
	c, err := s.file.Connect(ctx, lite.SmallCache)
	if err != nil {
		return err
	}
	s.namespace, err = setUp(ctx, &s.file, c, settings)
	if err = errors.Join(err, c.Close()); err == nil {
		s.applier = startApplier(s)
	}
	return err
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

// Close waits for calls under way and releases everything that is not shared.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.gate.Lock()
		close(s.closing)
		s.gate.Unlock()
		if s.applier != nil {
			<-s.applier.stopped
		}
		if s.spaces != nil {
			s.calls.Wait()
			s.workers.Range(func(w, _ any) bool {
				s.alive.Free(s.namespace, w.(job.WorkerID))
				s.gone(w.(job.WorkerID))
				return true
			})
			s.spaces.leave(s)
		}
	})
	if s.spaces != nil {
		return nil
	}
	return s.shared.close()
}

// enter counts a call of a store that shares in, so that Close waits for it. For
// one that is alone the writer and the readers do that.
func (s *Store) enter() (leave func(), err error) {
	if s.spaces == nil {
		return func() {}, nil
	}
	s.gate.RLock()
	defer s.gate.RUnlock()
	select {
	case <-s.closing:
		return nil, store.ErrClosed
	default:
	}
	s.calls.Add(1)
	return s.calls.Done, nil
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
