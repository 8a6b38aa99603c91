package hints

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// writeHints adds rows that other transactions read by the number of this one,
// unless it holds such a hint already. The table is asked: a savepoint may have
// taken back what was written before.
//
//   - hint_transaction finds what it holds.
const writeHints = `INSERT INTO pawl.hint (namespace, transaction, queue, priority, due)
SELECT $1, pg_current_xact_id(), h.queue, h.priority, h.due
FROM unnest($2::text[], $3::smallint[], $4::timestamptz[]) AS h (queue, priority, due)
WHERE NOT EXISTS (
	SELECT
	FROM pawl.hint AS o
	WHERE o.namespace = $1
		AND o.transaction = pg_current_xact_id()
		AND o.queue = h.queue
		AND o.priority = h.priority
		AND o.due <= h.due
)`

// Leave writes the hints of a user's transaction into it.
func (r *Room) Leave(ctx context.Context, in pg.Session, told Set) error {
	var queues []string
	var levels []int16
	var dues []time.Time
	var m message // from nobody: this process learns of the commit in the same way as the others
	for name, due := range told {
		queues, levels, dues = append(queues, name.Queue), append(levels, int16(name.Priority)), append(dues, due)
		if r.Notifier.pace.May(name.Queue) {
			m.add(name.hint(due))
		}
	}
	if len(queues) == 0 {
		return nil
	}
	r.Remover.Some()
	steps := []*pg.Statement{{Text: writeHints, Args: []any{r.pg.Namespace, queues, levels, dues}}}
	if len(m.Hints) > 0 {
		steps = append(steps, &pg.Statement{Text: "SELECT pg_notify($1, $2)", Args: []any{r.channel(), m.encode()}})
	}
	return in.Run(ctx, steps...)
}
