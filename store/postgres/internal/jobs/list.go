package jobs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// List pages through jobs. A page starts at a position, never at a count of rows,
// so that it costs the same however deep it is. Each stretch of an index that it
// reads has the same part of MaxWalked: behind the first row, in the order of the
// page, at which one of them came to its part, nobody knows what is missing, and
// the page stops there.
func (r *Room) List(ctx context.Context, f store.Filter, p store.Page) (store.Listed, error) {
	if err := p.Check(f); err != nil {
		return store.Listed{}, err
	}
	stretches, err := r.stretches(ctx, f, p.Order)
	if err != nil {
		return store.Listed{}, err
	}
	if len(stretches) == 0 {
		return store.Listed{}, r.pg.Usable(ctx)
	}
	b := &listing{}
	text, part := b.page(stretches, p)
	var listed store.Listed
	err = r.pg.Read(ctx, func() []*pg.Statement {
		listed = store.Listed{}
		var rows RowReader
		read := 0
		return []*pg.Statement{seek(), {Text: text, Args: b.args, Raw: func(cols [][]byte) error {
			var j job.Job
			if err := rows.Job(cols, &j); err != nil || listed.Stopped {
				return err
			}
			at, stops, matches := p.Order.Bookmark(&j), rows.Int8() == int64(part), rows.Bool()
			if err := rows.Err; err != nil {
				return err
			}
			if matches && f.Matches(j.Failures) {
				listed.Jobs = append(listed.Jobs, j)
			}
			// The statement ends with one row more than fit; where a failure that it
			// sent was not the last one, the page is not full all the same.
			if read++; len(listed.Jobs) <= p.Limit && (stops || read > p.Limit) {
				listed.Stop(at)
			}
			return nil
		}}}
	})
	if err != nil {
		return store.Listed{}, err
	}
	listed.Fill(p)
	return listed, nil
}

// ListText is the statement of a page, for tests that count what it visits.
func (r *Room) ListText(ctx context.Context, f store.Filter, p store.Page) (string, []any, error) {
	stretches, err := r.stretches(ctx, f, p.Order)
	if err != nil {
		return "", nil, err
	}
	b := &listing{}
	text, _ := b.page(stretches, p)
	return text, b.args, nil
}

// Count counts the jobs a filter matches, up to cap (0 means MaxCounted).
func (r *Room) Count(ctx context.Context, f store.Filter, cap int) (store.Counted, error) {
	cap, err := store.CountCap(cap)
	if err != nil {
		return store.Counted{}, err
	}
	stretches, err := r.withQueues(ctx, r.of(f))
	if err != nil {
		return store.Counted{}, err
	}
	if len(stretches) == 0 {
		return store.Counted{}, r.pg.Usable(ctx)
	}
	b := &listing{}
	text := b.count(stretches, f, cap)
	var counted store.Counted
	visits := 0
	err = r.pg.Read(ctx, func() []*pg.Statement {
		counted, visits = store.Counted{}, 0
		if f.Fingerprint == "" {
			return []*pg.Statement{seek(), {Text: text, Args: b.args, Each: func(scan pg.Scan) error { return scan(&visits, &counted.Jobs) }}}
		}
		return []*pg.Statement{seek(), {Text: text, Args: b.args, Each: func(scan pg.Scan) error {
			var failures []byte
			visits++
			err := scan(&failures)
			if f.Matches(job.StoredFailures(failures)) {
				counted.Jobs++
			}
			return err
		}}}
	})
	counted.More = visits > store.MaxVisits || counted.Jobs > cap
	counted.Jobs = min(counted.Jobs, cap)
	return counted, err
}

// seek tells the planner that every stretch has its index, in whose order it is
// asked for: one that believes otherwise reads a whole namespace and sorts it. The
// sorts that are left seem dear to it then, and worth compiling, which takes a
// hundred times as long as the page.
func seek() *pg.Statement {
	return &pg.Statement{Text: `SELECT
	set_config('enable_bitmapscan', 'off', true),
	set_config('enable_seqscan', 'off', true),
	set_config('enable_sort', 'off', true),
	set_config('jit', 'off', true)`}
}

