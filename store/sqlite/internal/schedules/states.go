package schedules

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
)

// By primary key, in its order.
const allStates = `SELECT name, cron, zone, anchor, next, last, last_job, fires, skips, revision
	FROM pawl_schedule
	WHERE namespace = ?
	ORDER BY name
	LIMIT ?`

// mostStates is how many are read: those of schedules that are no more are kept for a
// while beside the others.
const mostStates = 4 * store.MaxSchedules

// States reads how far every schedule has come.
func States(c *lite.Snapshot) (s store.ScheduleStates, err error) {
	s.Now = lite.TimeOf(c.Clock.Now())
	if s.Revision, err = settings.Revision(c); err != nil {
		return s, err
	}
	q := c.On(allStates).Int(mostStates)
	for q.Step() {
		s.List = append(s.List, store.ScheduleState{
			Name: q.ColText(0), Cron: q.ColText(1), Zone: q.ColText(2), Anchor: q.ColTime(3), Next: q.ColTime(4), Last: q.ColTime(5),
			LastJob: job.ID(q.ColID(6)), Fires: q.ColInt(7), Skips: q.ColInt(8), Revision: q.ColInt(9),
		})
	}
	return s, q.Done()
}
