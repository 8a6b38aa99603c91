package lists

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
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
	split, err := r.splits(ctx, f, p)
	if err != nil {
		return store.Listed{}, err
	}
	of, part := p.Of(f, split)
	listed, err := r.list(ctx, part, of)
	if err != nil {
		return store.Listed{}, err
	}
	listed.End(of, &f)
	return listed, nil
}

// list is a page of a list, or of a part of one.
func (r *Room) list(ctx context.Context, f store.Filter, p store.Page) (listed store.Listed, err error) {
	stretches, err := r.stretches(ctx, f, p)
	if err != nil {
		return listed, err
	}
	if len(stretches) == 0 {
		return listed, r.pg.Usable(ctx)
	}
	b := &listing{}
	text, part := b.page(stretches, p)
	err = r.pg.Browse(ctx, func() []*pg.Statement {
		listed = store.Listed{}
		var rows jobs.RowReader
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
