package sqlite

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Unserved finds jobs that no live worker takes, in one snapshot.
func (s *Store) Unserved(ctx context.Context, by job.WorkerID, older time.Duration) (list []store.Unserved, err error) {
	err = s.read(ctx, func(c *snapshot) error {
		list = nil
		now := c.clock.now()
		served, err := served(c, by, now)
		if err != nil || len(served) == 0 {
			return err
		}
		var ready []store.Ready
		queue, looked, unserved := "", 0, 0
		for looked < store.UnservedLook && unserved < store.UnservedQueues {
			// A seek in pawl_job_ready for each queue.
			q := c.query("SELECT queue FROM pawl_job INDEXED BY pawl_job_ready WHERE namespace = ? AND state = 2 AND queue > ? ORDER BY queue LIMIT 1").
				int(c.namespace).text(queue)
			more := q.step()
			if more {
				queue = strings.Clone(q.colText(0))
			}
			if err := q.done(); err != nil {
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
func served(c *snapshot, by job.WorkerID, now int64) (map[string][]job.Offer, error) {
	served := map[string][]job.Offer{}
	q := c.query(`SELECT id, queues, offer FROM pawl_worker
		WHERE namespace = ? AND lost IS NULL AND gone = 0 AND beat > ? - lost_after ORDER BY id`).int(c.namespace).int(now)
	first := true
	for q.step() {
		if first && job.WorkerID(q.colInt(0)) != by {
			break
		}
		first = false
		var queues []string
		var offer job.Offer
		// What cannot be read of a worker, it does not serve or take, as far as anybody can tell (P8).
		if json.Unmarshal([]byte(q.colText(1)), &queues) != nil {
			continue
		}
		if json.Unmarshal([]byte(q.colText(2)), &offer) != nil {
			offer = job.Offer{}
		}
		for _, name := range queues {
			served[name] = append(served[name], offer)
		}
	}
	if err := q.done(); err != nil {
		return nil, err
	}
	return served, nil
}

// readyHead groups the first ready jobs of a queue and priority, by pawl_job_ready.
func readyHead(c *snapshot, queue string, priority int, until int64) ([]store.Ready, error) {
	var list []store.Ready
	q := c.query(`SELECT kind, version, capabilities, count(*), min(due) FROM (
			SELECT kind, version, capabilities, due FROM pawl_job INDEXED BY pawl_job_ready
			WHERE namespace = ? AND state = 2 AND queue = ? AND priority = ? AND due <= ? ORDER BY due, id LIMIT ?)
		GROUP BY kind, version, capabilities`).
		int(c.namespace).text(queue).int(int64(priority)).int(until).int(store.UnservedHead)
	for q.step() {
		r := store.Ready{Queue: queue, Kind: strings.Clone(q.colText(0)), Version: int(q.colInt(1)), Jobs: int(q.colInt(3)), Oldest: timeOf(q.colInt(4))}
		r.Most = r.Jobs
		if !q.colNull(2) {
			_ = json.Unmarshal([]byte(q.colText(2)), &r.Capabilities) // Check finds those that cannot be read
		}
		list = append(list, r)
	}
	return list, q.done()
}
