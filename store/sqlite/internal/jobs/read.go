package jobs

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
	"github.com/pawlwork/pawl/store/sqlite/internal/workers"
)

// Where a job is looked for, by primary keys.
var gets = []struct {
	text string
	row  *Row[job.Job]
}{
	{"SELECT " + LiveRow.Columns + `
	FROM pawl_job
	WHERE namespace = ? AND id = ?`, LiveRow},
	{"SELECT " + archivedRow.Columns + `
	FROM pawl_job_archive
	WHERE namespace = ? AND id = ?`, archivedRow},
}

// getOne appends a job, if it exists.
func getOne(c *lite.Snapshot, jobs []job.Job, id job.ID) ([]job.Job, error) {
	for _, get := range gets {
		q := c.On(get.text).Blob(id[:])
		found := q.Step()
		if found {
			jobs = append(jobs, job.Job{})
			get.row.Read(q, &jobs[len(jobs)-1])
		}
		if err := q.Done(); found || err != nil {
			return jobs, err
		}
	}
	return jobs, nil
}

// Get returns the jobs that exist, live or archived, in the order asked.
func Get(c *lite.Snapshot, ids []job.ID) ([]job.Job, error) {
	var jobs []job.Job
	for _, id := range ids {
		var err error
		if jobs, err = getOne(c, jobs, id); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

// countRuns counts what each worker with totals runs of a queue.
//   - pawl_job_held, once for each worker: they are few, and come first.
const countRuns = `SELECT w.label, w.totals, w.lost IS NOT NULL, count(*)
	FROM pawl_worker AS w
	CROSS JOIN pawl_job AS j INDEXED BY pawl_job_held
	WHERE w.namespace = ?1 AND w.totals IS NOT NULL
		AND j.namespace = ?1 AND j.state = 3 AND j.state <> 2 AND j.worker = w.id AND j.queue = ?2
	GROUP BY w.id`

// runsOfQueue counts what the workers with totals run of a queue.
func runsOfQueue(c *lite.Snapshot, queue string) ([]store.QueueRuns, error) {
	var runs []store.QueueRuns
	q := c.On(countRuns).Text(queue)
	for q.Step() {
		runs = append(runs, store.QueueRuns{Label: q.ColText(0), Totals: []byte(q.ColText(1)), Lost: q.ColBool(2), Runs: int(q.ColInt(3))})
	}
	return runs, q.Done()
}

// countAhead counts ready jobs of one priority before a place in their order.
//   - A range of pawl_job_ready.
const countAhead = `SELECT count(*)
	FROM (
		SELECT 1
		FROM pawl_job
		WHERE namespace = ? AND state = 2 AND queue = ? AND priority = ? AND (due, id) < (?, ?)
		LIMIT ?)`

// ahead counts the ready jobs of the queue that a claim meets first, as far as
// the cap.
func ahead(c *lite.Snapshot, j *job.Job, now int64, most int) (n int, capped bool, err error) {
	for p := job.MinPriority; p <= j.Priority && n <= most; p++ {
		due, id := now+1, job.ID{}
		if p == j.Priority {
			due, id = min(lite.Micros(j.Due), now+1), j.ID
		}
		count, err := c.On(countAhead).Text(j.Queue).Int(int64(p)).Int(due).Blob(id[:]).Int(int64(most + 1 - n)).One()
		if err != nil {
			return 0, false, err
		}
		n += int(count)
	}
	return min(n, most), n > most, nil
}

// Situations gathers why jobs are not running. Workers and pauses are read once, and
// once for each queue what runs of it.
func Situations(c *lite.Snapshot, ids []job.ID) ([]job.Situation, error) {
	found, err := Get(c, ids)
	if err != nil {
		return nil, err
	}
	registry, err := workers.Registry(c)
	if err != nil {
		return nil, err
	}
	pauses, err := settings.Pauses(c)
	if err != nil {
		return nil, err
	}
	type known struct {
		runs []store.QueueRuns
	}
	queues := map[string]known{}
	now, most := c.Clock.Now(), store.AheadCap(len(ids))
	list := make([]job.Situation, len(found))
	for i := range found {
		sit, j := &list[i], &found[i]
		sit.Job, sit.Now = *j, lite.TimeOf(now)
		if j.State.Final() {
			continue
		}
		q, ok := queues[j.Queue]
		if !ok {
			if q.runs, err = runsOfQueue(c, j.Queue); err != nil {
				return nil, err
			}
			queues[j.Queue] = q
		}
		sit.Pause = store.PauseOf(pauses, j.Queue, j.Kind)
		store.Situate(sit, registry, q.runs)
		switch j.State {
		case job.Running:
			sit.Label, err = workers.Label(c, j.Worker)
		case job.Waiting:
			sit.Ahead, sit.AheadCapped, err = ahead(c, j, now, most)
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// linesOf lists lines of a job, by primary key and in its order.
const linesOf = `SELECT time, run, level, text
	FROM pawl_job_log
	WHERE namespace = ? AND job = ? AND line > ?
	ORDER BY line
	LIMIT ?`

// Logs returns a job's lines, the oldest first, skipping the first n.
func Logs(c *lite.Snapshot, id job.ID, skip, limit int) ([]job.LogLine, error) {
	var lines []job.LogLine
	q := c.On(linesOf).Blob(id[:]).Int(int64(skip)).Int(int64(limit))
	for q.Step() {
		lines = append(lines, job.LogLine{Time: lite.TimeOf(q.ColInt(0)), Run: q.ColInt(1), Level: int(q.ColInt(2)), Text: q.ColText(3)})
	}
	return lines, q.Done()
}

// Seen returns those of ids that are jobs, live or archived.
func Seen(c *lite.Snapshot, ids []job.ID) ([]job.ID, error) {
	var list []job.ID
	for _, id := range ids {
		n, err := c.Query(seenText).Int(c.Namespace).Blob(id[:]).Int(c.Namespace).Blob(id[:]).One()
		if err != nil {
			return nil, err
		}
		if n > 0 {
			list = append(list, id)
		}
	}
	return list, nil
}

// Two reads by the primary keys of the tables.
const seenText = `SELECT count(*)
	FROM (
		SELECT 1
		FROM pawl_job
		WHERE namespace = ? AND id = ?
	UNION ALL
		SELECT 1
		FROM pawl_job_archive
		WHERE namespace = ? AND id = ?)`
