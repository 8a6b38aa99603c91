package lists

import (
	"slices"
	"strings"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// span is one stretch of an index that a filter reads.
type span struct {
	table string
	index string // "" for the primary key
	row   *jobs.Row[job.Job]
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
	store.ByWorker: {"worker, id", "(worker, id) > (?, ?)"},
	store.ByGate:   {"gate, priority, due, id", "(gate, priority, due, id) > (?, ?, ?, ?)"},
}

// page is the span from a position on, and the end of its statement.
func (r span) page(p store.Page) (span, string) {
	order := orders[p.Order]
	if !p.After.Begins() {
		r = r.and(order.behind, func(q *lite.Query) {
			switch p.Order {
			case store.ByDue, store.ByFinish:
				q.Int(lite.Micros(p.After.At))
			case store.ByWorker:
				q.Int(int64(p.After.Worker))
			case store.ByGate:
				q.Int(p.After.Gate).Int(int64(p.After.Priority)).Int(lite.Micros(p.After.At))
			}
			q.Blob(p.After.ID[:])
		})
	}
	return r, "\n\tORDER BY " + order.by
}

// few reports whether a span is short enough to be sorted.
//   - The span's index alone.
func (r span) few(c *lite.Snapshot) (bool, error) {
	r.match, r.look = nil, nil
	q := r.query(c, "SELECT count(*) FROM ("+r.text("1")+" LIMIT ?)", func(q *lite.Query) { q.Int(store.MaxSorted + 1) })
	few := q.Step() && q.ColInt(0) <= store.MaxSorted
	return few, q.Close()
}
