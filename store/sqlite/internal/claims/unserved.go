package claims

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
	"github.com/pawlwork/pawl/store/sqlite/internal/workers"
)

// Unserved finds jobs that no live worker takes.
func Unserved(c *lite.Snapshot, by job.WorkerID, older time.Duration) ([]store.Unserved, error) {
	now := c.Clock.Now()
	offers, err := workers.Served(c, by, now)
	if err != nil || len(offers) == 0 {
		return nil, err
	}
	var ready []store.Ready
	queue, looked, unknown := "", 0, 0
	for looked < store.UnservedLook && unknown < store.UnservedQueues {
		q := c.On(jobs.NextWaitingQueue).Text(queue)
		more := q.Step()
		if more {
			queue = strings.Clone(q.ColText(0))
		}
		if err := q.Done(); err != nil {
			return nil, err
		}
		if !more {
			break
		}
		if len(offers.Of(queue)) == 0 {
			unknown++
		}
		closed, err := settings.IsClosed(c, queue, now)
		if err != nil {
			return nil, err
		}
		for p := 0; p <= job.MaxPriority && !closed.Is; p++ {
			head, err := readyHead(c, queue, p, now-older.Microseconds())
			if err != nil {
				return nil, err
			}
			for _, r := range head {
				looked += r.Jobs
			}
			ready = append(ready, head...)
		}
	}
	return store.FindUnserved(ready, offers), nil
}

// What groups the first ready jobs of a queue and priority, and the first of a queue
// behind gates.
//   - pawl_job_ready, in its order; pawl_job_gated in its.
const (
	groupReady = `SELECT kind, version, capabilities, count(*), min(due)
	FROM (
		SELECT kind, version, capabilities, due
		FROM pawl_job INDEXED BY pawl_job_ready
		WHERE namespace = ? AND state = 2 AND gate IS NULL AND queue = ? AND priority = ? AND due <= ?
		ORDER BY due, id
		LIMIT ?)
	GROUP BY kind, version, capabilities`

	groupGated = `SELECT kind, version, capabilities, count(*), min(due)
	FROM (
		SELECT kind, version, capabilities, due
		FROM pawl_job INDEXED BY pawl_job_gated
		WHERE namespace = ? AND state = 2 AND gate IS NOT NULL AND queue = ?
		ORDER BY gate, priority, due, id
		LIMIT ?)
	WHERE due <= ?
	GROUP BY kind, version, capabilities`
)

// readyHead groups the first ready jobs of a queue and priority; priority 0 is of
// those behind gates.
func readyHead(c *lite.Snapshot, queue string, priority int, until int64) ([]store.Ready, error) {
	var list []store.Ready
	var q *lite.Query
	if priority > 0 {
		q = c.On(groupReady).Text(queue).Int(int64(priority)).Int(until).Int(store.UnservedHead)
	} else {
		q = c.On(groupGated).Text(queue).Int(store.UnservedGated).Int(until)
	}
	for q.Step() {
		r := store.Ready{
			Queue: queue, Kind: strings.Clone(q.ColText(0)), Version: int(q.ColInt(1)),
			Jobs: int(q.ColInt(3)), Oldest: lite.TimeOf(q.ColInt(4)),
		}
		r.Most = r.Jobs
		if !q.ColNull(2) {
			_ = json.Unmarshal([]byte(q.ColText(2)), &r.Capabilities) // Check finds those that cannot be read
		}
		list = append(list, r)
	}
	return list, q.Done()
}
