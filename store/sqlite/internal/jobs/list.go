package jobs

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// List pages through jobs. A page starts at a position, never at a count of rows,
// so that it costs the same however deep it is. It merges the stretches of the
// indexes that it reads, row by row, and stops when it has visited MaxWalked: what
// is before the row it came to has been seen, in every stretch.
func List(c *lite.Snapshot, f store.Filter, p store.Page) (listed store.Listed, err error) {
	cursors, err := openCursors(c, f, p)
	defer func() {
		for _, r := range cursors {
			err = errors.Join(err, r.close())
		}
	}()
	if err != nil {
		return listed, err
	}
	for visits := 0; ; visits++ {
		var first *cursor
		for _, r := range cursors {
			if !r.over && (first == nil || p.Order.Compare(r.at, first.at) < 0) {
				first = r
			}
		}
		if first == nil || len(listed.Jobs) > p.Limit {
			break
		}
		if visits == store.MaxWalked {
			listed.Stop(p.After)
			break
		}
		if first.matches() {
			var j job.Job
			if err := first.read(&j); err != nil {
				return listed, err
			}
			if f.Matches(j.Failures) {
				listed.Jobs = append(listed.Jobs, j)
			}
		}
		p.After = first.at
		if err := first.next(); err != nil {
			return listed, err
		}
	}
	listed.Fill(p)
	return listed, nil
}

// Count counts the jobs a filter matches, up to cap.
func Count(c *lite.Snapshot, f store.Filter, cap int) (counted store.Counted, err error) {
	spans, err := spansOf(c, f)
	if err != nil {
		return counted, err
	}
	left := store.MaxVisits
	for _, r := range spans {
		// One more than it may count tells that there is more.
		q := r.query(c, r.text("id, failures")+" LIMIT ?", func(q *lite.Query) { q.Int(int64(left) + 1) })
		for q.Step() {
			if left--; left < 0 {
				break
			}
			if q.ColBool(2) && (f.Fingerprint == "" || f.Matches(job.StoredFailures(q.ColBlob(1)))) {
				counted.Jobs++
			}
			if counted.Jobs > cap {
				break
			}
		}
		if err := q.Close(); err != nil {
			return counted, err
		}
		if left < 0 || counted.Jobs > cap {
			return store.Counted{Jobs: min(counted.Jobs, cap), More: true}, nil
		}
	}
	return counted, nil
}

// span is one stretch of an index that a filter reads.
type span struct {
	table string
	index string // "" for the primary key
	row   *Row[job.Job]
	where []string // what the index serves
	bind  []func(*lite.Query)
	match []string // what it does not: compared row by row
	look  []func(*lite.Query)
	// unsorted says that the index has another order: such jobs have to be few.
	unsorted bool
}

func (r span) and(condition string, bind func(*lite.Query)) span {
	r.where = append(slices.Clip(r.where), condition)
	if bind != nil {
		r.bind = append(slices.Clip(r.bind), bind)
	}
	return r
}

func (r span) but(condition string, bind func(*lite.Query)) span {
	r.match = append(slices.Clip(r.match), condition)
	if bind != nil {
		r.look = append(slices.Clip(r.look), bind)
	}
	return r
}

func (r span) query(c *lite.Snapshot, text string, bind ...func(*lite.Query)) *lite.Query {
	q := c.Once(text)
	for _, b := range slices.Concat(r.look, r.bind, bind) {
		b(q)
	}
	return q
}

// text is the statement that reads the span, without an order. Its last column
// says whether a row matches.
func (r span) text(columns string) string {
	match := "true"
	if len(r.match) > 0 {
		match = strings.Join(r.match, " AND ")
	}
	from := r.table
	if r.index != "" {
		from += " INDEXED BY " + r.index
	}
	return "SELECT " + columns + ", " + match + `
	FROM ` + from + `
	WHERE ` + strings.Join(r.where, " AND ")
}

// orders are what a stretch of each order is sorted by, and what is behind a
// position.
var orders = map[store.Order]struct{ by, behind string }{
	store.ByID:     {"id DESC", "id < ?"},
	store.ByDue:    {"due, id", "(due, id) > (?, ?)"},
	store.ByFinish: {"finished DESC, id DESC", "(finished, id) < (?, ?)"},
}

// page is the span from a position on, and the end of its statement.
func (r span) page(p store.Page) (span, string) {
	order := orders[p.Order]
	if p.After != (store.Bookmark{}) {
		r = r.and(order.behind, func(q *lite.Query) {
			if p.Order != store.ByID {
				q.Int(lite.Micros(p.After.At))
			}
			q.Blob(p.After.ID[:])
		})
	}
	return r, "\n\tORDER BY " + order.by
}