// condition is one of a stretch, with a %s for each of its arguments.
type condition struct {
	text string
	args []any
}

func when(text string, args ...any) condition { return condition{text, args} }

// stretch is a part of a table that a filter reads.
type stretch struct {
	table, columns string
	state          job.State   // 0 for all
	where          []condition // what an index serves
	match          []condition // what none does: compared row by row
	// each is a list to read one after the other, each in order, and by the column
	// that it is compared with: queue, or priority. withQueues names the queues.
	by       string
	prefix   string // of the order in which an index has it
	index    string // that order, where it has to be sorted
	each     any
	lists    int
	unsorted bool // the index has another order: such jobs have to be few
}

var listTypes = map[string]string{"queue": "::text[]", "priority": "::smallint[]"}

// listing writes a statement with its arguments.
type listing struct{ args []any }

func (b *listing) arg(value any) string {
	b.args = append(b.args, value)
	return fmt.Sprintf("$%d", len(b.args))
}

// all writes conditions that have to hold together.
func (b *listing) all(conditions []condition) string {
	var list []string
	for _, c := range conditions {
		names := make([]any, len(c.args))
		for i, a := range c.args {
			names[i] = b.arg(a)
		}
		list = append(list, fmt.Sprintf(c.text, names...))
	}
	if list == nil {
		return "true"
	}
	return strings.Join(list, " AND ")
}

// read is what reads a stretch, or one of its list.
func (b *listing) read(r stretch, columns string) string {
	text := "SELECT " + columns + "\n\tFROM " + r.table + "\n\tWHERE " + b.all(r.where)
	switch r.by {
	case "queue":
		text += " AND " + queueIs("each.name")
	case "priority":
		text += " AND priority = each.name"
	}
	if r.unsorted {
		text += "\n\tORDER BY " + r.index
	}
	return text
}

// each makes what reads one of a list read all of it.
func (b *listing) each(r stretch, text string) string {
	if r.by == "" {
		return "(" + text + ")"
	}
	return "(SELECT part.*\nFROM unnest(" + b.arg(r.each) + listTypes[r.by] + ") AS each (name)\nCROSS JOIN LATERAL (" + text + ") AS part)"
}

// queueIs compares the queue of archived jobs so that it is a part of the order
// they are read in. Were it compared for equality, a planner without statistics
// would read the whole key in its order by id rather than job_archive_state.
func queueIs(name string) string { return "queue >= " + name + " AND queue <= " + name }

// orders are what a stretch of each order is sorted by, and what is behind a
// position.
var orders = map[store.Order]struct {
	by     string
	behind func(store.Bookmark) condition
}{
	store.ByID:     {"id DESC", func(at store.Bookmark) condition { return when("id < %s", at.ID) }},
	store.ByDue:    {"due, id", func(at store.Bookmark) condition { return when("(due, id) > (%s, %s)", at.At, at.ID) }},
	store.ByFinish: {"finished DESC, id DESC", func(at store.Bookmark) condition { return when("(finished, id) < (%s, %s)", at.At, at.ID) }},
}

// page is the statement of a page, and which row of a stretch is the last of its
// part.
func (b *listing) page(stretches []stretch, p store.Page) (text string, part int) {
	order := orders[p.Order]
	var behind []condition
	if p.After != (store.Bookmark{}) {
		behind = []condition{order.behind(p.After)}
	}
	lists := 0
	for _, r := range stretches {
		if !r.unsorted {
			lists += max(r.lists, 1)
		}
	}
	part = max(store.MaxWalked/max(lists, 1), 1)
	limit, last := b.arg(p.Limit+1), strconv.Itoa(part)
	parts := make([]string, len(stretches))
	for i, r := range stretches {
		visited, end, chosen, by := "0::bigint", "", "", order.by
		if r.unsorted { // it is few, and read to its end
			chosen = "matches AND " + b.all(behind)
		} else {
			by = r.prefix + by
			r.where = slices.Concat(r.where, behind)
			visited, end = "row_number() OVER (ORDER BY "+by+")", "\n\tORDER BY "+by+"\n\tLIMIT "+last
			chosen = "matches OR visited = " + last
		}
		columns := r.columns + ", " + visited + " AS visited, (" + b.all(r.match) + ") AS matches"
		parts[i] = b.each(r, "SELECT *\nFROM (\n\t"+b.read(r, columns)+end+"\n) AS stretch\nWHERE "+chosen+"\nORDER BY "+by+"\nLIMIT "+limit)
	}
	return "SELECT *\nFROM (\n" + strings.Join(parts, "\nUNION ALL\n") + "\n) AS listed\nORDER BY " + order.by + "\nLIMIT " + limit, part
}

