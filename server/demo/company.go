package demo

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"sync"
	"time"
	_ "time/tzdata" // the zones of the schedules, where the machine has none

	"github.com/pawlwork/pawl"
)

// Config is for New. Zero fields take the default in brackets.
type Config struct {
	// Front is the engine that is served, and by which the website enqueues. It is run and closed by who made it.
	Front *pawl.Engine
	// Open opens one engine more on the same store.
	Open Opener
	// Feeds starts a process that calls Work for QueueFeeds and ends with its standard input [none: nobody serves feeds].
	// One feed kills its process, which must not be this one.
	Feeds func() *exec.Cmd

	Program string        // as it is called in hints ["pawl"]
	Orders  int           // a second, 1..200 [20]
	Restart time.Duration // before a process for feeds is started again [2 s]
	Logger  *slog.Logger  // what the company does [slog.Default()]
}

// Opener opens an engine.
type Opener func(context.Context, pawl.Config) (*pawl.Engine, error)

// Company is the shop. Make it with New.
type Company struct {
	config  Config
	outside *outside
	tried   tried

	mu      sync.Mutex
	workers *workers // nil while it does not run
	failed  chan error
}

// New makes a company; Run lets it live.
func New(c Config) (*Company, error) {
	c.Program = cmp.Or(c.Program, "pawl")
	c.Orders = cmp.Or(c.Orders, 20)
	c.Restart = cmp.Or(c.Restart, 2*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	switch {
	case c.Front == nil || c.Open == nil:
		return nil, errors.New("demo: Front and Open: must be set")
	case c.Orders < 1 || c.Orders > 200:
		return nil, errors.New("demo: Orders: must be 1..200")
	}
	return &Company{config: c, failed: make(chan error, 1)}, nil
}

// Run lets the company live until ctx ends, then stops its workers gracefully.
func (c *Company) Run(ctx context.Context) (err error) {
	c.tried.killed(ctx, c.config.Front)
	if c.outside, err = newOutside(); err != nil {
		return err
	}
	defer c.outside.close()
	first, err := c.begin(ctx)
	switch {
	case err != nil && ctx.Err() != nil: // asked to stop before it had begun
		return nil
	case err != nil:
		return err
	}
	c.mu.Lock()
	c.workers = first
	c.mu.Unlock()
	if err := c.settle(ctx); err != nil && ctx.Err() == nil {
		c.config.Logger.Warn("the settings of the demo could not be set", "error", err)
	}

	work, stop := context.WithCancel(ctx)
	var parts sync.WaitGroup
	parts.Go(func() { c.website(work) })
	if c.config.Feeds != nil {
		parts.Go(func() { c.keepFeeds(work) })
	}
	select {
	case <-ctx.Done():
	case err = <-c.failed:
	}
	stop()
	parts.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.workers
	c.workers = nil
	return errors.Join(err, last.dismiss())
}

// begin starts the workers of the version that was shipped last.
func (c *Company) begin(ctx context.Context) (*workers, error) {
	version, err := c.shipped(ctx)
	if err != nil {
		return nil, err
	}
	return c.hire(ctx, version)
}

// pause waits, and says whether to go on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