// ListTexts are the statements that list the pages of a filter behind the
// first, for tests that look at their plans.
func ListTexts(c *lite.Snapshot, f store.Filter, p store.Page) (texts []string, err error) {
	p.After.ID[0] = 1
	spans, err := listSpans(c, f, p)
	for _, r := range spans {
		r, order := r.page(p)
		if r.unsorted {
			order = "" // cursor.pick sorts
		}
		texts = append(texts, r.text(r.row.Columns)+order)
	}
	return texts, err
}

// spansOf says which stretches of which index a filter needs, in any order.
//
// Live jobs: what waits is found by its queue, what runs by its worker, what is
// suspended or blocked by its state. Archived jobs: by state and queue, one
// stretch for each queue that has such jobs. Where nothing of that is asked for,
// the table itself is read.
func spansOf(c *lite.Snapshot, f store.Filter) (spans []span, err error) {
	inNamespace := func(q *lite.Query) { q.Int(c.Namespace) }
	live, archived := f.Reads()
	for _, s := range live {
		r := span{table: "pawl_job", row: LiveRow}.and("namespace = ?", inNamespace)
		switch {
		case s == 0 || s == job.Waiting && f.Queue == "":
			r = walk(r, f, s)
		case s == job.Waiting:
			r.index, r.unsorted = "pawl_job_ready", true
			r = r.and("state = 2 AND queue = ?", func(q *lite.Query) { q.Text(f.Queue) })
		case s == job.Running && f.Worker == 0:
			r.index, r.unsorted = "pawl_job_held", true
			r = inQueue(r.and("state <> 2 AND state = 3", nil), f)
		case s == job.Running:
			r.index = "pawl_job_held"
			r = inQueue(r.and("state <> 2 AND state = 3 AND worker = ?", func(q *lite.Query) { q.Int(int64(f.Worker)) }), f)
		default:
			r.index = "pawl_job_held"
			r = inQueue(r.and("state <> 2 AND state = ? AND worker IS NULL", func(q *lite.Query) { q.Int(int64(s)) }), f)
		}
		spans = append(spans, r.narrow(f, true))
	}
	for _, s := range archived {
		r := span{table: "pawl_job_archive", row: archivedRow}.and("namespace = ?", inNamespace)
		if s == 0 {
			spans = append(spans, r.narrow(f, false))
			continue
		}
		r.index = "pawl_job_archive_state"
		queues := []string{f.Queue}
		if f.Queue == "" {
			if queues, err = archivedQueues(c, s); err != nil {
				return nil, err
			}
		}
		for _, name := range queues {
			spans = append(spans, r.and("state = ? AND queue = ?", func(q *lite.Query) { q.Int(int64(s)).Text(name) }).narrow(f, false))
		}
	}
	return spans, nil
}

// walk makes a span of the whole table: states and queue are compared row by row.
func walk(r span, f store.Filter, states ...job.State) span {
	var some []string
	for _, s := range states {
		if s != 0 {
			some = append(some, "state = ?")
			r.look = append(slices.Clip(r.look), func(q *lite.Query) { q.Int(int64(s)) })
		}
	}
	if len(some) > 0 {
		r.match = append(slices.Clip(r.match), "("+strings.Join(some, " OR ")+")")
	}
	return inQueue(r, f)
}

func inQueue(r span, f store.Filter) span {
	if f.Queue == "" {
		return r
	}
	return r.but("queue = ?", func(q *lite.Query) { q.Text(f.Queue) })
}

// listSpans are the spans that are in the order of a page, and those that are
// few enough to be sorted. What is not is walked by its id, together.
func listSpans(c *lite.Snapshot, f store.Filter, p store.Page) (spans []span, err error) {
	if p.Order == store.ByDue {
		for n := job.MinPriority; n <= job.MaxPriority; n++ {
			spans = append(spans, dueSpan(c, f, n))
		}
		return spans, nil
	}
	all, err := spansOf(c, f)
	if err != nil {
		return nil, err
	}
	if p.Order == store.ByFinish {
		for i := range all {
			all[i].unsorted = true
		}
		return all, nil
	}
	var walked []job.State
	for _, r := range all {
		if r.unsorted {
			few, err := r.few(c)
			if err != nil {
				return nil, err
			}
			if !few {
				if r.index == "pawl_job_ready" {
					walked = append(walked, job.Waiting)
				} else {
					walked = append(walked, job.Running)
				}
				continue
			}
		}
		spans = append(spans, r)
	}
	if len(walked) > 0 {
		r := span{table: "pawl_job", row: LiveRow}.and("namespace = ?", func(q *lite.Query) { q.Int(c.Namespace) })
		spans = append(spans, walk(r, f, walked...).narrow(f, true))
	}
	return spans, nil
}

// few reports whether a span is short enough to be sorted.
//   - The span's index alone.
func (r span) few(c *lite.Snapshot) (bool, error) {
	r.match, r.look = nil, nil
	q := r.query(c, "SELECT count(*) FROM ("+r.text("1")+" LIMIT ?)", func(q *lite.Query) { q.Int(store.MaxSorted + 1) })
	few := q.Step() && q.ColInt(0) <= store.MaxSorted
	return few, q.Close()
}

