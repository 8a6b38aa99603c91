// Command onejob is what walk measures: an engine with one handler that has nothing to do, and plain jobs that pass it one
// at a time. It is built with -cover; for each job it writes the counters of what ran from Enqueue to purge to a folder.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/coverage"
	"strconv"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/keeper"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	_ "github.com/pawlwork/pawl/store/postgres" // its scheme
	_ "github.com/pawlwork/pawl/store/sqlite"   // its scheme
)

// limit bounds the whole program: it waits for events, which a bug may keep from coming.
const limit = 2 * time.Minute

// pause lies before each job, which so finds an idle engine: what the last one set off is over, also what is told to other
// processes at most every so often. It also has the windows fall into different moments of the engine's ticks.
const pause = 170 * time.Millisecond

type plain struct{ N int }

func (plain) Kind() string { return "plain" }

func main() {
	address := flag.String("store", "", "the store's address")
	windows := flag.Int("windows", 10, "jobs to measure")
	out := flag.String("out", "", "folder for the counters: one below it for each job")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := measure(ctx, *address, *windows, *out); err != nil {
		fmt.Fprintln(os.Stderr, "onejob:", err)
		os.Exit(1)
	}
}

// measure runs an engine until every window is written.
func measure(ctx context.Context, address string, windows int, out string) error {
	opener, err := store.Parse(address)
	if err != nil {
		return err
	}
	watched := &watchedStore{opener: opener, finished: make(chan job.ID, 1)}
	e, err := pawl.New(watched, pawl.Config{
		Queues: pawl.Queues{"default": {Workers: 1, KeepDone: time.Microsecond}},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	pawl.Handle(e, func(context.Context, *pawl.Job[plain]) error { return nil })
	// The engine's own keeper purges once a minute. This one does the same round when it is asked to.
	k, err := keeper.New(keeper.Config{
		Store:  watched.Store,
		Steady: func() (job.WorkerID, time.Time, time.Duration) { return 0, time.Time{}, 0 },
	})
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- e.Run(run) }()
	err = func() error {
		// The first jobs pay for what is kept from then on: connections, prepared statements, types that were checked.
		for n := range 3 {
			if err := one(ctx, e, k, watched.finished, n); err != nil {
				return err
			}
		}
		for n := range windows {
			time.Sleep(pause)
			if err := coverage.ClearCounters(); err != nil {
				return err
			}
			if err := one(ctx, e, k, watched.finished, n); err != nil {
				return err
			}
			if err := write(filepath.Join(out, strconv.Itoa(n))); err != nil {
				return err
			}
		}
		return nil
	}()
	stop()
	return errors.Join(err, <-ended, e.Close())
}

// one sends a job through its life.
func one(ctx context.Context, e *pawl.Engine, k *keeper.Keeper, finished <-chan job.ID, n int) error {
	receipt, err := e.Enqueue(ctx, plain{n})
	if err != nil {
		return err
	}
	select {
	case id := <-finished:
		if id != receipt.ID {
			return fmt.Errorf("job %v finished, and %v was enqueued", id, receipt.ID)
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	purged, err := k.PurgeOnce(ctx, 500)
	if err == nil && purged != 1 {
		err = fmt.Errorf("%d jobs were purged, want 1", purged)
	}
	return err
}

// write leaves one window's counters in a folder of their own.
func write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return errors.Join(coverage.WriteMetaDir(dir), coverage.WriteCountersDir(dir))
}

// watchedStore opens a store and tells when it has committed an end. A finish hook would tell too, but it has the runner
// walk ways that a plain job does not.
type watchedStore struct {
	opener   store.Opener
	finished chan job.ID
	store.Store
}

// Open opens the store. The answer has the powers that the engine asks a store for.
func (w *watchedStore) Open(ctx context.Context, s store.Settings) (store.Store, error) {
	st, err := w.opener.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	w.Store = st
	if l, ok := st.(store.Listener); ok {
		return struct {
			*watchedStore
			store.Listener
		}{w, l}, nil
	}
	return w, nil
}

// Finish passes ends on and tells whose is committed.
func (w *watchedStore) Finish(ctx context.Context, worker job.WorkerID, ends []job.End) ([]job.Verdict, error) {
	verdicts, err := w.Store.Finish(ctx, worker, ends)
	for i, verdict := range verdicts {
		if verdict == job.Applied {
			w.finished <- ends[i].ID
		}
	}
	return verdicts, err
}
