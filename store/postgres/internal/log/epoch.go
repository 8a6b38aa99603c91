package log

import (
	"context"
	"fmt"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// A log that is not on the server that wrote it last goes on in another epoch: its newest
// events may be gone, and their numbers may come again for others. Everything that depends on
// numbers therefore asks in its own statement whether this is still the server: whoever comes
// first after a failover, a reader, a publisher or a cursor, begins the epoch (anchor).
const (
	// timeline is which history of the server this is: a promotion begins another.
	timeline = `('x' || lpad(substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), 16, '0'))::bit(64)::bigint`

	system = `(SELECT system_identifier FROM pg_control_system())`

	database = `(SELECT oid FROM pg_database WHERE datname = current_database())`

	// sameServer says whether this is the server that the epoch e is of. It costs 7 µs.
	sameServer = `(e.timeline = ` + timeline + ` AND e.system = ` + system + ` AND e.database = ` + database + `)`

	readEpoch = `SELECT e.epoch, ` + sameServer + `
FROM pawl.epoch AS e`

	// lastNumber is how far the sequence is.
	lastNumber = `(SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END FROM pawl.event_seq)`

	// newestNumber is the highest that anybody knows.
	newestNumber = `greatest(
			(SELECT max(e.seq) FROM (
				SELECT (
					SELECT seq
					FROM pawl.event
					WHERE namespace = n.id
					ORDER BY namespace DESC, seq DESC
					LIMIT 1
				) AS seq
				FROM pawl.namespace AS n
			) AS e),
			(SELECT max(seq) FROM pawl.cursor_at),
			(SELECT max(upto) FROM pawl.shelf_at),
			(SELECT max(upto) FROM pawl.hand_at),
			(SELECT max(at) FROM pawl.stripe)
		)`

	// readAnchor says whether there is nothing for putAnchor to do, which is so whenever a
	// process begins on a server that others have used: then it writes nothing.
	readAnchor = `SELECT e.epoch, ` + sameServer + ` AND coalesce(` + newestNumber + ` <= ` + lastNumber + `, true), ` + lastNumber + `
FROM pawl.epoch AS e`

	// putAnchor notes the server of the log, and begins another epoch where it is not the
	// same, or where the sequence is behind the newest number that anybody knows, which it is
	// put to. One after the other: a second one would put back what was numbered since the
	// first. How much an epoch is raised by is chance, so that a backup that is restored twice
	// goes on in two.
	putAnchor = `WITH kept AS MATERIALIZED (
	SELECT 1
	FROM pawl.epoch
	FOR UPDATE
),
now AS MATERIALIZED (
	SELECT ` + timeline + ` AS timeline, ` + system + ` AS system, ` + database + ` AS database,
		` + lastNumber + ` AS last,
		` + newestNumber + ` AS newest
	FROM (SELECT count(*) FROM kept) AS k
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
SET epoch = e.epoch + 1 + (random() * 1000000)::int,
	timeline = excluded.timeline, system = excluded.system, database = excluded.database
WHERE (e.timeline, e.system, e.database) IS DISTINCT FROM (excluded.timeline, excluded.system, excluded.database)
	OR (SELECT put FROM behind) IS NOT NULL
RETURNING e.epoch`
)

// errEpoch: the log has begun another epoch since the call began.
var errEpoch = fmt.Errorf("%w: the event log has begun another epoch meanwhile: begin again", store.ErrUnavailable)

// anchor notes the server of the log, and says loudly when it is another.
func (r *Room) anchor(ctx context.Context) error {
	var begun, epoch uint32
	var last int64
	fine, same := false, false
	look := pg.Statement{Text: readAnchor, Each: func(scan pg.Scan) error { return scan(&epoch, &fine, &last) }}
	live := pg.Statement{Text: "INSERT INTO pawl.log_life (life) VALUES (gen_random_uuid()) ON CONFLICT DO NOTHING"}
	if err := r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits, &live, &look); err != nil {
		return err
	}
	if fine {
		r.topics.enter(epoch)
		r.newest.note(epoch, last)
		return nil
	}
	put := pg.Statement{Text: putAnchor, Each: func(scan pg.Scan) error { return scan(&begun) }}
	read := pg.Statement{Text: readEpoch, Each: func(scan pg.Scan) error { return scan(&epoch, &same) }}
	if err := r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits, &put, &read); err != nil {
		return err
	}
	r.topics.enter(epoch)
	if begun > 1 {
		r.pg.Logger.Error("the event log goes on in another epoch: the server was restored, promoted or replaced, "+
			"and positions of before are refused", "epoch", begun)
	}
	return nil
}