// count is the statement of a count: how many rows it visited, and how many of
// them matched. By fingerprint it answers the failures of each, NULL for those
// that cannot have it.
func (b *listing) count(stretches []stretch, f store.Filter, cap int) string {
	most := cap
	parts := make([]string, len(stretches))
	for i, r := range stretches {
		if len(r.match) > 0 { // else every row that it visits matches
			most = store.MaxVisits
		}
		columns := "(" + b.all(r.match) + ") AS matches"
		if f.Fingerprint != "" {
			columns = "CASE WHEN " + strings.TrimSuffix(columns, " AS matches") + " THEN failures END AS failures"
		}
		parts[i] = b.each(r, b.read(r, columns))
	}
	all := "SELECT *\n\tFROM (\n" + strings.Join(parts, "\nUNION ALL\n") + "\n\t) AS stretch\n\tLIMIT " + b.arg(most+1)
	if f.Fingerprint != "" {
		return all
	}
	return "SELECT count(*), count(*) FILTER (WHERE matches)\nFROM (\n\t" + all + "\n) AS counted"
}

// of says which stretches of which index a filter needs, in any order.
//
// Live jobs: what waits is found by its queue on job_ready, what runs by its
// worker on job_held, what is suspended or blocked on job_idle. Archived jobs: by
// state and queue on job_archive_state, queue after queue where none is named.
// Where nothing of that is asked for, the table itself is read by its key.
func (r *Room) of(f store.Filter) (list []stretch) {
	live, archived := f.Reads()
	for _, state := range live {
		s := r.live(f)
		s.state = state
		switch {
		case state == 0:
		case state == job.Waiting && f.Queue == "":
			s.match = append(s.match, when("state = 2"))
		case state == job.Waiting:
			s.where = append(s.where, when("state = 2 AND queue = %s", f.Queue))
			s.unsorted, s.index = true, "priority, due, id"
		default:
			s.where = append(s.where, when(fmt.Sprintf("state = %d", state)))
			s.unsorted, s.index = state == job.Running, "worker, claim"
			if f.Worker != 0 {
				s.where = append(s.where, when("worker = %s", int64(f.Worker)))
			}
			s.match = append(s.match, inQueue(f)...)
		}
		list = append(list, s)
	}
	for _, state := range archived {
		s := stretch{table: "pawl.job_archive", columns: archivedColumns, state: state, where: []condition{r.here()}, match: narrow(f, false)}
		if state != 0 {
			s.where = append(s.where, when(fmt.Sprintf("state = %d", state)))
			s.prefix, s.index = "queue DESC, ", "queue DESC, id DESC"
			if f.Queue == "" {
				s.by = "queue"
			} else {
				s.where = append(s.where, when(queueIs("%[1]s"), f.Queue))
			}
		}
		list = append(list, s)
	}
	return list
}

func (r *Room) here() condition { return when("namespace = %s", r.pg.Namespace) }

// live is the live jobs, to be walked by their key.
func (r *Room) live(f store.Filter) stretch {
	return stretch{table: "pawl.job", columns: LiveColumns, where: []condition{r.here()}, match: narrow(f, true)}
}

func inQueue(f store.Filter) []condition {
	if f.Queue == "" {
		return nil
	}
	return []condition{when("queue = %s", f.Queue)}
}

