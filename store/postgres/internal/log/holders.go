package log

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// readHolders names the transactions of marks ($1), the lowest mark first. One without a
// process is prepared: it is known by the lock that every transaction has on its own number.
//
//   - pg_locks, which is as large as the table of locks.
const readHolders = `WITH held AS MATERIALIZED (
	SELECT *
	FROM pg_locks
	WHERE locktype IN ('advisory', 'transactionid')
),
last AS MATERIALIZED (
	SELECT last_value AS n
	FROM pawl.event_seq
),
mark AS MATERIALIZED (
	SELECT l.pid, l.virtualtransaction,
		min(last.n - ((last.n - l.objid::bigint + 1073741824) & 2147483647) + 1073741824) AS n
	FROM held AS l
	CROSS JOIN last
	WHERE l.locktype = 'advisory' AND l.classid = $1::int::oid AND l.objsubid = 2 AND l.database = ` + database + `
	GROUP BY l.pid, l.virtualtransaction
	ORDER BY n
	LIMIT $2
)
SELECT mark.pid, a.application_name, coalesce(a.usename, p.owner)::text, a.state, p.gid,
	coalesce(a.xact_start, p.prepared), a.query_start, {now}
FROM mark
LEFT JOIN pg_stat_activity AS a ON a.pid = mark.pid
LEFT JOIN held AS own
	ON mark.pid IS NULL AND own.pid IS NULL AND own.locktype = 'transactionid' AND own.mode = 'ExclusiveLock'
	AND own.virtualtransaction = mark.virtualtransaction
LEFT JOIN pg_prepared_xacts AS p ON p.transaction = own.transactionid
ORDER BY mark.n`

// Holders says whose transactions hold the head back.
func (r *Room) Holders(ctx context.Context) (list []store.LogHolder, err error) {
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.pg.Leave()
	err = r.pg.Retry(ctx, "read who holds the log", pg.Reading, func(ctx context.Context, _ bool) error {
		list = nil
		return r.pg.Send(ctx, r.pg.Work, nil, &pg.Statement{Text: readHolders, Args: []any{r.mark, store.MaxLogHolders}, Each: func(scan pg.Scan) error {
			var pid pgtype.Int4
			var application, user, state, name pgtype.Text
			var began, query pgtype.Timestamptz
			var now time.Time
			if err := scan(&pid, &application, &user, &state, &name, &began, &query, &now); err != nil {
				return err
			}
			h := store.LogHolder{
				PID: int(pid.Int32), Application: application.String, User: user.String, State: state.String,
				Prepared: !pid.Valid, Name: name.String,
			}
			if began.Valid {
				h.Began, h.Age = began.Time.UTC(), max(now.Sub(began.Time), 0)
			}
			if query.Valid {
				h.Query = query.Time.UTC()
			}
			list = append(list, h)
			return nil
		}})
	})
	return list, err
}