// dueSpan is the waiting jobs of one queue and priority, the next one due first.
func dueSpan(c *lite.Snapshot, f store.Filter, priority int) span {
	r := span{table: "pawl_job", index: "pawl_job_ready", row: LiveRow}.
		and("namespace = ? AND state = 2 AND queue = ? AND priority = ?", func(q *lite.Query) { q.Int(c.Namespace).Text(f.Queue).Int(int64(priority)) })
	if !f.DueBefore.IsZero() {
		r = r.and("due <= ?", func(q *lite.Query) { q.Int(lite.Micros(f.DueBefore)) })
	}
	if !f.DueAfter.IsZero() {
		r = r.and("due > ?", func(q *lite.Query) { q.Int(lite.Micros(f.DueAfter)) })
	}
	return r.narrow(f, true)
}

// narrow adds the conditions that no index serves.
func (r span) narrow(f store.Filter, live bool) span {
	text := func(condition, value string) {
		if value != "" {
			r = r.but(condition, func(q *lite.Query) { q.Text(value) })
		}
	}
	at := func(condition string, t time.Time) {
		if !t.IsZero() {
			r = r.but(condition, func(q *lite.Query) { q.Int(lite.Micros(t)) })
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
	if live && f.Wait != job.NoWait {
		r = r.but("wait = ?", func(q *lite.Query) { q.Int(int64(f.Wait)) })
	}
	if !live {
		at("finished < ?", f.FinishedBefore)
		at("finished >= ?", f.FinishedAfter)
	}
	if f.Fingerprint != "" { // somewhere in it; Filter.Matches reads which failure has it
		r = r.but("failures IS NOT NULL AND instr(failures, ?) > 0", func(q *lite.Query) { q.Blob([]byte(f.Fingerprint)) })
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

const (
	// nextWaitingQueue is the queue behind one that has waiting jobs.
	//   - A seek on pawl_job_ready.
	nextWaitingQueue = `SELECT queue
	FROM pawl_job INDEXED BY pawl_job_ready
	WHERE namespace = ? AND state = 2 AND queue > ?
	ORDER BY queue
	LIMIT 1`

	// countWaiting counts those of one queue.
	//   - pawl_job_ready alone.
	countWaiting = `SELECT count(*)
	FROM (
		SELECT 1
		FROM pawl_job INDEXED BY pawl_job_ready
		WHERE namespace = ? AND state = 2 AND queue = ?
		LIMIT ?)`

	// countArchived counts those of one queue and state.
	//   - pawl_job_archive_state alone.
	countArchived = `SELECT count(*)
	FROM (
		SELECT 1
		FROM pawl_job_archive INDEXED BY pawl_job_archive_state
		WHERE namespace = ? AND state = ? AND queue = ?
		LIMIT ?)`

	// countHeld counts what runs, is suspended or blocked, of all queues.
	//   - pawl_job_held; the queue is in the table.
	countHeld = `SELECT queue, count(*)
	FROM (
		SELECT queue
		FROM pawl_job INDEXED BY pawl_job_held
		WHERE namespace = ? AND state <> 2 AND state = ?
		LIMIT ?)
	GROUP BY queue`
)

// Counts counts the jobs of each queue in each state.
func Counts(c *lite.Snapshot) (counts []store.QueueCount, err error) {
	const most = store.MaxCounted + 1
	add := func(queue string, s job.State, n int64) {
		counts = append(counts, store.QueueCount{Queue: queue, State: s, Counted: store.Bounded(int(n))})
	}
	for _, s := range job.States() {
		switch {
		case s == job.Waiting:
			for queue := ""; ; {
				q := c.On(nextWaitingQueue).Text(queue)
				found := q.Step()
				if found {
					queue = q.ColText(0)
				}
				if err := q.Done(); err != nil {
					return nil, err
				}
				if !found {
					break
				}
				n, err := c.On(countWaiting).Text(queue).Int(most).One()
				if err != nil {
					return nil, err
				}
				add(queue, s, n)
			}
		case s.Final():
			queues, err := archivedQueues(c, s)
			if err != nil {
				return nil, err
			}
			for _, queue := range queues {
				n, err := c.On(countArchived).Int(int64(s)).Text(queue).Int(most).One()
				if err != nil {
					return nil, err
				}
				add(queue, s, n)
			}
		default:
			first, total := len(counts), int64(0)
			q := c.On(countHeld).Int(int64(s)).Int(most)
			for q.Step() {
				add(q.ColText(0), s, q.ColInt(1))
				total += q.ColInt(1)
			}
			if err := q.Done(); err != nil {
				return nil, err
			}
			for i := range counts[first:] {
				counts[first+i].More = total > store.MaxCounted
			}
		}
	}
	store.SortCounts(counts)
	return counts, nil
}
