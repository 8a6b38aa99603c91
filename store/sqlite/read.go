package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Get returns the jobs that exist, live or archived, in the order asked.
func (s *Store) Get(ctx context.Context, ids []job.ID) (jobs []job.Job, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = s.read(ctx, func(c *lite.Snapshot) error {
		jobs = nil
		for _, id := range ids {
			j, ok, err := get(c, id)
			if err != nil {
				return err
			}
			if ok {
				jobs = append(jobs, j)
			}
		}
		return nil
	})
	return jobs, err
}

func get(c *lite.Snapshot, id job.ID) (j job.Job, ok bool, err error) {
	for _, text := range []string{
		"SELECT " + liveColumns + " FROM pawl_job WHERE namespace = ? AND id = ?",
		"SELECT " + archivedColumns + " FROM pawl_job_archive WHERE namespace = ? AND id = ?",
	} {
		q := c.Query(text).Int(c.Namespace).Blob(id[:])
		if ok = q.Step(); ok {
			readJob(q, &j)
		}
		if err = q.Done(); ok || err != nil {
			return j, ok, err
		}
	}
	return j, false, nil
}

// runsOfQueue counts what the workers with totals run of a queue.
func runsOfQueue(c *lite.Snapshot, queue string) ([]store.QueueRuns, error) {
	var runs []store.QueueRuns
	q := c.Query(`SELECT w.label, w.totals, w.lost IS NOT NULL, count(*) FROM pawl_worker AS w CROSS JOIN pawl_job AS j INDEXED BY pawl_job_held
		WHERE w.namespace = ?1 AND w.totals IS NOT NULL AND j.namespace = ?1 AND j.state = 3 AND j.state <> 2 AND j.worker = w.id AND j.queue = ?2
		GROUP BY w.id`).Int(c.Namespace).Text(queue)
	for q.Step() {
		runs = append(runs, store.QueueRuns{Label: q.ColText(0), Totals: []byte(q.ColText(1)), Lost: q.ColBool(2), Runs: int(q.ColInt(3))})
	}
	return runs, q.Done()
}

// maxAhead caps the count of jobs that come first.
const maxAhead = 10_000

// Situation gathers why a job is not running, in one snapshot.
func (s *Store) Situation(ctx context.Context, id job.ID) (sit job.Situation, err error) {
	err = s.read(ctx, func(c *lite.Snapshot) error {
		sit = job.Situation{}
		j, ok, err := get(c, id)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("job %s: %w", id, job.ErrNotFound)
		}
		now := c.Clock.Now()
		sit.Job, sit.Now = j, lite.TimeOf(now)
		if j.State.Final() {
			return nil
		}
		if sit.QueuePaused, err = paused(c, j.Queue); err != nil {
			return err
		}
		workers, err := registry(c)
		if err != nil {
			return err
		}
		runs, err := runsOfQueue(c, j.Queue)
		if err != nil {
			return err
		}
		store.Situate(&sit, workers, runs)
		switch j.State {
		case job.Running:
			q := c.Query("SELECT label FROM pawl_worker WHERE namespace = ? AND id = ?").Int(c.Namespace).Int(int64(j.Worker))
			if q.Step() {
				sit.Label = q.ColText(0)
			}
			return q.Done()
		case job.Waiting:
			sit.Ahead, sit.AheadCapped, err = ahead(c, &j, now)
		}
		return err
	})
	return sit, err
}

// ahead counts the ready jobs of the queue that a claim meets first, as far as
// the cap: index ranges of pawl_job_ready, one per priority.
func ahead(c *lite.Snapshot, j *job.Job, now int64) (n int, capped bool, err error) {
	for p := job.MinPriority; p <= j.Priority && n <= maxAhead; p++ {
		before := position{due: now + 1}
		if p == j.Priority {
			before = position{due: min(lite.Micros(j.Due), now+1), id: j.ID}
		}
		count, err := c.Query(`SELECT count(*) FROM (SELECT 1 FROM pawl_job
			WHERE namespace = ? AND state = 2 AND queue = ? AND priority = ? AND (due, id) < (?, ?) LIMIT ?)`).
			Int(c.Namespace).Text(j.Queue).Int(int64(p)).Int(before.due).Blob(before.id[:]).Int(maxAhead + 1 - int64(n)).One()
		if err != nil {
			return 0, false, err
		}
		n += int(count)
	}
	return min(n, maxAhead), n > maxAhead, nil
}

// Logs returns a job's lines, the oldest first, skipping the first n.
func (s *Store) Logs(ctx context.Context, id job.ID, skip, limit int) (lines []job.LogLine, err error) {
	err = s.read(ctx, func(c *lite.Snapshot) error {
		lines = nil
		q := c.Query("SELECT time, run, level, text FROM pawl_job_log WHERE namespace = ? AND job = ? AND line > ? ORDER BY line LIMIT ?").
			Int(c.Namespace).Blob(id[:]).Int(int64(skip)).Int(int64(limit))
		for q.Step() {
			lines = append(lines, job.LogLine{Time: lite.TimeOf(q.ColInt(0)), Run: q.ColInt(1), Level: int(q.ColInt(2)), Text: q.ColText(3)})
		}
		return q.Done()
	})
	return lines, err
}

// Now is the store's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	if err := s.usable(ctx); err != nil {
		return time.Time{}, err
	}
	return lite.TimeOf(s.clock.Now()), nil
}