// stretches are those of a page: what has no index in its order is sorted where
// it is few, else walked by its id.
func (r *Room) stretches(ctx context.Context, f store.Filter, order store.Order) (list []stretch, err error) {
	if order == store.ByDue {
		return []stretch{r.byDue(f)}, nil
	}
	all, err := r.withQueues(ctx, r.of(f))
	if err != nil {
		return nil, err
	}
	most := store.MaxSorted
	if order == store.ByFinish {
		most = store.MaxWalked
		for i := range all {
			all[i].unsorted = true
		}
	}
	lengths, err := r.lengths(ctx, all, most+1)
	if err != nil {
		return nil, err
	}
	var walked []string
	total := 0
	for i, s := range all {
		total += lengths[i]
		if lengths[i] > most {
			walked = append(walked, strconv.Itoa(int(s.state)))
			continue
		}
		list = append(list, s)
	}
	switch {
	case order == store.ByFinish && total > most:
		return nil, store.TooManyToSort()
	case walked != nil:
		s := r.live(f)
		s.match = append(append(s.match, when("state IN ("+strings.Join(walked, ", ")+")")), inQueue(f)...)
		list = append(list, s)
	}
	return list, nil
}

// byDue is the waiting jobs of a queue, priority after priority, each in the
// order of job_ready.
func (r *Room) byDue(f store.Filter) stretch {
	s := r.live(f)
	s.where = append(s.where, when("state = 2 AND queue = %s", f.Queue))
	if !f.DueBefore.IsZero() {
		s.where = append(s.where, when("due <= %s", f.DueBefore))
	}
	if !f.DueAfter.IsZero() {
		s.where = append(s.where, when("due > %s", f.DueAfter))
	}
	s.each, s.lists, s.by = Priorities, len(Priorities), "priority"
	return s
}

// withQueues names the queues of stretches that go queue after queue.
func (r *Room) withQueues(ctx context.Context, list []stretch) (known []stretch, err error) {
	if !slices.ContainsFunc(list, func(s stretch) bool { return s.by != "" }) {
		return list, nil
	}
	names := make([][]string, len(list))
	err = r.pg.Read(ctx, func() []*pg.Statement {
		statements := []*pg.Statement{seek()}
		for i, s := range list {
			if s.by == "" {
				continue
			}
			names[i] = nil
			statements = append(statements, &pg.Statement{Text: queuesOf(s.state), Args: []any{r.pg.Namespace}, Each: func(scan pg.Scan) error {
				var name string
				err := scan(&name)
				names[i] = append(names[i], name)
				return err
			}})
		}
		return statements
	})
	for i, s := range list {
		if s.by != "" {
			if names[i] == nil {
				continue
			}
			s.each, s.lists = names[i], len(names[i])
		}
		known = append(known, s)
	}
	return known, err
}

// lengths is how long the stretches are that have to be sorted, up to a bound.
func (r *Room) lengths(ctx context.Context, list []stretch, most int) ([]int, error) {
	lengths := make([]int, len(list))
	if !slices.ContainsFunc(list, func(s stretch) bool { return s.unsorted }) {
		return lengths, nil
	}
	err := r.pg.Read(ctx, func() []*pg.Statement {
		statements := []*pg.Statement{seek()}
		for i, s := range list {
			if !s.unsorted {
				continue
			}
			b := &listing{}
			text := "SELECT count(*)\nFROM (\n\tSELECT *\n\tFROM (\n\t" + b.each(s, b.read(s, "1")) + "\n\t) AS stretch\n\tLIMIT " + b.arg(most) + "\n) AS counted"
			statements = append(statements, &pg.Statement{Text: text, Args: b.args, Each: func(scan pg.Scan) error { return scan(&lengths[i]) }})
		}
		return statements
	})
	return lengths, err
}

// queuesOf steps from queue to queue on job_archive_state: one seek for each.
func queuesOf(state job.State) string {
	return fmt.Sprintf(`WITH RECURSIVE queues AS (
	(
		SELECT queue
		FROM pawl.job_archive
		WHERE namespace = $1 AND state = %[1]d
		ORDER BY queue
		LIMIT 1
	)
	UNION ALL
	SELECT (
		SELECT a.queue
		FROM pawl.job_archive AS a
		WHERE a.namespace = $1 AND a.state = %[1]d AND a.queue > queues.queue
		ORDER BY a.queue
		LIMIT 1
	)
	FROM queues
	WHERE queues.queue IS NOT NULL
)
SELECT queue
FROM queues
WHERE queue IS NOT NULL`, state)
}

