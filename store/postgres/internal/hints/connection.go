package hints

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// hearing is one call of Listen. Its caller takes messages in its own goroutine:
// one that is slow holds up nobody else.
type hearing struct {
	channel string
	by      *connection
	token   chan struct{} // holds one: there is something to take
	ended   chan error    // holds one: the connection is lost

	mu       sync.Mutex
	messages []string
}

// maxUnheard bounds what a slow caller has not taken; beyond it is "look at
// everything".
const maxUnheard = 1000

func newHearing(channel string) *hearing {
	return &hearing{channel: channel, token: make(chan struct{}, 1), ended: make(chan error, 1)}
}

// give hands messages over; none says that the server has begun to send.
func (h *hearing) give(messages ...string) {
	h.mu.Lock()
	if h.messages = append(h.messages, messages...); len(h.messages) > maxUnheard {
		h.messages = []string{(&message{Hints: []told{{Subject: store.SubjectAll}}}).encode()}
	}
	h.mu.Unlock()
	select {
	case h.token <- struct{}{}:
	default:
	}
}

func (h *hearing) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	messages := h.messages
	h.messages = nil
	return messages
}

// hearings is who listens, and over which connection.
type hearings struct {
	mu  sync.Mutex
	now *connection // that new ones join; nil while nobody listens
}

// connection is one to the server on which several namespaces listen. The first
// hearing makes it and the last one ends it. What changes is told to its
// goroutine by interrupting its wait.
type connection struct {
	wire *Wire
	ctx  context.Context
	stop context.CancelFunc
	done chan struct{}

	// Guarded by hearings.mu.
	all       map[*hearing]bool // true once the server sends its channel
	interrupt context.CancelFunc
}

// join lets a hearing take part in the connection.
func (w *Wire) join(h *hearing) {
	w.hearings.mu.Lock()
	defer w.hearings.mu.Unlock()
	c := w.hearings.now
	if c == nil {
		c = &connection{wire: w, done: make(chan struct{}), all: map[*hearing]bool{}, interrupt: func() {}}
		c.ctx, c.stop = context.WithCancel(w.sending)
		w.hearings.now = c
		go c.run()
	}
	h.by = c
	c.all[h] = false
	c.interrupt()
}

// leave ends a hearing's part, and the connection if it was the last one's.
func (w *Wire) leave(h *hearing) {
	w.hearings.mu.Lock()
	c := h.by
	delete(c.all, h)
	c.interrupt()
	last := len(c.all) == 0
	if last && w.hearings.now == c {
		w.hearings.now = nil
	}
	w.hearings.mu.Unlock()
	if last {
		c.stop()
		<-c.done
	}
}

// end tells everybody that the connection is lost. Who joins now makes another.
func (c *connection) end(err error) {
	c.wire.hearings.mu.Lock()
	defer c.wire.hearings.mu.Unlock()
	if c.wire.hearings.now == c {
		c.wire.hearings.now = nil
	}
	for h := range c.all {
		h.ended <- err
	}
}

// connectAgain is how long those who come after a connection could not be made
// share its failure, so that many namespaces do not besiege a server that is away.
const connectAgain = 500 * time.Millisecond

func (c *connection) run() {
	defer close(c.done)
	defer c.stop()
	conn, err := c.connect()
	if err != nil {
		c.wire.hearings.mu.Lock()
		several := len(c.all) > 1
		c.wire.hearings.mu.Unlock()
		if several {
			Wait(c.ctx, connectAgain)
		}
		c.end(err)
		return
	}
	err = c.listen(conn)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
	c.end(err)
}

// listen hands notifications to those they are for, until the connection is lost
// or nobody listens.
func (c *connection) listen(conn *pgx.Conn) error {
	on := map[string]bool{} // channels that the server sends
	for {
		wait, cancel := context.WithTimeout(c.ctx, listenCheck)
		wanted := c.wanted(on, cancel)
		if !maps.Equal(wanted, on) {
			cancel()
			if err := change(c.ctx, conn, on, wanted); err != nil {
				return err
			}
			on = wanted
			continue
		}
		n, err := conn.WaitForNotification(wait)
		why := wait.Err()
		cancel()
		switch {
		case err == nil:
			c.pass(n.Channel, n.Payload)
		case c.ctx.Err() != nil || conn.IsClosed() || why == nil:
			return err
		case errors.Is(why, context.DeadlineExceeded):
			if err := ping(c.ctx, conn); err != nil {
				return err
			}
		}
	}
}

// wanted are the channels of those who listen; those whose channel is on are told
// so, once. From now on a change interrupts the wait that begins.
func (c *connection) wanted(on map[string]bool, interrupt context.CancelFunc) map[string]bool {
	c.wire.hearings.mu.Lock()
	defer c.wire.hearings.mu.Unlock()
	c.interrupt = interrupt
	wanted := map[string]bool{}
	for h, known := range c.all {
		wanted[h.channel] = true
		if !known && on[h.channel] {
			c.all[h] = true
			h.give()
		}
	}
	return wanted
}

// pass hands a notification to the namespace it is for.
func (c *connection) pass(channel, payload string) {
	c.wire.hearings.mu.Lock()
	defer c.wire.hearings.mu.Unlock()
	for h, on := range c.all {
		if on && h.channel == channel {
			h.give(payload)
		}
	}
}

// change makes the server send other channels than before, in one go.
func change(ctx context.Context, conn *pgx.Conn, on, wanted map[string]bool) error {
	var texts []string
	for _, channel := range slices.Sorted(maps.Keys(wanted)) {
		if !on[channel] {
			texts = append(texts, "LISTEN "+pgx.Identifier{channel}.Sanitize())
		}
	}
	for _, channel := range slices.Sorted(maps.Keys(on)) {
		if !wanted[channel] {
			texts = append(texts, "UNLISTEN "+pgx.Identifier{channel}.Sanitize())
		}
	}
	ctx, cancel := context.WithTimeout(ctx, listenLimit)
	defer cancel()
	_, err := conn.Exec(ctx, strings.Join(texts, "; "))
	return err
}

func (c *connection) connect() (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(c.ctx, listenLimit)
	defer cancel()
	pool := c.wire.link.Users.Config()
	config := pool.ConnConfig.Copy()
	if pool.BeforeConnect != nil {
		if err := pool.BeforeConnect(ctx, config); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, pg.MayIdleText); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return conn, nil
}
