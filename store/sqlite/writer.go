package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/commit"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// maxRows bounds one commit: more rows per flush gain nothing, and whoever
// comes next waits for all of them.
const maxRows = 5000

// call is one caller's transition on its way through the writer. run may be
// called again after a rollback, so it starts from its inputs each time.
type call struct {
	commit.Call
	of   *Store
	rows int
	run  func(*jobs.Transition) error
	err  error
}

func (c *call) Rows() int { return c.rows }

// writer turns the transitions of many goroutines into few transactions: group
// commit, over the one connection that writes.
type writer struct {
	s      *shared
	conn   *lite.Conn
	shared *commit.Committer[*call]
	t      jobs.Transition // that which is open
	calls  sync.Pool       // of this writer only: a channel must not leave its synctest bubble
}

func startWriter(s *shared, c *lite.Conn) *writer {
	w := &writer{s: s, conn: c}
	w.calls.New = func() any { return &call{Call: commit.NewCall()} }
	w.shared = commit.Start(commit.Options[*call]{
		MaxRows: maxRows,
		Begin:   w.open,
		Commit:  w.commit,
		End:     w.release,
		Yield:   commit.UntilHalf,
		Closed:  store.ErrClosed,
		Reuse:   true,
	})
	return w
}

// do runs a transition and returns when it is committed or when nothing of it
// was done. A caller whose ctx ends while it still waits for its turn is not
// run; once it runs, its answer is waited for, because it comes soon and is
// worth more than "unknown".
func (w *writer) do(ctx context.Context, of *Store, rows int, run func(*jobs.Transition) error) error {
	defer w.s.lock.Await()()
	c := w.calls.Get().(*call)
	c.of, c.rows, c.run = of, rows, run
	err := w.shared.Do(ctx, c)
	if c.Answered() {
		c.of, c.run, c.err = nil, nil, nil
		w.calls.Put(c)
	}
	return err
}

// close refuses new calls and lets those that wait finish.
func (w *writer) close() { w.shared.Close() }

// open begins a transaction under the write lock. Calls are taken afterwards: what
// arrives while another writes is in the same commit, and who gives up waiting has
// not been started.
func (w *writer) open() error {
	_ = w.s.lock.Acquire(context.Background())
	return w.begin()
}

// release follows every open.
func (w *writer) release() {
	if !w.conn.Raw.GetAutocommit() {
		w.rollback() // all callers gave up
	}
	w.s.lock.Release()
	w.s.log.Watch(w.conn)
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
		c.Answer(c.err)
	}
}

// together runs all calls and commits. False means that nothing was done.
//
// Calls that were refused before they wrote anything keep their own error; the
// rest of the batch does not suffer from them.
func (w *writer) together(batch []*call) bool {
	w.t = jobs.Transition{Own: true}
	var of *Store
	for _, c := range batch {
		if c.of != of {
			of = c.of
			w.t = w.t.Continue(lite.NewSession(w.conn, of.namespace, &of.clock), of.rules)
		}
		before := w.conn.Raw.TotalChanges()
		if c.err = run(c, &w.t); c.err == nil {
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
	w.t.Committed()
	return true
}

// alone runs one call in a transaction of its own.
func (w *writer) alone(c *call) error {
	if err := w.begin(); err != nil {
		return err
	}
	w.t = c.of.transition(w.conn)
	w.t.Own = true
	if err := run(c, &w.t); err != nil {
		w.rollback()
		return w.s.file.Explain("write to", err)
	}
	if err := w.conn.Exec("COMMIT"); err != nil {
		w.rollback()
		return w.s.file.CommitError(err)
	}
	w.t.Committed()
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