// narrow are the conditions that no index serves.
func narrow(f store.Filter, live bool) (match []condition) {
	text := func(condition, value string) {
		if value != "" {
			match = append(match, when(condition, value))
		}
	}
	at := func(condition string, t time.Time) {
		if !t.IsZero() {
			match = append(match, when(condition, t))
		}
	}
	text("kind = %s", f.Kind)
	text("key = %s", f.Key)
	text("tags @> ARRAY[%s::text]", f.Tag)
	// A job due exactly now is ready: the two bounds of due share no time and leave none out.
	at("due <= %s", f.DueBefore)
	at("due > %s", f.DueAfter)
	at("created < %s", f.CreatedBefore)
	at("created >= %s", f.CreatedAfter)
	if live && f.Wait != job.NoWait {
		match = append(match, when("wait = %s", int16(f.Wait)))
	}
	if !live {
		at("finished < %s", f.FinishedBefore)
		at("finished >= %s", f.FinishedAfter)
	}
	if f.Fingerprint != "" { // somewhere in it; Filter.Matches reads which failure has it
		match = append(match, when("position(%s::bytea IN failures) > 0", []byte(f.Fingerprint)))
	}
	return match
}

const (
	// countIn counts the jobs of a table and state, queue by queue: a seek for each
	// queue, and its entries up to a bound. The first %s is the table, the second the
	// state.
	countIn = `WITH RECURSIVE queues AS (
	(
		SELECT queue
		FROM %[1]s
		WHERE namespace = $1 AND state = %[2]d
		ORDER BY queue
		LIMIT 1
	)
	UNION ALL
	SELECT (
		SELECT a.queue
		FROM %[1]s AS a
		WHERE a.namespace = $1 AND a.state = %[2]d AND a.queue > queues.queue
		ORDER BY a.queue
		LIMIT 1
	)
	FROM queues
	WHERE queues.queue IS NOT NULL
)
SELECT queues.queue, counted.jobs
FROM queues
CROSS JOIN LATERAL (
	SELECT count(*) AS jobs
	FROM (
		SELECT
		FROM %[1]s AS a
		WHERE a.namespace = $1 AND a.state = %[2]d AND a.queue >= queues.queue AND a.queue <= queues.queue
		ORDER BY a.queue
		LIMIT $2
	) AS bounded
) AS counted
WHERE queues.queue IS NOT NULL`

	// countHeld counts what runs, is suspended or blocked, of all queues: job_held or
	// job_idle, up to a bound. The %s is the state, and the order of its index.
	countHeld = `SELECT queue, count(*)
FROM (
	SELECT queue
	FROM pawl.job
	WHERE namespace = $1 AND state = %d
	ORDER BY %s
	LIMIT $2
) AS bounded
GROUP BY queue`
)

// Counts counts the jobs of each queue in each state.
func (r *Room) Counts(ctx context.Context) ([]store.QueueCount, error) {
	var counts []store.QueueCount
	totals := map[job.State]int{}
	err := r.pg.Read(ctx, func() []*pg.Statement {
		counts = nil
		clear(totals)
		statements := []*pg.Statement{seek()}
		for _, s := range job.States() {
			text := ""
			switch {
			case s.Final():
				text = fmt.Sprintf(countIn, "pawl.job_archive", s)
			case s == job.Waiting:
				text = fmt.Sprintf(countIn, "pawl.job", s)
			case s == job.Running:
				text = fmt.Sprintf(countHeld, s, "worker, claim")
			default:
				text = fmt.Sprintf(countHeld, s, "id")
			}
			statements = append(statements, &pg.Statement{Text: text, Args: []any{r.pg.Namespace, store.MaxCounted + 1}, Each: func(scan pg.Scan) error {
				var queue string
				var n int
				err := scan(&queue, &n)
				counts = append(counts, store.QueueCount{Queue: queue, State: s, Counted: store.Bounded(n)})
				totals[s] += n
				return err
			}})
		}
		return statements
	})
	for i, c := range counts {
		if !c.State.Final() && c.State != job.Waiting {
			counts[i].More = totals[c.State] > store.MaxCounted
		}
	}
	store.SortCounts(counts)
	return counts, err
}
