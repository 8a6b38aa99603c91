package settings

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl/internal/wake"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/supervise"
)

// lookLimit bounds one look.
const lookLimit = 10 * time.Second

// refreshAfter is how old the knowledge of a process may be that nothing tells of
// changes.
const refreshAfter = time.Second

// Mirror knows what holds. All methods may be called from any goroutine.
type Mirror struct {
	store store.Control
	hub   *wake.Hub
	log   *slog.Logger

	known  atomic.Pointer[store.Effective] // nil before the first look
	looked atomic.Int64                    // when it was asked for, in Unix ns; 0 before
	heard  atomic.Int64                    // the revision that was heard of last; -1: look in any case
	wanted chan struct{}                   // holds one token

	turn    chan struct{} // holds one: one look at a time, and changes told in their order
	changed func(*store.Effective)

	beside besides
}

// NewMirror makes one that knows nothing yet. Changed is told what holds whenever
// that has changed.
func NewMirror(st store.Control, hub *wake.Hub, log *slog.Logger, changed func(*store.Effective)) *Mirror {
	f := &Mirror{store: st, hub: hub, log: log, changed: changed, wanted: make(chan struct{}, 1), turn: make(chan struct{}, 1)}
	f.beside.ctx, f.beside.cancel = context.WithCancel(context.Background())
	return f
}

// Known is what holds, as far as this process knows; nil before the first look.
func (f *Mirror) Known() *store.Effective { return f.known.Load() }

// Heard takes note of the revision that an answer carried.
func (f *Mirror) Heard(revision int64) {
	if !f.knows(revision) {
		f.heard.Store(revision)
		f.want()
	}
}

func (f *Mirror) knows(revision int64) bool {
	e := f.known.Load()
	return e != nil && e.Revision == revision
}

// Forget asks for a look whose answer is told as a change, whatever it says.
func (f *Mirror) Forget() {
	f.known.Store(nil)
	f.heard.Store(-1)
	f.want()
}

func (f *Mirror) want() {
	select {
	case f.wanted <- struct{}{}:
	default:
	}
}

// Look reads everything once.
func (f *Mirror) Look(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-limited.Done():
		return fmt.Errorf("read the settings: %w", context.Cause(limited))
	}
	at := time.Now()
	answer, err := f.store.Settings(limited)
	if err != nil {
		return fmt.Errorf("read the settings: %w", err)
	}
	f.looked.Store(at.UnixNano())
	before := f.known.Load()
	if before != nil && before.Revision == answer.Revision {
		return nil
	}
	now := store.Resolve(answer)
	f.known.Store(&now)
	f.changed(&now)
	return nil
}

// Service looks whenever a change was heard of. A look that fails is repeated, with
// a growing pause.
func (f *Mirror) Service() supervise.Service {
	return supervise.Loop("settings", f.follow, supervise.Restart(supervise.Always{First: 50 * time.Millisecond, Limit: 2 * time.Second}))
}

func (f *Mirror) follow(ctx context.Context) error {
	hints := f.hub.Subscribe()
	defer hints.Close()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hints.C():
			if !hints.Take(nil).Setting {
				continue
			}
		case <-f.wanted:
			if f.knows(f.heard.Load()) {
				continue // the look that was under way has read it
			}
		}
		if err := f.Look(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			f.heard.Store(-1)
			f.want()
			return err
		}
	}
}

// besides are looks beside a caller. The lock keeps one from beginning when Close
// waits for them.
type besides struct {
	mu      sync.Mutex
	looking bool
	closed  bool
	done    sync.WaitGroup
	ctx     context.Context
	cancel  context.CancelFunc
}

// Refresh looks beside the caller, who does not wait for it, when what is known is
// older than a second: for a process that hears of no changes. One that fails is
// forgotten: the next caller tries again.
func (f *Mirror) Refresh() {
	if time.Since(time.Unix(0, f.looked.Load())) < refreshAfter {
		return
	}
	b := &f.beside
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.looking || b.closed {
		return
	}
	b.looking = true
	b.done.Add(1)
	go func() {
		defer b.done.Done()
		if err := f.Look(b.ctx); err != nil && b.ctx.Err() == nil {
			f.log.Debug("the settings could not be read", "error", err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.looking = false
	}()
}

// Close ends what Refresh began, and waits for it.
func (f *Mirror) Close() {
	f.beside.mu.Lock()
	f.beside.closed = true
	f.beside.mu.Unlock()
	f.beside.cancel()
	f.beside.done.Wait()
}
