package settings

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pawlwork/pawl/internal/wake"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/supervise"
)

const (
	// MaxFound bounds the queues that patterns find.
	MaxFound = 1000
	// emptyFor is how long a queue has no job before it is dropped.
	emptyFor = time.Minute
)

// FinderConfig says what to look for. All of it must be given.
type FinderConfig struct {
	Store    store.QueueLister
	Hub      *wake.Hub
	Logger   *slog.Logger
	Patterns []string
	Named    []string // queues that are served by their own name: they are not looked for
	Poll     time.Duration
	PollOnly time.Duration // without a healthy listener
	// Holds reports whether this process holds jobs of a queue.
	Holds func(queue string) bool
	// Changed is told that Found has changed.
	Changed func()
}

// Finder finds queues that patterns name and that have jobs.
type Finder struct {
	FinderConfig
	after string    // where the next look goes on: only so many queues are listed at once
	pass  time.Time // when the look began that lists all of them, in parts

	mu    sync.Mutex
	found map[string]time.Time // to when it was last seen with a job
	full  bool                 // there are more, and that was said
}

// NewFinder makes one that has found nothing yet.
func NewFinder(c FinderConfig) *Finder {
	return &Finder{FinderConfig: c, found: map[string]time.Time{}}
}

// Found lists the queues, in order.
func (f *Finder) Found() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := make([]string, 0, len(f.found))
	for name := range f.found {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Service looks at once, every poll, and when hints tell of something.
func (f *Finder) Service() supervise.Service {
	return supervise.Loop("queues", f.find, supervise.Restart(supervise.Always{First: 50 * time.Millisecond, Limit: 2 * time.Second}))
}

func (f *Finder) find(ctx context.Context) error {
	hints := f.Hub.SubscribeMatching(f.wanted)
	defer hints.Close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var looked time.Time
	for {
		look := false
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			look = true
		case <-hints.C():
			hints.Take(nil)
			queues, any := hints.TakeMatching()
			f.note(time.Now(), queues)
			// One that does not say which queue costs a look, not more often than a poll without listener.
			look = any && time.Since(looked) >= f.PollOnly
		}
		if look {
			looked = time.Now()
			if err := f.Look(ctx); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
		}
		poll := f.Poll
		if !f.Hub.Healthy() {
			poll = f.PollOnly
		}
		timer.Reset(time.Until(looked.Add(poll)))
	}
}

// wanted reports whether a queue is one to find. The hub calls it for each hint.
func (f *Finder) wanted(queue string) bool {
	return !slices.Contains(f.Named, queue) && job.MatchesAny(f.Patterns, queue)
}

// Look lists queues that have waiting jobs, goes on behind them the next time, and
// drops those that have had none for a while.
func (f *Finder) Look(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	queues, err := f.Store.WaitingQueues(limited, f.after, MaxFound)
	if err != nil {
		return fmt.Errorf("look for queues: %w", err)
	}
	now := time.Now()
	if f.after == "" {
		f.pass = now
	}
	if f.after = ""; len(queues) == MaxFound {
		f.after = queues[len(queues)-1]
	}
	f.note(now, slices.DeleteFunc(queues, func(q string) bool { return !f.wanted(q) }))
	if f.after == "" {
		f.drop(now)
	}
	return nil
}

// note takes queues in that have jobs.
func (f *Finder) note(now time.Time, queues []string) {
	f.mu.Lock()
	changed := false
	for _, q := range queues {
		if _, known := f.found[q]; !known {
			if len(f.found) >= MaxFound {
				if !f.full {
					f.full = true
					f.Logger.Warn("more queues match the patterns than are served", "served", MaxFound, "not", q)
				}
				continue
			}
			changed = true
		}
		f.found[q] = now
	}
	f.mu.Unlock()
	if changed {
		f.Changed()
	}
}

// drop forgets the queues that have been empty for long enough, and in all of the
// pass that has just ended.
func (f *Finder) drop(now time.Time) {
	f.mu.Lock()
	changed := false
	for q, seen := range f.found {
		switch {
		case f.Holds(q):
			f.found[q] = now
		case now.Sub(seen) >= emptyFor && seen.Before(f.pass):
			delete(f.found, q)
			changed, f.full = true, false
		}
	}
	f.mu.Unlock()
	if changed {
		f.Changed()
	}
}
