package hints

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/store"
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

// Leave writes the hints of a user's transaction into it. Nothing is notified there: the commit would take a lock of the
// whole server's and wait for all others that notify. Others are told from outside to look for the rows, a moment later.
func (r *Room) Leave(ctx context.Context, in pg.Session, told Set) error {
	var queues []string
	var levels []int16
	var dues []time.Time
	for name, due := range told {
		queues, levels, dues = append(queues, name.Queue), append(levels, int16(name.Priority)), append(dues, due)
	}
	if len(queues) == 0 {
		return nil
	}
	r.Remover.Some()
	if err := in.Run(ctx, &pg.Statement{Text: writeHints, Args: []any{r.pg.Namespace, queues, levels, dues}}); err != nil {
		return err
	}
	for _, queue := range queues {
		r.Notifier.Left(store.Hint{Subject: store.SubjectQueue, Name: queue})
	}
	return nil
}
