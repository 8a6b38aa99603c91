package sqlite

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Unserved finds jobs that no live worker takes, in one snapshot.
func (s *Store) Unserved(ctx context.Context, by job.WorkerID, older time.Duration) (list []store.Unserved, err error) {
	err = s.read(ctx, func(c *lite.Snapshot) error {
		list = nil
		now := c.Clock.Now()
		served, err := served(c, by, now)
		if err != nil || len(served) == 0 {
			return err
		}
		var ready []store.Ready
		queue, looked, unserved := "", 0, 0
		for looked < store.UnservedLook && unserved < store.UnservedQueues {
			// A seek in pawl_job_ready for each queue.
			q := c.Query("SELECT queue FROM pawl_job INDEXED BY pawl_job_ready WHERE namespace = ? AND state = 2 AND queue > ? ORDER BY queue LIMIT 1").
				Int(c.Namespace).Text(queue)
			more := q.Step()
			if more {
				queue = strings.Clone(q.ColText(0))
			}
			if err := q.Done(); err != nil {
				return err
			}
			if !more {
				break
			}
			if served[queue] == nil {
				unserved++
			}
			paused, err := paused(c, queue)
			if err != nil {
				return err
			}
			for p := job.MinPriority; p <= job.MaxPriority && !paused; p++ {
				head, err := readyHead(c, queue, p, now-older.Microseconds())
				if err != nil {
					return err
				}
				for _, r := range head {
					looked += r.Jobs
				}
				ready = append(ready, head...)
			}
		}
		list = store.FindUnserved(ready, served)
		return nil
	})
	return list, err
}

// served is what the live workers offer, by queue; nothing unless the one who
// asks is the first of them.
func served(c *lite.Snapshot, by job.WorkerID, now int64) (map[string][]job.Offer, error) {
	served := map[string][]job.Offer{}
	q := c.Query(`SELECT id, queues, offer FROM pawl_worker
		WHERE namespace = ? AND lost IS NULL AND gone = 0 AND beat > ? - lost_after ORDER BY id`).Int(c.Namespace).Int(now)
	first := true
	for q.Step() {
		if first && job.WorkerID(q.ColInt(0)) != by {
			break
		}
		first = false
		var queues []string
		var offer job.Offer
		// What cannot be read of a worker, it does not serve or take, as far as anybody can tell (P8).
		if json.Unmarshal([]byte(q.ColText(1)), &queues) != nil {
			continue
		}
		if json.Unmarshal([]byte(q.ColText(2)), &offer) != nil {
			offer = job.Offer{}
		}
		for _, name := range queues {
			served[name] = append(served[name], offer)
		}
	}
	if err := q.Done(); err != nil {
		return nil, err
	}
	return served, nil
}

// readyHead groups the first ready jobs of a queue and priority, by pawl_job_ready.
func readyHead(c *lite.Snapshot, queue string, priority int, until int64) ([]store.Ready, error) {
	var list []store.Ready
	q := c.Query(`SELECT kind, version, capabilities, count(*), min(due) FROM (
			SELECT kind, version, capabilities, due FROM pawl_job INDEXED BY pawl_job_ready
			WHERE namespace = ? AND state = 2 AND queue = ? AND priority = ? AND due <= ? ORDER BY due, id LIMIT ?)
		GROUP BY kind, version, capabilities`).
		Int(c.Namespace).Text(queue).Int(int64(priority)).Int(until).Int(store.UnservedHead)
	for q.Step() {
		r := store.Ready{Queue: queue, Kind: strings.Clone(q.ColText(0)), Version: int(q.ColInt(1)), Jobs: int(q.ColInt(3)), Oldest: lite.TimeOf(q.ColInt(4))}
		r.Most = r.Jobs
		if !q.ColNull(2) {
			_ = json.Unmarshal([]byte(q.ColText(2)), &r.Capabilities) // Check finds those that cannot be read
		}
		list = append(list, r)
	}
	return list, q.Done()
}
