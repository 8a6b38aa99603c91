package pg

import (
	"context"
	"log/slog"
	"sync"
)

// DB is one namespace of a database: the link over which its statements go, the
// namespace they are about, and the calls that are under way. It knows no table.
type DB struct {
	*Link
	Namespace int32
	Logger    *slog.Logger

	calls  sync.WaitGroup // under way
	gate   sync.RWMutex   // guards closed against calls that begin
	closed bool
	Ending context.Context // ends when Close has waited for the calls
	End    context.CancelFunc
}

// New makes what needs no server yet.
func New(l *Link, logger *slog.Logger) *DB {
	s := &DB{Link: l, Logger: logger}
	s.Ending, s.End = context.WithCancel(context.Background())
	return s
}

// Refuse refuses calls from now on.
func (s *DB) Refuse() {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.closed = true
}

// Await waits for the calls under way.
func (s *DB) Await() { s.calls.Wait() }
