package lite

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/ncruces/go-sqlite3"
)

// Conn is one connection with its prepared statements. It is used by one
// goroutine at a time.
type Conn struct {
	Raw     *sqlite3.Conn
	queries map[string]*Query
}

// InSnapshot runs f between BEGIN and COMMIT, so that all it reads is of one moment.
func (c *Conn) InSnapshot(f func() error) error {
	if err := c.Exec("BEGIN"); err != nil {
		return err
	}
	err := f()
	c.Raw.SetInterrupt(context.Background())
	if c.Raw.GetAutocommit() {
		return err
	}
	return errors.Join(err, c.Exec("ROLLBACK"))
}

// Close ends the connection and its statements.
func (c *Conn) Close() error {
	for _, q := range c.queries {
		q.stmt.Close()
	}
	c.queries = nil
	return c.Raw.Close()
}

// Query returns the prepared statement for a text, ready to be bound. Statements
// stay prepared as long as the connection lives.
func (c *Conn) Query(text string) *Query {
	q := c.queries[text]
	if q == nil {
		q = c.Once(text)
		if q.stmt != nil {
			c.queries[text] = q
		}
		return q
	}
	q.bound, q.err = 0, nil
	return q
}

// Once prepares a statement that will not be seen again; Close of it ends it.
func (c *Conn) Once(text string) *Query {
	stmt, _, err := c.Raw.Prepare(text)
	return &Query{stmt: stmt, err: err}
}

// Exec runs a statement without parameters or rows.
func (c *Conn) Exec(text string) error { return c.Query(text).Exec() }

// Texts are those of the statements that are prepared.
func (c *Conn) Texts() []string { return slices.Collect(maps.Keys(c.queries)) }
