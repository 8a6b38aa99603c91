package hints

import (
	"context"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Watcher listens for all namespaces of a file that a process has open: over one
// connection, and with one look at what a commit may be about, however many they
// are. Only those hear of it that have jobs which are not over: a commit of one
// does not make a hundred idle others look.
type Watcher struct {
	file   *lite.Database
	ending <-chan struct{} // closed when all of them are

	mu  sync.Mutex
	now *watch // that new hearings join; nil while nobody listens
}

// NewWatcher is one to which nobody listens.
func NewWatcher(d *lite.Database, ending <-chan struct{}) *Watcher {
	return &Watcher{file: d, ending: ending}
}

// watch is one connection that looks for changes. The first hearing makes it and
// the last one ends it.
type watch struct {
	watcher *Watcher
	ctx     context.Context
	stop    context.CancelFunc
	done    chan struct{}
	all     map[*hearing]struct{} // guarded by Watcher.mu
}

// hearing is one call of Listen.
type hearing struct {
	namespace int64
	splits    *atomic.Bool
	members   int64 // the version of the registry; nobody asks for it where no worker has totals
	revision  int64 // of the settings
	also      func(*lite.Conn) ([]store.Hint, error)
	by        *watch
	jobs      chan struct{} // holds one: there may be something to do
	registry  chan struct{} // holds one: it has changed
	settings  chan struct{} // likewise
	subjects  atomic.Uint64 // what also has found, a bit for each ...
	found     chan struct{} // ... and holds one: something was
	ended     chan error    // holds one
}

// Listen tells of commits made on other connections until ctx ends or one of the
// channels is closed. It cannot say what changed, nor who changed it.
func (w *Watcher) Listen(
	ctx context.Context, namespace int64, splits *atomic.Bool, closing <-chan struct{},
	also func(*lite.Conn) ([]store.Hint, error), hear func(store.Hint),
) error {
	h := &hearing{
		namespace: namespace, splits: splits, members: -1, revision: -1, also: also, ended: make(chan error, 1),
		jobs: make(chan struct{}, 1), registry: make(chan struct{}, 1), settings: make(chan struct{}, 1), found: make(chan struct{}, 1),
	}
	w.join(h)
	defer w.leave(h)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-closing:
			return store.ErrClosed
		case <-w.ending:
			return store.ErrClosed
		case err := <-h.ended:
			return w.file.Explain("listen on", err)
		case <-h.jobs:
			hear(store.Hint{Subject: store.SubjectQueue})
			hear(store.Hint{Subject: store.SubjectJob})
		case <-h.registry:
			hear(store.Hint{Subject: store.SubjectMembers})
		case <-h.settings:
			hear(store.Hint{Subject: store.SubjectSetting})
		case <-h.found:
			for set := h.subjects.Swap(0); set != 0; set &= set - 1 {
				hear(store.Hint{Subject: store.Subject(bits.TrailingZeros64(set))})
			}
		}
	}
}

func (w *Watcher) join(h *hearing) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now == nil {
		w.now = &watch{watcher: w, done: make(chan struct{}), all: map[*hearing]struct{}{}}
		w.now.ctx, w.now.stop = context.WithCancel(context.Background())
		go w.now.run()
	}
	h.by = w.now
	h.by.all[h] = struct{}{}
}

func (w *Watcher) leave(h *hearing) {
	w.mu.Lock()
	delete(h.by.all, h)
	last := len(h.by.all) == 0
	if last && w.now == h.by {
		w.now = nil
	}
	w.mu.Unlock()
	if last {
		h.by.stop()
		<-h.by.done
	}
}

func (v *watch) run() {
	defer close(v.done)
	defer v.stop()
	err := v.look()
	v.watcher.mu.Lock()
	defer v.watcher.mu.Unlock()
	if v.watcher.now == v {
		v.watcher.now = nil // who joins now makes another
	}
	for h := range v.all {
		h.ended <- err
	}
}

// look asks the file whether anything was committed, for as long as somebody
// listens.
func (v *watch) look() error {
	c, err := v.watcher.file.Connect(v.ctx, lite.SmallCache)
	if err != nil {
		return err
	}
	defer c.Close()
	version := func() (int64, error) { return c.Query("PRAGMA data_version").One() }
	last, err := version()
	if err != nil {
		return err
	}
	tick := time.NewTicker(listenEvery)
	defer tick.Stop()
	for {
		select {
		case <-v.ctx.Done():
			return context.Cause(v.ctx)
		case <-tick.C:
		}
		now, err := version()
		if err != nil {
			return err
		}
		if now == last {
			continue
		}
		last = now
		if err := v.tell(c); err != nil {
			return err
		}
	}
}

// Each namespace of the file with the version of its registry, the revision of its
// settings, and whether it has a live job: by primary key.
const namespaceHeads = `SELECT id, registry, revision, EXISTS (
		SELECT 1
		FROM pawl_job
		WHERE namespace = pawl_namespace.id AND id > x''
	)
	FROM pawl_namespace`

// tell wakes those for whom there may be something.
func (v *watch) tell(c *lite.Conn) error {
	type head struct {
		registry, revision int64
		live               bool
	}
	heads := map[int64]head{}
	q := c.Query(namespaceHeads)
	for q.Step() {
		heads[q.ColInt(0)] = head{q.ColInt(1), q.ColInt(2), q.ColInt(3) != 0}
	}
	if err := q.Done(); err != nil {
		return err
	}
	v.watcher.mu.Lock()
	defer v.watcher.mu.Unlock()
	for h := range v.all {
		now := heads[h.namespace]
		if now.live {
			wake(h.jobs)
		}
		if h.splits.Load() && now.registry != h.members {
			h.members = now.registry
			wake(h.registry)
		}
		if now.revision != h.revision {
			h.revision = now.revision
			wake(h.settings)
		}
		found, err := h.also(c)
		if err != nil {
			return err
		}
		for _, hint := range found {
			h.subjects.Or(1 << hint.Subject)
			wake(h.found)
		}
	}
	return nil
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
