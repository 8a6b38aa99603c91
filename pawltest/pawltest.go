// Package pawltest runs a user's handlers in a test, on a real engine and a real
// store. Nothing is faked.
//
//	pawltest.Run(t, register, func(t *testing.T, e *pawltest.Engine) {  // SQLite in memory, virtual time
//		e.Enqueue(Welcome{42})
//		e.RunUntilIdle()
//		e.RequireEnqueued(Ship{Order: 7})
//	})
//	pawltest.Real(t, opener, register, func(...) { ... })               // any store, real time
//	j, err := pawltest.Work(t, sendWelcome, Welcome{42})                 // one handler, once
//
// # Which of them
//
// [Run] is for handlers that compute, sleep, enqueue and use their own engine.
// Time is virtual (testing/synctest): an hour's wait costs nothing, and
// [Engine.Advance] makes what falls due run at its time. Virtual time moves only
// while every goroutine of the test waits for something of the test. A handler
// that leaves a connection open to anything outside (an HTTP connection kept
// alive, a pool of a database) stops it for ever; Run then fails and says which
// goroutine waits for what, see [Standstill].
//
// [Real] is for handlers that talk to the world: real time, on the store of your
// choice. A wait takes as long as it takes.
//
// [Work] calls one handler once, through everything that stands around it in
// production: encoding, middleware, timeout, panics, and what the store makes of
// the outcome.
//
// At the end of each the store's Check must find nothing broken.
package pawltest

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

// Engine is an engine under test. Its methods fail the test instead of
// returning errors; the embedded engine's methods are there too.
type Engine struct {
	*pawl.Engine
	t          *testing.T
	ctx        context.Context
	virtual    bool
	standstill time.Duration
	watch      *watch
	log        *testLog
	changed    chan struct{} // something began, ended or was committed
}

// Run makes an engine on SQLite in memory, lets register add handlers to it, and
// runs the test in virtual time. Nothing works between calls: RunUntilIdle,
// Advance and Work do.
func Run(t *testing.T, register func(e *pawl.Engine), test func(t *testing.T, e *Engine), opts ...Option) {
	t.Helper()
	s := settingsOf(opts, virtualStandstill)
	s.check(t)
	w := newWatch()
	ended := make(chan ending, 1)
	// The bubble has a goroutine of its own, so that this one can leave it: nothing wakes a bubble up that waits for
	// something outside.
	go func() {
		var end ending
		defer func() { ended <- end }() // also when the test failed, which ends this goroutine
		defer func() { end.panicked = recover() }()
		synctest.Test(t, func(t *testing.T) {
			w.enter()
			s.run(t, sqlite.Memory(), true, w, register, test)
		})
		end.clean = true
	}()
	look := time.NewTicker(max(s.standstill/10, time.Millisecond))
	defer look.Stop()
	for {
		select {
		case end := <-ended:
			switch {
			case end.panicked != nil:
				t.Fatalf("pawltest: %v: %s\n\n%s", end.panicked, leftBehind, w.goroutines().text())
			case !end.clean:
				t.FailNow()
			}
			return
		case <-look.C:
			if report := w.stuck(s.standstill); report != "" {
				w.abandon()
				t.Fatal(report)
			}
		}
	}
}

// ending is how the goroutine of a bubble came to its end.
type ending struct {
	clean    bool
	panicked any // by testing/synctest, of what it found
}

const leftBehind = "the test or a handler left goroutines behind that wait for ever; end them before the test returns, or use pawltest.Real"

// Real makes an engine on a store of your choice, lets register add handlers to
// it, and runs the test in real time: handlers may talk to the world.
//
//	pawltest.Real(t, sqlite.File(filepath.Join(t.TempDir(), "work.db")), register, test)
//	pawltest.Real(t, postgres.Pool(pool, postgres.Options{Schema: "pawl"}), register, test)
//
// The engine has a namespace of its own in that store, so that tests that run at
// the same time, or left something behind, do not meet; Config can name another.
// Nothing works between calls: RunUntilIdle, Advance and Work do.
func Real(t *testing.T, opener store.Opener, register func(e *pawl.Engine), test func(t *testing.T, e *Engine), opts ...Option) {
	t.Helper()
	s := settingsOf(opts, realStandstill)
	s.check(t)
	s.run(t, opener, false, newWatch(), register, test)
}

// run makes the engine, runs the test and looks at what it left.
func (s *settings) run(t *testing.T, opener store.Opener, virtual bool, w *watch, register func(*pawl.Engine), test func(*testing.T, *Engine)) {
	t.Helper()
	e := &Engine{
		t: t, ctx: t.Context(), virtual: virtual, standstill: s.standstill,
		watch: w, log: &testLog{t: t}, changed: make(chan struct{}, 1),
	}
	inner, err := pawl.New(opener, s.pawlConfig(e))
	if err != nil {
		t.Fatal(err)
	}
	e.Engine = inner
	w.moved()
	defer e.log.close()
	defer func() {
		if err := inner.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	if register != nil {
		register(inner)
	}
	test(t, e)
	e.requireConsistent()
}

// pawlConfig is the engine's configuration, with the watch around everything.
func (s *settings) pawlConfig(e *Engine) pawl.Config {
	cfg := pawl.Config{
		Queues: pawl.Queues{job.DefaultQueue: {Workers: 10}},
		Logger: slog.New(slog.NewTextHandler(e.log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if !e.virtual {
		cfg.Namespace = "test-" + uuid.NewString()
		cfg.Grace = time.Second // a run is stopped when it is idle, or when the test has failed
	}
	for _, change := range s.changes {
		change(&cfg)
	}
	cfg.Middleware = append([]pawl.Middleware{e.watched}, cfg.Middleware...)
	cfg.Hooks.Enqueue = e.recorded(cfg.Hooks.Enqueue)
	finish := cfg.Hooks.Finish
	cfg.Hooks.Finish = func(f pawl.Finished) {
		if finish != nil {
			finish(f)
		}
		e.watch.moved()
		e.signal()
	}
	return cfg
}

// testLog writes an engine's log to its test, as long as that runs.
type testLog struct {
	mu sync.Mutex
	t  *testing.T
}

func (l *testLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.t != nil {
		l.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

func (l *testLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.t = nil
}
