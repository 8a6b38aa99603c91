package supervise_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawlwork/pawl/supervise"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logbook keeps what was logged, one record a line.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(line)
}

func (l *logbook) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// records returns those with the given message, or all if it is empty.
func (l *logbook) records(t *testing.T, message string) []map[string]any {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []map[string]any
	for line := range bytes.Lines(l.buf.Bytes()) {
		var record map[string]any
		if err := json.Unmarshal(line, &record); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		if message == "" || record["msg"] == message {
			found = append(found, record)
		}
	}
	return found
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// build makes a tree and, when the test ends, stops it and expects that everything stopped.
func build(t *testing.T, config supervise.Config) *supervise.Supervisor {
	t.Helper()
	if config.Logger == nil {
		config.Logger = quiet()
	}
	tree, err := supervise.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustStop(t, tree) })
	return tree
}

func start(t *testing.T, services ...supervise.Service) *supervise.Supervisor {
	t.Helper()
	return startConfig(t, supervise.Config{Services: services})
}

func startConfig(t *testing.T, config supervise.Config) *supervise.Supervisor {
	t.Helper()
	tree := build(t, config)
	if err := tree.Start(t.Context()); err != nil {
		t.Fatalf("Start: %v", err)
	}
	return tree
}

func mustStop(t *testing.T, tree *supervise.Supervisor) {
	t.Helper()
	if stuck := tree.Stop(context.Background()); len(stuck) > 0 {
		t.Errorf("did not stop: %v", stuck)
	}
}

// wait is Wait with a limit in virtual time: a tick that should have failed would otherwise tick for ever.
func wait(t *testing.T, tree *supervise.Supervisor) error {
	t.Helper()
	result := make(chan error, 1)
	go func() { result <- tree.Wait() }()
	select {
	case err := <-result:
		return err
	case <-time.After(3 * time.Hour):
		t.Fatal("Wait has not returned after three hours")
		return nil
	}
}

func status(t *testing.T, tree *supervise.Supervisor, name string) supervise.Status {
	t.Helper()
	for _, s := range tree.Snapshot() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no service %q in the snapshot", name)
	return supervise.Status{}
}

func wantState(t *testing.T, tree *supervise.Supervisor, name string, want supervise.State) {
	t.Helper()
	if got := status(t, tree, name).State; got != want {
		t.Errorf("%s is %s, want %s", name, got, want)
	}
}

// untilStopped is a Loop that behaves well.
func untilStopped(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func nothing(context.Context) error { return nil }

// trace collects events in order, with the virtual time since it was made.
type trace[E any] struct {
	mu     sync.Mutex
	epoch  time.Time
	events []E
	at     []time.Duration
}

func newTrace[E any]() *trace[E] { return &trace[E]{epoch: time.Now()} }

func (tr *trace[E]) add(event E) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.events = append(tr.events, event)
	tr.at = append(tr.at, time.Since(tr.epoch))
}

func (tr *trace[E]) all() ([]E, []time.Duration) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return append([]E(nil), tr.events...), append([]time.Duration(nil), tr.at...)
}
