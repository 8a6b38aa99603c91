package log

import (
	"context"
	"errors"

	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/stream"
)

const (
	// readHead reads how far may be read, in the order that doc.go explains: the sequence
	// first, the marks second. Each is materialized, so that it is evaluated once and
	// before what depends on it.
	//
	//   - epoch_pkey; the sequence; pg_locks, which is as large as the table of locks.
	readHead = `WITH last AS MATERIALIZED (
	SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END AS n
	FROM pawl.event_seq
),
head AS MATERIALIZED (
	SELECT last.n, (
			SELECT min(last.n - ((last.n - l.objid::bigint + 1073741824) & 2147483647) + 1073741824)
			FROM pg_locks AS l
			WHERE l.locktype = 'advisory' AND l.classid = $1::int::oid AND l.objsubid = 2 AND l.database = d.oid
		) AS mark, d.oid
	FROM last
	CROSS JOIN (SELECT oid FROM pg_database WHERE datname = current_database() OFFSET 0) AS d
)
SELECT least(head.n, head.mark - 1), head.n, e.epoch, e.database = head.oid AND e.timeline = ` + timeline + `
FROM head
CROSS JOIN pawl.epoch AS e`

	// timeline is which history of the server this is: a promotion begins another.
	timeline = `('x' || lpad(substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), 16, '0'))::bit(64)::bigint`

	// putAnchor notes the server of the log, and begins another epoch where it is not the
	// same, or where the sequence is behind the newest event, which it is put before.
	putAnchor = `WITH now AS MATERIALIZED (
	SELECT ` + timeline + ` AS timeline, s.system_identifier AS system,
		(SELECT oid FROM pg_database WHERE datname = current_database()) AS database,
		(SELECT last_value FROM pawl.event_seq) AS last,
		(SELECT max(e.seq) FROM (
			SELECT (SELECT seq FROM pawl.event WHERE namespace = n.id ORDER BY namespace DESC, seq DESC LIMIT 1) AS seq
			FROM pawl.namespace AS n
		) AS e) AS newest
	FROM pg_control_system() AS s
),
behind AS MATERIALIZED (
	SELECT CASE WHEN now.newest > now.last THEN setval('pawl.event_seq', now.newest) END AS put
	FROM now
)
INSERT INTO pawl.epoch AS e (epoch, timeline, system, database)
SELECT 1, now.timeline, now.system, now.database
FROM now
CROSS JOIN behind
ON CONFLICT (one) DO UPDATE
SET epoch = e.epoch + 1, timeline = excluded.timeline, system = excluded.system, database = excluded.database
WHERE (e.timeline, e.system, e.database) IS DISTINCT FROM (excluded.timeline, excluded.system, excluded.database)
	OR (SELECT put FROM behind) IS NOT NULL
RETURNING e.epoch`
)

// anchor notes the server of the log, and says loudly when it is another.
func (r *Room) anchor(ctx context.Context) error {
	epoch := 0
	put := pg.Statement{Text: putAnchor, Each: func(scan pg.Scan) error { return scan(&epoch) }}
	if err := r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits, &put); err != nil {
		return err
	}
	if epoch > 1 {
		r.pg.Logger.Error("the event log goes on in another epoch: the server was restored, promoted or replaced, "+
			"and positions of before are refused", "epoch", epoch)
	}
	return nil
}

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
}

func (r *Room) head(ctx context.Context) (h head, err error) {
	err = r.pg.Retry(ctx, "read the head of the log", pg.Reading, func(ctx context.Context, _ bool) error {
		for range 2 {
			same := false
			err := r.pg.Send(ctx, r.pg.Work, nil, &pg.Statement{Text: readHead, Args: []any{r.mark},
				Each: func(scan pg.Scan) error { return scan(&h.seq, &h.last, &h.epoch, &same) }})
			if err != nil || same {
				return err
			}
			if err := r.anchor(ctx); err != nil {
				return err
			}
		}
		return errRestless
	})
	return h, err
}

var errRestless = errors.New("the server of the log is another one each time")
