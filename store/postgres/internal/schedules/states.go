package schedules

import (
	"context"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

// readNow is the time and the revision (namespace_pkey).
const readNow = "SELECT {now}, " + settings.Revision

// allStates reads how far schedules have come, at most $2 of them.
//
//   - schedule_pkey, in its order.
const allStates = `SELECT name, cron, zone, anchor, next, last, last_job, fires, skips, revision
FROM pawl.schedule
WHERE namespace = $1
ORDER BY name
LIMIT $2`

// mostStates is how many are read: those of schedules that are no more are kept for a
// while beside the others.
const mostStates = 4 * store.MaxSchedules

// States reads how far every schedule has come.
func (r *Room) States(ctx context.Context) (s store.ScheduleStates, err error) {
	if err := r.pg.Enter(ctx); err != nil {
		return s, err
	}
	defer r.pg.Leave()
	err = r.pg.Retry(ctx, "read schedules", pg.Reading, func(ctx context.Context, _ bool) error {
		s = store.ScheduleStates{}
		return r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits,
			&pg.Statement{Text: readNow, Args: []any{r.pg.Namespace}, Each: func(scan pg.Scan) error {
				err := scan(&s.Now, &s.Revision)
				s.Now = s.Now.UTC()
				return err
			}},
			&pg.Statement{Text: allStates, Args: []any{r.pg.Namespace, mostStates}, Each: func(scan pg.Scan) error {
				var one store.ScheduleState
				var next, last pgtype.Timestamptz
				var id pgtype.UUID
				err := scan(&one.Name, &one.Cron, &one.Zone, &one.Anchor, &next, &last, &id, &one.Fires, &one.Skips, &one.Revision)
				one.Anchor, one.Next, one.Last, one.LastJob = one.Anchor.UTC(), next.Time, last.Time, job.ID(id.Bytes)
				if next.Valid {
					one.Next = next.Time.UTC()
				}
				if last.Valid {
					one.Last = last.Time.UTC()
				}
				s.List = append(s.List, one)
				return err
			}})
	})
	return s, err
}
