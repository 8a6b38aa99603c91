package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// maxRows bounds one commit: more rows per flush gain nothing, and whoever
// comes next waits for all of them.
const maxRows = 5000

// call is one caller's transition on its way through the writer. run may be
// called again after a rollback, so it starts from its inputs each time.
type call struct {
	ctx  context.Context
	rows int
	run  func(*jobs.Transition) error
	err  error
	done chan struct{}
}

// writer turns the transitions of many goroutines into few transactions: it
// takes whatever has gathered while the last one was flushed. There is no
// timer, so a lone call is not delayed, and under load a commit carries
// everyone who waits.
type writer struct {
	s    *Store
	conn *lite.Conn

	mu      sync.Mutex
	arrived sync.Cond
	pending []*call
	closed  bool

	calls sync.Pool // of this writer only: a channel must not leave its synctest bubble
	ended chan struct{}
}

func startWriter(s *Store, c *lite.Conn) *writer {
	w := &writer{s: s, conn: c, ended: make(chan struct{})}
	w.arrived.L = &w.mu
	w.calls.New = func() any { return &call{done: make(chan struct{}, 1)} }
	go w.loop()
	return w
}

// do runs a transition and returns when it is committed or when nothing of it
// was done. A caller whose ctx ends while it still waits for its turn is not
// run; once it runs, its answer is waited for, because it comes soon and is
// worth more than "unknown".
func (w *writer) do(ctx context.Context, rows int, run func(*jobs.Transition) error) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	defer w.s.lock.Await()()
	c := w.calls.Get().(*call)
	c.ctx, c.rows, c.run, c.err = ctx, rows, run, nil
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return store.ErrClosed
	}
	w.pending = append(w.pending, c)
	w.mu.Unlock()
	w.arrived.Signal()

	select {
	case <-c.done:
	case <-ctx.Done():
		if w.withdraw(c) {
			return context.Cause(ctx)
		}
		<-c.done
	}
	err := c.err
	c.ctx, c.run, c.err = nil, nil, nil
	w.calls.Put(c)
	return err
}

// withdraw takes a call back that has not been started.
func (w *writer) withdraw(c *call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, p := range w.pending {
		if p == c {
			w.pending = append(w.pending[:i], w.pending[i+1:]...)
			return true
		}
	}
	return false
}

// close refuses new calls, lets those that wait finish, and ends the loop.
func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.arrived.Broadcast()
	<-w.ended
}

func (w *writer) loop() {
	defer close(w.ended)
	var batch []*call
	for w.wait() {
		// The lock first, then the calls: what arrives while another writes is in
		// the same commit, and who gives up waiting has not been started.
		_ = w.s.lock.Acquire(context.Background())
		begun := w.begin()
		batch = w.take(batch[:0])
		switch {
		case begun != nil:
			refuse(batch, begun)
		case len(batch) == 0: // all of them gave up
			w.rollback()
		default:
			w.commit(batch)
		}
		w.s.lock.Release()
		w.s.log.Watch(w.conn)
		w.yield(len(batch))
		clear(batch)
	}
}

// yield lets those who were just answered run before the next batch is closed:
// most of them ask again at once, and would otherwise miss it by a moment. It
// costs a lone caller nothing. (16 callers: 11 of them in a commit instead of 8.)
func (w *writer) yield(answered int) {
	for range 3 {
		w.mu.Lock()
		pending := len(w.pending)
		w.mu.Unlock()
		if 2*pending >= answered {
			return
		}
		runtime.Gosched()
	}
}

// wait returns when there is something to do, false when there never will be.
func (w *writer) wait() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.pending) == 0 && !w.closed {
		w.arrived.Wait()
	}
	return len(w.pending) > 0
}

// take moves waiting calls into a batch, up to the bound.
func (w *writer) take(batch []*call) []*call {
	w.mu.Lock()
	defer w.mu.Unlock()
	rows, n := 0, 0
	for _, c := range w.pending {
		if n > 0 && rows+c.rows > maxRows {
			break
		}
		rows += c.rows
		n++
	}
	batch = append(batch, w.pending[:n]...)
	rest := copy(w.pending, w.pending[n:])
	clear(w.pending[rest:])
	w.pending = w.pending[:rest]
	return batch
}

// refuse answers a whole batch with one error.
func refuse(batch []*call, err error) {
	for _, c := range batch {
		c.err = err
		c.done <- struct{}{}
	}
}

// commit runs a batch in the transaction that is open. When a call fails after
// it has written, or the commit does, everything is rolled back and each call
// runs in a transaction of its own: an error never comes from another's rows.
func (w *writer) commit(batch []*call) {
	together := w.together(batch)
	for _, c := range batch {
		if !together {
			c.err = w.alone(c)
		}
		c.done <- struct{}{}
	}
}

// together runs all calls and commits. False means that nothing was done.
//
// Calls that were refused before they wrote anything keep their own error; the
// rest of the batch does not suffer from them.
func (w *writer) together(batch []*call) bool {
	t := w.s.transition(w.conn)
	for _, c := range batch {
		before := w.conn.Raw.TotalChanges()
		if c.err = run(c, t); c.err == nil {
			continue
		}
		if w.conn.Raw.TotalChanges() != before || w.conn.Raw.GetAutocommit() {
			w.rollback()
			return false
		}
		c.err = w.s.file.Explain("write to", c.err)
	}
	if err := w.conn.Exec("COMMIT"); err != nil {
		w.rollback()
		return false
	}
	return true
}

// alone runs one call in a transaction of its own.
func (w *writer) alone(c *call) error {
	if err := w.begin(); err != nil {
		return err
	}
	if err := run(c, w.s.transition(w.conn)); err != nil {
		w.rollback()
		return w.s.file.Explain("write to", err)
	}
	if err := w.conn.Exec("COMMIT"); err != nil {
		w.rollback()
		return w.s.file.CommitError(err)
	}
	return nil
}

// run keeps a panic in one call (P8).
func run(c *call, t *jobs.Transition) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("pawl: panic in a transition: %v", p)
		}
	}()
	return c.run(t)
}

func (w *writer) begin() error {
	return w.s.file.Explain("begin on", w.conn.Exec("BEGIN IMMEDIATE"))
}

// rollback ends the transaction, which some errors of SQLite have done already.
func (w *writer) rollback() {
	if w.conn.Raw.GetAutocommit() {
		return
	}
	if err := w.conn.Exec("ROLLBACK"); err != nil && !errors.Is(err, store.ErrClosed) {
		w.s.logger.Error("pawl: roll back", "store", w.s.file.Name, "error", err)
	}
}
