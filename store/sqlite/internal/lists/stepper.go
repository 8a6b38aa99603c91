package lists

import (
	"slices"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// stepper stands on one row of a span, in the order of a page: that of its index,
// or of the few positions that were sorted.
type stepper struct {
	c     *lite.Snapshot
	span  span
	order store.Order
	at    store.Bookmark
	over  bool
	q     *lite.Query      // in the order of its index
	picks []store.Bookmark // or sorted; only what matches
}

// openSteppers stands on the first row of every span behind the position. They
// have to be closed, after an error too.
func openSteppers(c *lite.Snapshot, f store.Filter, p store.Page) (steppers []*stepper, err error) {
	spans, err := listSpans(c, f, p)
	if err != nil {
		return nil, err
	}
	for _, r := range spans {
		x := &stepper{c: c, span: r, order: p.Order}
		steppers = append(steppers, x)
		if r.unsorted {
			if err := x.pick(p); err != nil {
				return steppers, err
			}
		} else {
			page, order := r.page(p)
			x.q = page.query(c, page.text(r.row.Columns)+order)
		}
		if err := x.next(); err != nil {
			return steppers, err
		}
	}
	return steppers, nil
}

// pick sorts the rows that match: they are few.
func (x *stepper) pick(p store.Page) error {
	at := "0"
	switch p.Order {
	case store.ByFinish:
		at = "finished"
	case store.ByDue:
		at = "due"
	}
	q := x.span.query(x.c, x.span.text("id, "+at))
	for q.Step() {
		pos := store.Bookmark{ID: q.ColID(0)}
		if at != "0" {
			pos.At = lite.TimeOf(q.ColInt(1))
		}
		if q.ColBool(2) && (p.After.Begins() || p.Order.Compare(p.After, pos) < 0) {
			x.picks = append(x.picks, pos)
		}
	}
	slices.SortFunc(x.picks, p.Order.Compare)
	return q.Close()
}

// next stands on the next row.
func (x *stepper) next() error {
	if x.q == nil {
		if x.over = len(x.picks) == 0; !x.over {
			x.at, x.picks = x.picks[0], x.picks[1:]
		}
		return nil
	}
	if x.over = !x.q.Step(); x.over {
		return x.q.Err()
	}
	x.at = store.Bookmark{ID: x.q.ColID(x.span.row.At("id"))}
	switch x.order {
	case store.ByDue:
		x.at.At = lite.TimeOf(x.q.ColInt(x.span.row.At("due")))
	case store.ByFinish:
		x.at.At = lite.TimeOf(x.q.ColInt(x.span.row.At("finished")))
	case store.ByWorker:
		x.at.Worker = job.WorkerID(x.q.ColInt(x.span.row.At("worker")))
	case store.ByGate:
		x.at.Gate, x.at.Priority = x.q.ColInt(x.span.row.At("gate")), int(x.q.ColInt(x.span.row.At("priority")))
		x.at.At = lite.TimeOf(x.q.ColInt(x.span.row.At("due")))
	}
	return nil
}

func (x *stepper) matches() bool { return x.q == nil || x.q.ColBool(x.span.row.Len()) }

// read reads the row.
func (x *stepper) read(j *job.Job) error {
	if x.q != nil {
		x.span.row.Read(x.q, j)
		return nil
	}
	q := x.c.On("SELECT " + x.span.row.Columns + `
	FROM ` + x.span.table + `
	WHERE namespace = ? AND id = ?`).Blob(x.at.ID[:])
	if q.Step() {
		x.span.row.Read(q, j)
	}
	return q.Done()
}

func (x *stepper) close() error {
	if x.q == nil {
		return nil
	}
	return x.q.Close()
}
