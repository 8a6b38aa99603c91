package pawl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/pawlwork/pawl/internal/tail"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

var (
	// ErrCursorLost: somebody else has opened, moved or deleted the cursor since.
	ErrCursorLost = store.ErrCursorLost
	// ErrCursorHeld: a worker holds the cursor, and its lease is not over.
	ErrCursorHeld = store.ErrCursorHeld
	// ErrCursorFilter: the cursor was made with another filter.
	ErrCursorFilter = store.ErrCursorFilter
	// ErrBatchOrder: a batch of a cursor was committed before one that came earlier.
	ErrBatchOrder = errors.New("pawl: batch is not the next of its cursor")
)

// eventPoll is how often readers look for events that nobody told them of.
const eventPoll = time.Second

// MaxPoll is how many events a cursor takes at once.
const MaxPoll = store.MaxEventPage

// CursorOption says how a cursor is read.
type CursorOption interface{ cursor(*cursorSettings) }

type cursorOption func(*cursorSettings)

func (o cursorOption) cursor(c *cursorSettings) { o(c) }

// StartAt says where a new cursor or group begins; the start of the log by default. One that
// is there goes on where it was.
func StartAt(s stream.Start) CursorSubscribeOption { return startOption{s} }

type startOption struct{ at stream.Start }

func (o startOption) cursor(c *cursorSettings) { c.start = o.at }
func (o startOption) subscribe(s *subscribing) { s.config.Membership.Start = o.at }

// Cursor reads events in their order, a batch at a time. A named one is durable, and has one
// reader: who opens it takes it from who has it, whose commits fail from then on. It is
// used by one goroutine at a time.
type Cursor struct {
	engine *Engine
	name   string // "": its position is in memory
	match  stream.Matcher
	holder uuid.UUID
	lease  time.Duration

	mu     sync.Mutex // the end of a transaction may come from any goroutine
	turn   int64
	at     stream.Position // committed
	read   stream.Position // of the last batch that was handed out
	head   stream.Position // as the last poll saw it
	lost   int             // holders in a row, when it was opened
	losses int             // that a commit keeps
	stale  bool            // nobody knows whether a batch was committed
	told   bool            // that it lost events to retention, since it has read something
}

// Cursor opens a reader of events. With a name its position is kept, bound to the filter;
// with "" it is in memory, and begins where StartAt says.
func (e *Engine) Cursor(ctx context.Context, name string, f stream.Filter, opts ...CursorOption) (*Cursor, error) {
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	var s cursorSettings
	for _, o := range opts {
		if o == nil {
			return nil, job.Invalid("option", "nil", "must be one")
		}
		o.cursor(&s)
	}
	c, err := e.newCursor(name, f)
	if err != nil {
		return nil, err
	}
	return c, c.open(ctx, s.start)
}

func (e *Engine) newCursor(name string, f stream.Filter) (*Cursor, error) {
	m, err := f.Matcher()
	if err != nil {
		return nil, err
	}
	if name != "" {
		if err := store.CheckCursorName(name); err != nil {
			return nil, err
		}
	}
	return &Cursor{engine: e, name: name, match: m, holder: uuid.New()}, nil
}

