package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// List pages through jobs, newest id first. A page starts at an id, never at a
// count of rows, so that it costs the same however deep it is.
func (r *Room) List(ctx context.Context, f store.Filter, p store.Page) (store.Listed, error) {
	if p.Limit < 1 || p.Limit > 1000 {
		return store.Listed{}, job.Invalid("limit", p.Limit, "must be 1..1000")
	}
	b := &listing{}
	ranges := b.ranges(r.pg.Namespace, f)
	if len(ranges) == 0 {
		return store.Listed{}, r.pg.Usable(ctx)
	}
	after := ""
	if p.After != (job.ID{}) {
		after = " AND id < " + b.arg(p.After)
	}
	limit := b.arg(p.Limit + 1)
	parts := make([]string, len(ranges))
	for i, part := range ranges {
		parts[i] = part.text(part.columns, after+" ORDER BY id DESC LIMIT "+limit)
	}
	text := "SELECT * FROM (" + strings.Join(parts, "\nUNION ALL\n") + ") AS listed ORDER BY id DESC LIMIT " + limit
	var listed store.Listed
	err := r.pg.Read(ctx, func() []*pg.Statement {
		listed = store.Listed{}
		var rows RowReader
		return []*pg.Statement{{Text: text, Args: b.args, Raw: func(cols [][]byte) error {
			listed.Jobs = append(listed.Jobs, job.Job{})
			return rows.Job(cols, &listed.Jobs[len(listed.Jobs)-1])
		}}}
	})
	if err != nil {
		return store.Listed{}, err
	}
	if len(listed.Jobs) > p.Limit {
		listed.Jobs, listed.More = slices.Clip(listed.Jobs[:p.Limit]), true
	}
	return listed, nil
}

// Count counts the jobs a filter matches, up to cap (0 means exactly).
func (r *Room) Count(ctx context.Context, f store.Filter, cap int) (int, error) {
	b := &listing{}
	ranges := b.ranges(r.pg.Namespace, f)
	if len(ranges) == 0 {
		return 0, r.pg.Usable(ctx)
	}
	limit := ""
	if cap > 0 {
		limit = " LIMIT " + b.arg(cap)
	}
	parts := make([]string, len(ranges))
	for i, part := range ranges {
		parts[i] = part.text("1", limit)
	}
	n := 0
	err := r.pg.Read(ctx, func() []*pg.Statement {
		return []*pg.Statement{{
			Text: "SELECT count(*) FROM (SELECT FROM (" + strings.Join(parts, "\nUNION ALL\n") + ") AS part" + limit + ") AS counted",
			Args: b.args, Each: func(scan pg.Scan) error { return scan(&n) },
		}}
	})
	return n, err
}

// listing writes a statement with its arguments.
type listing struct{ args []any }

func (b *listing) arg(value any) string {
	b.args = append(b.args, value)
	return fmt.Sprintf("$%d", len(b.args))
}

// stretch is a part of a table that a filter reads, in id order.
type stretch struct {
	table, columns string
	where          []string
	queues         string // a list of queues to read one after the other, each in id order
}

func (r stretch) text(columns, end string) string {
	where := strings.Join(r.where, " AND ")
	if r.queues == "" {
		return "(SELECT " + columns + " FROM " + r.table + " WHERE " + where + end + ")"
	}
	return "(SELECT part.* FROM (" + r.queues + ") AS q (name)\nCROSS JOIN LATERAL (" +
		"SELECT " + columns + " FROM " + r.table + " WHERE queue = q.name AND " + where + end + ") AS part)"
}

// ranges says which stretches a filter needs.
//
// Live jobs: what is blocked or suspended has job_idle, what runs job_held; what
// waits is most of the table, which is read by its key. Archived jobs: by state
// and queue on job_archive_state, queue after queue where none is named; without
// a state, by the key.
func (b *listing) ranges(namespace int32, f store.Filter) (list []stretch) {
	in := "namespace = " + b.arg(namespace)
	narrow := b.narrow(f)
	live, archived := splitStates(f)
	if f.Wait != job.NoWait {
		archived = nil // what has ended waits for nothing
	}
	for _, state := range live {
		r := stretch{table: "pawl.job", columns: LiveColumns, where: []string{in}}
		if f.Wait != job.NoWait {
			r.where = append(r.where, fmt.Sprintf("wait = %d", f.Wait))
		}
		if state != 0 {
			r.where = append(r.where, fmt.Sprintf("state = %d", state))
		}
		if f.Queue != "" {
			r.where = append(r.where, "queue = "+b.arg(f.Queue))
		}
		r.where = append(r.where, narrow...)
		list = append(list, r)
	}
	for _, state := range archived {
		r := stretch{table: "pawl.job_archive", columns: archivedColumns, where: []string{in}}
		switch {
		case state == 0 && f.Queue != "":
			r.where = append(r.where, "queue = "+b.arg(f.Queue))
		case state != 0 && f.Queue != "":
			r.where = append(r.where, fmt.Sprintf("state = %d", state), "queue = "+b.arg(f.Queue))
		case state != 0:
			r.where = append(r.where, fmt.Sprintf("state = %d", state))
			r.queues = queuesOf(in, int(state))
		}
		r.where = append(r.where, narrow...)
		list = append(list, r)
	}
	return list
}

// queuesOf steps from queue to queue on job_archive_state: one seek for each.
func queuesOf(in string, state int) string {
	return fmt.Sprintf(`WITH RECURSIVE queues AS (
	(
		SELECT queue
		FROM pawl.job_archive
		WHERE %[1]s AND state = %[2]d
		ORDER BY queue
		LIMIT 1
	)
	UNION ALL
	SELECT (
		SELECT a.queue
		FROM pawl.job_archive AS a
		WHERE %[1]s AND a.state = %[2]d AND a.queue > queues.queue
		ORDER BY a.queue
		LIMIT 1
	)
	FROM queues
	WHERE queues.queue IS NOT NULL
)
SELECT queue
FROM queues
WHERE queue IS NOT NULL`, in, state)
}

// splitStates says which states of each table a filter reads; 0 stands for all.
func splitStates(f store.Filter) (live, archived []job.State) {
	if len(f.States) == 0 {
		return []job.State{0}, []job.State{0}
	}
	return f.StatesByTable()
}

// narrow are the conditions that no index serves.
func (b *listing) narrow(f store.Filter) (where []string) {
	text := func(condition, value string) {
		if value != "" {
			where = append(where, fmt.Sprintf(condition, b.arg(value)))
		}
	}
	at := func(condition string, t time.Time) {
		if !t.IsZero() {
			where = append(where, fmt.Sprintf(condition, b.arg(t)))
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
	return where
}
