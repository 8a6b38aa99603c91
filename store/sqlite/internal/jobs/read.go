package jobs

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Where a job is looked for, by primary keys.
var gets = []struct {
	text string
	row  *Row[job.Job]
}{
	{"SELECT " + LiveRow.Columns + `
	FROM pawl_job
	WHERE namespace = ? AND id = ?`, LiveRow},
	{"SELECT " + ArchivedRow.Columns + `
	FROM pawl_job_archive
	WHERE namespace = ? AND id = ?`, ArchivedRow},
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
