package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl"
)

// The company's builds: the first cannot render an invoice without a VAT id.
const (
	versionFirst = "1.8.2"
	versionFixed = "1.8.3"
	owner        = "shop"
)

// How long things are kept: the demo may run for days.
const (
	keepDone = 5 * time.Minute
	keepDead = 15 * time.Minute
)

// quiet is for the engines of workers: what their handlers do is the show, and is seen in the store.
var quiet = slog.New(slog.DiscardHandler)

// queue is how the company keeps its queues.
func queue(n int) pawl.QueueConfig {
	return pawl.QueueConfig{Workers: n, KeepDone: keepDone, KeepDead: keepDead, KeepCancelled: keepDead}
}

// workersConfig is what the code of one version declares.
func workersConfig(version string) pawl.Config {
	mail := queue(8)
	mail.Backoff = pawl.Exponential(time.Second, 30*time.Second)
	return pawl.Config{
		Owner: owner, Version: version, Worker: pawl.Worker{Prefix: owner}, Logger: quiet, Grace: 2 * time.Second, MetricsEvery: time.Second,
		Queues: pawl.Queues{
			"orders": queue(20), "mail": mail, "geo": queue(8), "invoices": queue(4), "thumbs": queue(4), "tenants": queue(8),
			"exports": queue(2), "reports": queue(2), "cleanup": queue(2),
		},
		Limits: []pawl.Limit{
			{Name: "cards", PerSecond: 100},
			{Name: "geo", Queue: "geo", Concurrent: 8},
			{Name: "tenants", Kind: "tenant.sync", PerKey: true, Concurrent: 2, Weights: map[string]int{largeTenant: 3}},
			{Name: "ledger", Kind: "tenant.ledger", PerKey: true, Concurrent: 1, Ordered: true},
		},
		Schedules: []pawl.Schedule{
			{Name: "nightly", Cron: "*/15 * * * * *", Zone: "Europe/Berlin", Job: Report{Pages: 60}, SkipIfActive: true},
			{Name: "carts", Cron: "@every 10s", Job: Carts{}},
			{Name: "monday-mail", Cron: "30 7 * * 1", Zone: "America/New_York", Job: Reminder{Customer: "everybody"}},
		},
	}
}

// workers are those of one version.
type workers struct {
	version string
	engine  *pawl.Engine
	stop    context.CancelFunc
	ended   chan struct{}
	err     error // after ended
}

// hire starts the workers of a version and waits until they work.
func (c *Company) hire(ctx context.Context, version string) (*workers, error) {
	e, err := c.config.Open(ctx, workersConfig(version))
	if err != nil {
		return nil, err
	}
	s := &shop{version: version, outside: c.outside.url, client: c.outside.client, engine: e}
	s.handle(e)
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	w := &workers{version: version, engine: e, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		if w.err = e.Run(run); run.Err() == nil { // it has failed, or somebody has stopped it
			select {
			case c.failed <- errors.Join(errors.New("the workers of "+version+" have stopped"), w.err):
			default:
			}
		}
	}()
	for e.Ready(ctx) != nil {
		select {
		case <-w.ended:
			return nil, errors.Join(w.err, e.Close())
		default:
		}
		if !pause(ctx, 20*time.Millisecond) {
			return nil, errors.Join(context.Cause(ctx), w.dismiss())
		}
	}
	c.config.Logger.Info("workers began", "version", version)
	return w, nil
}

// dismiss stops them gracefully: what they cannot finish goes back.
func (w *workers) dismiss() error {
	w.stop()
	<-w.ended
	return errors.Join(w.err, w.engine.Close())
}

// shop has the handlers of one version, and whom they call.
type shop struct {
	version string
	outside string
	client  client
	engine  *pawl.Engine
	picked  atomic.Int64 // events, by the warehouse
}

func (s *shop) handle(e *pawl.Engine) {
	pawl.Handle(e, s.charge, pawl.Timeout(30*time.Second))
	pawl.Handle(e, s.send)
	pawl.Handle(e, s.receipt, pawl.Timeout(30*time.Second))
	pawl.Handle(e, s.remind)
	pawl.HandleResult(e, s.locate, pawl.Timeout(30*time.Second))
	pawl.HandleResult(e, s.render, pawl.Backoff(pawl.Constant(time.Second)))
	pawl.HandleResult(e, s.thumb, pawl.Backoff(pawl.Constant(2*time.Second)))
	pawl.Handle(e, s.sync)
	pawl.Handle(e, s.post)
	pawl.HandleResult(e, s.export)
	pawl.Handle(e, s.report)
	pawl.Handle(e, s.carts)
	pawl.Handle(e, s.review)
	pawl.HandleCursor(e, "projector", orders, s.project)
	s.subscribe(e)
}

// settle sets what the company's operators have set, once: a store that was here before has it.
func (c *Company) settle(ctx context.Context) error {
	e := c.config.Front
	now, err := e.Settings(ctx)
	if err != nil {
		return err
	}
	set := func(name, note string, q pawl.QueueSettings) error {
		if held := now.Queue(name); len(held.Overridden) > 0 {
			return nil
		}
		if err := e.Queue(name).Set(pawl.As(ctx, "ops", note), q); err != nil {
			return fmt.Errorf("queue %s: %w", name, err)
		}
		return nil
	}
	return errors.Join(
		set("geo", "the service forgives within seconds", pawl.QueueSettings{Backoff: &pawl.BackoffSettings{Base: time.Second, Max: 5 * time.Second}}),
		set("mail", "the relay takes 6 at a time", pawl.QueueSettings{Total: 6}),
	)
}
