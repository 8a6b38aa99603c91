package hints

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Wire is how the namespaces of a database that a process has open hear of other
// processes and are heard by them: one connection that listens for all of them
// (connection.go), and one goroutine that notifies. Each namespace has a channel
// of its own, so nobody hears what is not for it.
type Wire struct {
	link   *pg.Link
	logger *slog.Logger

	begin   sync.Once
	mu      sync.Mutex
	some    []*notifier // that have something to tell
	wake    chan struct{}
	turn    chan struct{} // one sends at a time
	stopped chan struct{} // nil before the first namespace

	sending context.Context // ends with Close
	end     context.CancelFunc

	hearings hearings
}

// NewWire is one that says and hears nothing yet.
func NewWire(l *pg.Link, logger *slog.Logger) *Wire {
	w := &Wire{link: l, logger: logger, wake: make(chan struct{}, 1), turn: make(chan struct{}, 1)}
	w.sending, w.end = context.WithCancel(context.Background())
	return w
}

// start begins to tell, once.
func (w *Wire) start() {
	w.begin.Do(func() {
		w.stopped = make(chan struct{})
		go w.work()
	})
}

// Close ends everything. The rooms have stopped.
func (w *Wire) Close() {
	w.end()
	w.begin.Do(func() {}) // nothing starts any more
	if w.stopped != nil {
		<-w.stopped
	}
}

// add notes that a namespace has something to tell.
func (w *Wire) add(n *notifier) {
	w.mu.Lock()
	w.some = append(w.some, n)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Wire) work() {
	defer close(w.stopped)
	gap := time.NewTimer(0)
	defer gap.Stop()
	for {
		select {
		case <-w.wake:
		case <-w.sending.Done():
			return
		}
		select {
		case <-gap.C:
		case <-w.sending.Done():
			return
		}
		w.send(w.sending, notifyTries)
		gap.Reset(notifyEvery)
	}
}

const (
	// notifyTries is how often a message is sent that may not have got through.
	notifyTries = 3
	// closeGrace bounds how long a store that closes goes on telling.
	closeGrace = time.Second
	// toldAtOnce bounds the namespaces of which one statement tells.
	toldAtOnce = 100
)

// notifyOthers sends messages. Its commit need not reach the disk: nothing else
// is written. It waits for other commits that notify for as long as it may: nobody
// waits for it, and behind a slow disk the lock_timeout of a session is soon over.
const notifyOthers = `SELECT
	set_config('synchronous_commit', 'off', true),
	set_config('lock_timeout', '0', true),
	pg_notify(m.channel, m.message)
FROM unnest($1::text[], $2::text[]) AS m (channel, message)`

// send tells what has gathered in all namespaces. A message that does not get
// through is not missed: it is a hint.
func (w *Wire) send(ctx context.Context, tries int) {
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return
	}
	w.mu.Lock()
	some := w.some
	w.some = nil
	w.mu.Unlock()
	for len(some) > 0 {
		n := min(len(some), toldAtOnce)
		var channels, messages []string
		for _, from := range some[:n] {
			for _, m := range from.take() {
				channels, messages = append(channels, from.room.channel()), append(messages, m)
			}
		}
		if len(messages) > 0 {
			w.notify(ctx, tries, channels, messages)
		}
		some = some[n:]
	}
}

func (w *Wire) notify(ctx context.Context, tries int, channels, messages []string) {
	ctx, cancel := context.WithTimeout(ctx, w.link.TryTimeout)
	defer cancel()
	tell := &pg.Statement{Text: notifyOthers, Args: []any{channels, messages}}
	for try := 1; ; try++ {
		err := w.link.Send(ctx, w.link.Work, nil, tell)
		switch {
		case err == nil || ctx.Err() != nil:
			return
		case try == tries || !pg.Pause(ctx, try):
			w.logger.Debug("a notification was not sent; others will find out by polling", "error", err)
			return
		}
	}
}

// flush tells what is left, for a namespace that closes.
func (w *Wire) flush() {
	ctx, cancel := context.WithTimeout(w.sending, closeGrace)
	defer cancel()
	w.send(ctx, 1)
}
