package jobs

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// List pages through jobs, newest id first. A page starts at an id, never at a
// count of rows, so that it costs the same however deep it is.
func List(c *lite.Snapshot, f store.Filter, p store.Page) (listed store.Listed, err error) {
	spans, err := ranges(c, f)
	if err != nil {
		return listed, err
	}
	var jobs []job.Job
	for _, r := range spans {
		if jobs, err = r.list(c, jobs, p); err != nil {
			return listed, err
		}
	}
	slices.SortFunc(jobs, func(a, b job.Job) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	if len(jobs) > p.Limit {
		listed.More = true
		jobs = slices.Clip(jobs[:p.Limit])
	}
	listed.Jobs = jobs
	return listed, nil
}

// Count counts the jobs a filter matches, up to cap (0 means exactly).
func Count(c *lite.Snapshot, f store.Filter, cap int) (n int, err error) {
	spans, err := ranges(c, f)
	if err != nil {
		return 0, err
	}
	for _, r := range spans {
		limit := -1
		if cap > 0 {
			if limit = cap - n; limit == 0 {
				break
			}
		}
		found, err := r.count(c, limit)
		if err != nil {
			return 0, err
		}
		n += found
	}
	return n, nil
}

// span is one stretch of an index that a filter reads, in id order.
type span struct {
	table string
	row   *Row[job.Job]
	where []string
	bind  []func(*lite.Query)
}

func (r span) and(condition string, bind func(*lite.Query)) span {
	r.where = append(slices.Clip(r.where), condition)
	if bind != nil {
		r.bind = append(slices.Clip(r.bind), bind)
	}
	return r
}

func (r span) query(c *lite.Snapshot, text string, bind ...func(*lite.Query)) *lite.Query {
	q := c.Once(text)
	for _, b := range append(slices.Clip(r.bind), bind...) {
		b(q)
	}
	return q
}

func (r span) list(c *lite.Snapshot, jobs []job.Job, p store.Page) ([]job.Job, error) {
	if p.After != (job.ID{}) {
		r = r.and("id < ?", func(q *lite.Query) { q.Blob(p.After[:]) })
	}
	q := r.query(c, r.text(),
		func(q *lite.Query) { q.Int(int64(p.Limit) + 1) })
	for q.Step() {
		jobs = append(jobs, job.Job{})
		r.row.Read(q, &jobs[len(jobs)-1])
	}
	return jobs, q.Close()
}

// text is the statement that lists the span.
func (r span) text() string {
	return "SELECT " + r.row.Columns + `
	FROM ` + r.table + `
	WHERE ` + strings.Join(r.where, " AND ") + `
	ORDER BY id DESC
	LIMIT ?`
}

// ListTexts are the statements that list the pages of a filter behind the
// first, for tests that look at their plans.
func ListTexts(c *lite.Snapshot, f store.Filter) (texts []string, err error) {
	spans, err := ranges(c, f)
	for _, r := range spans {
		texts = append(texts, r.and("id < ?", nil).text())
	}
	return texts, err
}

// countText is the statement that counts the span.
func (r span) countText() string {
	return `SELECT count(*)
	FROM (
		SELECT 1
		FROM ` + r.table + `
		WHERE ` + strings.Join(r.where, " AND ") + `
		LIMIT ?)`
}

func (r span) count(c *lite.Snapshot, limit int) (int, error) {
	q := r.query(c, r.countText(), func(q *lite.Query) { q.Int(int64(limit)) })
	n := 0
	if q.Step() {
		n = int(q.ColInt(0))
	}
	return n, q.Close()
}

// ranges says which stretches of which index a filter needs.
//
// Live jobs: what runs, or waits for something outside, is few and has an index
// of its own; what waits is most of the table, so the table itself is read.
// Archived jobs: by state and queue on pawl_job_archive_state, one stretch for
// each queue that has such jobs; without a state or queue, the table itself.
func ranges(c *lite.Snapshot, f store.Filter) ([]span, error) {
	live, archived := split(f)
	var spans []span
	for _, s := range live {
		r := span{table: "pawl_job", row: LiveRow}.and("namespace = ?", func(q *lite.Query) { q.Int(c.Namespace) })
		switch s {
		case 0:
		case job.Waiting:
			r = r.and("state = 2", nil)
		default:
			r.table += " INDEXED BY pawl_job_held"
			r = r.and("state <> 2 AND state = ?", func(q *lite.Query) { q.Int(int64(s)) })
		}
		if f.Queue != "" {
			r = r.and("queue = ?", func(q *lite.Query) { q.Text(f.Queue) })
		}
		spans = append(spans, r.narrow(f))
	}
	for _, s := range archived {
		r := span{table: "pawl_job_archive", row: archivedRow}.and("namespace = ?", func(q *lite.Query) { q.Int(c.Namespace) })
		if s == 0 {
			spans = append(spans, r.narrow(f))
			continue
		}
		r.table += " INDEXED BY pawl_job_archive_state"
		queues := []string{f.Queue}
		if f.Queue == "" {
			var err error
			if queues, err = archivedQueues(c, s); err != nil {
				return nil, err
			}
		}
		for _, name := range queues {
			spans = append(spans, r.and("state = ? AND queue = ?", func(q *lite.Query) { q.Int(int64(s)).Text(name) }).narrow(f))
		}
	}
	return spans, nil
}

// split says which states of each table a filter reads; 0 stands for all.
func split(f store.Filter) (live, archived []job.State) {
	if len(f.States) == 0 {
		if f.Queue != "" {
			return []job.State{0}, []job.State{job.Done, job.Dead, job.Cancelled, job.Skipped}
		}
		return []job.State{0}, []job.State{0}
	}
	return f.StatesByTable()
}

// narrow adds the conditions that no index serves.
func (r span) narrow(f store.Filter) span {
	text := func(condition, value string) {
		if value != "" {
			r = r.and(condition, func(q *lite.Query) { q.Text(value) })
		}
	}
	at := func(condition string, t time.Time) {
		if !t.IsZero() {
			r = r.and(condition, func(q *lite.Query) { q.Int(lite.Micros(t)) })
		}
	}
	text("kind = ?", f.Kind)
	text(`"key" = ?`, f.Key)
	text("EXISTS (SELECT 1 FROM json_each("+legible("tags")+") WHERE value = ?)", f.Tag)
	// A job due exactly now is ready: the two bounds of due share no time and leave none out.
	at("due <= ?", f.DueBefore)
	at("due > ?", f.DueAfter)
	at("created < ?", f.CreatedBefore)
	at("created >= ?", f.CreatedAfter)
	if f.Wait != job.NoWait {
		if strings.HasPrefix(r.table, "pawl_job_archive") {
			return r.and("false", nil) // what has ended waits for nothing
		}
		r = r.and("wait = ?", func(q *lite.Query) { q.Int(int64(f.Wait)) })
	}
	return r
}

// legible is a column of JSON, or NULL where it cannot be read: one bad row must
// not be the error of a statement that reads many (P8).
func legible(column string) string {
	return "CASE WHEN json_valid(" + column + ") THEN " + column + " END"
}

// nextArchivedQueue is the queue behind one that has archived jobs of a state.
//   - A seek on pawl_job_archive_state.
const nextArchivedQueue = `SELECT queue
	FROM pawl_job_archive INDEXED BY pawl_job_archive_state
	WHERE namespace = ? AND state = ? AND queue > ?
	ORDER BY queue
	LIMIT 1`

// archivedQueues steps from queue to queue on the index: one seek for each.
func archivedQueues(c *lite.Snapshot, state job.State) ([]string, error) {
	var queues []string
	last := ""
	for {
		q := c.On(nextArchivedQueue).Int(int64(state)).Text(last)
		if !q.Step() {
			return queues, q.Done()
		}
		last = q.ColText(0)
		queues = append(queues, last)
		if err := q.Done(); err != nil {
			return nil, err
		}
	}
}
