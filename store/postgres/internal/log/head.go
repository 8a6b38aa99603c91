package log

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

// readHead reads how far may be read, in the order that doc.go explains: the sequence
// first, the marks second. Each is materialized, so that it is evaluated once and
// before what depends on it.
//
//   - epoch_pkey; topic_trim_pkey ($2: namespace); the sequence; pg_locks, which is as large as the table of locks.
const readHead = `WITH last AS MATERIALIZED (
	SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END AS n
	FROM pawl.event_seq
),
head AS MATERIALIZED (
	SELECT last.n, (
			SELECT min(last.n - ((last.n - l.objid::bigint + 1073741824) & 2147483647) + 1073741824)
			FROM pg_locks AS l
			WHERE l.locktype = 'advisory' AND l.classid = $1::int::oid AND l.objsubid = 2 AND l.database = d.oid
		) AS mark
	FROM last
	CROSS JOIN (SELECT oid FROM pg_database WHERE datname = current_database() OFFSET 0) AS d
)
SELECT least(head.n, head.mark - 1), head.n, e.epoch, l.life, l.life IS NOT NULL AND ` + sameServer + `,
	{now}, coalesce(s.low, 0), coalesce(s.lost, 0)
FROM head
CROSS JOIN pawl.epoch AS e
LEFT JOIN pawl.log_life AS l ON l.one
LEFT JOIN pawl.topic_trim AS s ON s.namespace = $2 AND s.topic = 0`

// Head is how far may be read now.
func (r *Room) Head(ctx context.Context) (stream.Position, error) {
	if err := r.enter(ctx); err != nil {
		return stream.Position{}, err
	}
	defer r.pg.Leave()
	h, err := r.head(ctx)
	return stream.At(h.epoch, h.seq), err
}

// head is how far may be read. It may go back a little: a number that was taken as a mark
// is not marked yet for a moment. What was read up to it stays right, because the events
// of that transaction are numbered later.
type head struct {
	seq   int64
	last  int64 // number that was taken
	epoch uint32
	life  uuid.UUID // of the server, between two crashes
	now   time.Time // by which events have expired
	low   int64     // the highest low mark of a topic: who reads behind it meets nothing that was trimmed
	lost  int64     // the newest event that retention has removed
}

func (r *Room) head(ctx context.Context) (h head, err error) {
	appends := r.known.ask()
	err = r.pg.Retry(ctx, "read the head of the log", pg.Reading, func(ctx context.Context, _ bool) error {
		for range 2 {
			same := false
			var life pgtype.UUID
			err := r.pg.Send(ctx, r.pg.Work, nil, &pg.Statement{Text: readHead, Args: []any{r.mark, r.pg.Namespace},
				Each: func(scan pg.Scan) error {
					return scan(&h.seq, &h.last, &h.epoch, &life, &same, &h.now, &h.low, &h.lost)
				}})
			h.life = life.Bytes
			if err != nil {
				return err
			}
			if same {
				r.topics.enter(h.epoch)
				return nil
			}
			if err := r.anchor(ctx); err != nil {
				return err
			}
		}
		return errRestless
	})
	if err == nil {
		r.known.put(h, appends)
	}
	return h, err
}

var errRestless = errors.New("the server of the log is another one each time")
