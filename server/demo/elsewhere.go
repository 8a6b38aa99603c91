package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
)

// Queues that have workers of their own, in other processes.
const (
	QueueLegacy = "legacy-sync" // nobody serves it, until you do
	QueueFeeds  = "feeds"       // a process of the demo's own, which one feed kills
)

// Queues are those that Work serves.
func Queues() []string { return []string{QueueLegacy, QueueFeeds} }

// Push tells the old system about a customer.
type Push struct {
	Customer string `json:"customer"`
}

// Kind is "legacy.push".
func (Push) Kind() string { return pushKind }

const pushKind = "legacy.push"

// Defaults puts it into the queue of the old system; each customer waits once.
func (Push) Defaults() []pawl.EnqueueOption {
	return []pawl.EnqueueOption{pawl.Queue(QueueLegacy), pawl.Unique(), pawl.Attempts(5)}
}

// Feed reads what a supplier has sent.
type Feed struct {
	Supplier string `json:"supplier"`
	File     string `json:"file"`
}

// Kind is "feed.import".
func (Feed) Kind() string { return feedKind }

const feedKind = "feed.import"

// Defaults puts it into the queue of feeds; each file waits once.
func (Feed) Defaults() []pawl.EnqueueOption {
	return []pawl.EnqueueOption{pawl.Queue(QueueFeeds), pawl.Unique(), pawl.Attempts(5)}
}

// poison is a file that nobody can read and live.
var poison = Feed{Supplier: "initrode", File: "catalogue-2019.xml"}

// Work serves one of Queues until ctx ends. A process for feeds is killed now and then.
func Work(ctx context.Context, open Opener, name string, logger *slog.Logger) error {
	if !slices.Contains(Queues(), name) {
		return fmt.Errorf("queue %q: must be one of %s", name, strings.Join(Queues(), ", "))
	}
	e, err := open(ctx, pawl.Config{
		Owner: "shop-" + name, Version: versionFirst, Worker: pawl.Worker{Prefix: name}, Logger: logger, Grace: 2 * time.Second,
		MetricsEvery: time.Second, Queues: pawl.Queues{name: queue(4)},
	})
	if err != nil {
		return err
	}
	switch name {
	case QueueLegacy:
		pawl.Handle(e, push)
	case QueueFeeds:
		pawl.Handle(e, read)
	}
	return errors.Join(e.Run(ctx), e.Close())
}

func push(ctx context.Context, _ *pawl.Job[Push]) error {
	if !pause(ctx, 150*time.Millisecond) {
		return context.Cause(ctx)
	}
	return nil
}

// read takes a moment. With the poison it takes longer, and then the process is killed, as the
// kernel does with one that takes all memory: no handler hears of it, and nothing is written.
func read(ctx context.Context, j *pawl.Job[Feed]) error {
	if j.Args != poison {
		if !pause(ctx, 300*time.Millisecond) {
			return context.Cause(ctx)
		}
		return nil
	}
	j.Log().Warn("a very deep tree", "file", j.Args.File, "lost before", j.Lost)
	for step := range 6 {
		if err := j.Progress(ctx, int64(step+1), 10); err != nil {
			return err
		}
		if !pause(ctx, 500*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	return self.Kill()
}
