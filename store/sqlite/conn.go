package sqlite

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/ncruces/go-sqlite3"
)

// conn is one connection with its prepared statements. It is used by one
// goroutine at a time.
type conn struct {
	raw     *sqlite3.Conn
	queries map[string]*query
}

// inSnapshot runs f between BEGIN and COMMIT, so that all it reads is of one moment.
func (c *conn) inSnapshot(f func() error) error {
	if err := c.exec("BEGIN"); err != nil {
		return err
	}
	err := f()
	c.raw.SetInterrupt(context.Background())
	if c.raw.GetAutocommit() {
		return err
	}
	return errors.Join(err, c.exec("ROLLBACK"))
}

func (c *conn) close() error {
	for _, q := range c.queries {
		q.stmt.Close()
	}
	c.queries = nil
	return c.raw.Close()
}

// query returns the prepared statement for a text, ready to be bound. Statements
// stay prepared as long as the connection lives.
func (c *conn) query(text string) *query {
	q := c.queries[text]
	if q == nil {
		q = c.once(text)
		if q.stmt != nil {
			c.queries[text] = q
		}
		return q
	}
	q.bound, q.err = 0, nil
	return q
}

// once prepares a statement that will not be seen again; done closes it.
func (c *conn) once(text string) *query {
	stmt, _, err := c.raw.Prepare(text)
	return &query{stmt: stmt, err: err}
}

// exec runs a statement without parameters or rows.
func (c *conn) exec(text string) error { return c.query(text).exec() }

// texts are those of the statements that are prepared.
func (c *conn) texts() []string { return slices.Collect(maps.Keys(c.queries)) }
