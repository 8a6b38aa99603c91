package settings

import (
	"strings"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// What reads and writes cool-downs, by primary key. One is running as
// job.CoolDown.Running says: 10 s are the slack of a clock.
const (
	lastCoolDown = `SELECT since, until, throttles
	FROM pawl_cool_down
	WHERE namespace = ? AND queue = ?`

	putCoolDown = `INSERT OR REPLACE INTO pawl_cool_down (namespace, queue, since, until, throttles)
	VALUES (?, ?, ?, ?, ?)`

	endCoolDown = `DELETE FROM pawl_cool_down
	WHERE namespace = ? AND queue = ?`

	// Those that were over a day ago: more than one that begins adds.
	//   - pawl_cool_down_until finds them.
	forgetCoolDowns = `DELETE FROM pawl_cool_down
	WHERE namespace = ?1 AND queue IN (
		SELECT queue
		FROM pawl_cool_down INDEXED BY pawl_cool_down_until
		WHERE namespace = ?1 AND until < ?2
		ORDER BY until
		LIMIT 10)`

	// Those that are running.
	//   - pawl_cool_down_until.
	allCoolDowns = `SELECT queue, since, until, throttles
	FROM pawl_cool_down INDEXED BY pawl_cool_down_until
	WHERE namespace = ?1 AND until > ?2 AND since <= ?2 + 10000000
	ORDER BY until`
)

// CoolDown tells that a handler of a queue was throttled.
func CoolDown(t *lite.Session, queue string, throttle job.Throttle) (reply store.CoolDownReply, err error) {
	was, now := job.CoolDown{Queue: queue}, lite.TimeOf(t.Now)
	q := t.On(lastCoolDown).Text(queue)
	if q.Step() {
		was.Since, was.Until, was.Throttles = lite.TimeOf(q.ColInt(0)), lite.TimeOf(q.ColInt(1)), int(q.ColInt(2))
	}
	if err := q.Done(); err != nil {
		return reply, err
	}
	next, began := was.Throttled(throttle, now)
	reply = store.CoolDownReply{CoolDown: next, Left: next.Until.Sub(now), Began: began}
	if next == was {
		return reply, nil
	}
	err = t.On(putCoolDown).Text(queue).Int(lite.Micros(next.Since)).Int(lite.Micros(next.Until)).Int(int64(next.Throttles)).Exec()
	if err != nil || !began {
		return reply, err
	}
	return reply, t.On(forgetCoolDowns).Int(t.Now - job.KeepCoolDown.Microseconds()).Exec()
}

// ResetCoolDown ends the cool-down of a queue. The revision rises, so that processes
// that sleep it out hear of it.
func ResetCoolDown(t *lite.Session, queue string, op store.Operator) error {
	n, err := t.On(endCoolDown).Text(queue).Changes()
	if err != nil {
		return err
	}
	if n > 0 {
		if _, err := raise(t); err != nil {
			return err
		}
	}
	return Audit(t, op, store.CoolDownAction, queue, "")
}

// CoolDowns lists those that are running.
func CoolDowns(c *lite.Snapshot, now int64) (list []job.CoolDown, err error) {
	q := c.On(allCoolDowns).Int(now)
	for q.Step() {
		list = append(list, job.CoolDown{
			Queue: strings.Clone(q.ColText(0)), Since: lite.TimeOf(q.ColInt(1)), Until: lite.TimeOf(q.ColInt(2)), Throttles: int(q.ColInt(3)),
		})
	}
	return list, q.Done()
}
