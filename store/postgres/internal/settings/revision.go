package settings

import (
	"context"

	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// raiseRevision gives what is declared and set a new revision, in the commit that
// changes it. It is a moment in microseconds, later than all before it whatever the
// clock does, and so tells the order in which versions were seen. Made from the
// time, it is not given out again by a promoted standby.
//
//   - namespace_pkey finds the row, which is locked after those of workers.
const raiseRevision = `UPDATE pawl.namespace
SET revision = greatest((extract(epoch FROM {now}) * 1000000)::bigint, revision + 1)
WHERE id = $1`

func (r *Room) raise() *pg.Statement {
	return &pg.Statement{Text: raiseRevision, Args: []any{r.pg.Namespace}}
}

// Raise says that what is declared and set has changed, in the transaction that has
// removed some of it.
func (r *Room) Raise(ctx context.Context, session pg.Session) error {
	return session.Run(ctx, r.raise())
}

// lockRevision makes those who change what is declared and set go one after the
// other. What the first has written is seen by the second only in a later statement.
//
//   - namespace_pkey finds the row.
const lockRevision = `SELECT
FROM pawl.namespace
WHERE id = $1
FOR NO KEY UPDATE`

func (r *Room) lock() *pg.Statement {
	return &pg.Statement{Text: lockRevision, Args: []any{r.pg.Namespace}}
}

// Revision is that of what is declared and set, as a part of other statements: it
// is read once in each (namespace_pkey).
const Revision = "(SELECT revision FROM pawl.namespace WHERE id = $1)"