// open makes this process the cursor's holder, and reads where it is.
func (c *Cursor) open(ctx context.Context, start stream.Start) error {
	log, err := c.engine.log()
	if err != nil {
		return err
	}
	at, err := c.engine.placeOf(ctx, start)
	if err != nil {
		return err
	}
	if c.name == "" {
		c.at, c.read = at, at
		return nil
	}
	s, err := log.OpenCursor(ctx, store.CursorOpen{Name: c.name, Filter: c.match.Filter, Start: at, Holder: c.holder, Lease: c.lease})
	if err != nil {
		return err
	}
	if s.Anchored {
		c.engine.cfg.Logger.Error("a cursor goes on in another epoch of the event log: what was lost with the old one is not read again",
			"cursor", c.name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn, c.at, c.read, c.lost, c.stale = s.Turn, s.At, s.At, s.Losses, false
	return nil
}

// Name is that of the cursor.
func (c *Cursor) Name() string { return c.name }

// Position is how far it has committed.
func (c *Cursor) Position() stream.Position {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Rewind hands out again what is not committed.
func (c *Cursor) Rewind() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = c.at
}

// Poll reads the next events, at most n. The batch is empty when there are none now. Several
// batches may be read before the first is committed.
func (c *Cursor) Poll(ctx context.Context, n int) (*EventBatch, error) {
	if n < 1 || n > MaxPoll {
		return nil, job.Invalid("n", n, fmt.Sprintf("must be 1..%d", MaxPoll))
	}
	log, err := c.engine.log()
	if err != nil {
		return nil, err
	}
	if err := c.engine.usable(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	stale, from := c.stale, c.read
	c.mu.Unlock()
	if stale && c.name != "" {
		if err := c.open(ctx, stream.FromStart()); err != nil {
			return nil, err
		}
		from = c.read
	}
	b := &EventBatch{cursor: c, from: from, to: from}
	for {
		page, err := log.Events(ctx, store.EventQuery{Match: c.match, After: b.to, Limit: n})
		if err != nil {
			return nil, err
		}
		b.to, b.Events, b.trimmed = page.Next, page.Events, b.trimmed || page.Trimmed
		c.mu.Lock()
		c.read, c.head = b.to, page.Head
		tell := page.Trimmed && !c.told
		c.told = page.Trimmed
		c.mu.Unlock()
		if tell {
			c.engine.cfg.Logger.WarnContext(ctx, "a reader was behind what its topics keep: it goes on with the oldest event that is left, and has not read others",
				"cursor", c.name, "topics", c.match.Pattern.String())
		}
		if len(b.Events) > 0 || !page.More {
			return b, nil
		}
	}
}

// Wait returns when there may be more to Poll, or with ctx.
func (c *Cursor) Wait(ctx context.Context) error {
	if err := c.engine.usable(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	head := c.head
	c.mu.Unlock()
	return c.engine.tail.Wait(ctx, head, c.match.Pattern)
}

// EventBatch is some events of a cursor, in order.
type EventBatch struct {
	Events []stream.Event

	cursor   *Cursor
	from, to stream.Position
	trimmed  bool       // events before it were removed
	work     *batchWork // of a cursor worker
	pending  store.CursorState
}

// Empty reports whether there were no events.
func (b *EventBatch) Empty() bool { return len(b.Events) == 0 }

// Position is behind the last event that was looked at for it.
func (b *EventBatch) Position() stream.Position { return b.to }

// move is what has to be committed, if it is the next.
func (b *EventBatch) move() (store.CursorMove, error) {
	c := b.cursor
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stale:
		return store.CursorMove{}, fmt.Errorf("%w: %q: whether its last batch was committed is not known: poll again", ErrCursorLost, c.name)
	case !b.from.Equal(c.at):
		return store.CursorMove{}, fmt.Errorf("%w: it begins at %s, and the cursor is at %s", ErrBatchOrder, b.from.Debug(), c.at.Debug())
	}
	return store.CursorMove{Name: c.name, Turn: c.turn, Holder: c.holder, To: b.to, Lease: c.lease, Losses: c.losses, Trimmed: b.trimmed}, nil
}

// Commit says that the batch is done: the cursor is behind it from now on. Batches are
// committed in their order, each once.
func (b *EventBatch) Commit(ctx context.Context) error {
	m, err := b.move()
	if err != nil || b.from.Equal(b.to) {
		return err
	}
	c := b.cursor
	s := store.CursorState{At: b.to}
	if c.name != "" {
		log, err := c.engine.log()
		if err != nil {
			return err
		}
		if s, err = log.MoveCursor(ctx, m); err != nil {
			c.mu.Lock()
			c.stale = c.stale || errors.Is(err, ErrOutcomeUnknown)
			c.mu.Unlock()
			return err
		}
	}
	c.moved(s)
	return nil
}

func (c *Cursor) moved(s store.CursorState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn, c.at = s.Turn, s.At
	if order, ok := c.read.Compare(c.at); ok && order < 0 {
		c.read = c.at // it was rewound meanwhile
	}
}

var errRolledBack = errors.New("pawl: transaction was rolled back")

// Commit says that a batch of a cursor is done when the transaction commits: the cursor's
// position and the transaction's effects are there together, or not at all (P3). A reader
// that has lost the cursor gets ErrCursorLost, and its effects roll back.
func (t *Tx) Commit(b *EventBatch) error {
	m, err := b.move()
	if err != nil || b.from.Equal(b.to) {
		return err
	}
	b.pending = store.CursorState{At: b.to}
	if b.cursor.name != "" {
		tx, ok := t.tx.(store.TxCursors)
		if !ok {
			return noLog("this transaction")
		}
		if b.pending, err = tx.MoveCursor(t.ctx, m); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.moves = append(t.moves, b)
	return nil
}

// moved lets cursors know of the end of a transaction in which they were moved.
func (t *Tx) moved(err error) {
	t.mu.Lock()
	list := t.moves
	t.moves = nil
	t.mu.Unlock()
	for _, b := range list {
		switch {
		case err == nil:
			b.cursor.moved(b.pending)
		case errors.Is(err, ErrOutcomeUnknown):
			b.cursor.mu.Lock()
			b.cursor.stale = true
			b.cursor.mu.Unlock()
		}
	}
}

// Events reads events from a start to the head, and ends there. An error ends it, too.
func (e *Engine) Events(ctx context.Context, f stream.Filter, start stream.Start) iter.Seq2[stream.Event, error] {
	return e.iterate(ctx, f, start, false)
}

// Follow reads events from a start, and goes on with those that come, until ctx ends.
func (e *Engine) Follow(ctx context.Context, f stream.Filter, start stream.Start) iter.Seq2[stream.Event, error] {
	return e.iterate(ctx, f, start, true)
}

func (e *Engine) iterate(ctx context.Context, f stream.Filter, start stream.Start, follow bool) iter.Seq2[stream.Event, error] {
	return func(yield func(stream.Event, error) bool) {
		c, err := e.Cursor(ctx, "", f, StartAt(start))
		for err == nil {
			var b *EventBatch
			if b, err = c.Poll(ctx, MaxPoll); err != nil {
				break
			}
			for i := range b.Events {
				if !yield(b.Events[i], nil) {
					return
				}
			}
			if !b.Empty() {
				continue
			}
			if !follow {
				return
			}
			if err = c.Wait(ctx); err != nil {
				return // ctx has ended, and that is how it ends
			}
		}
		yield(stream.Event{}, err)
	}
}

// placeOf is the position of a start.
func (e *Engine) placeOf(ctx context.Context, s stream.Start) (p stream.Position, err error) {
	log, err := e.log()
	if err != nil {
		return p, err
	}
	return tail.Place(ctx, log, s)
}
