package lists

import (
	"errors"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// List pages through jobs. A page starts at a position, never at a count of rows,
// so that it costs the same however deep it is. It merges the stretches of the
// indexes that it reads, row by row, and stops when it has visited MaxWalked: what
// is before the row it came to has been seen, in every stretch.
func List(c *lite.Snapshot, f store.Filter, p store.Page) (store.Listed, error) {
	split, err := splits(c, f, p)
	if err != nil {
		return store.Listed{}, err
	}
	of, part := p.Of(f, split)
	listed, err := list(c, part, of)
	if err != nil {
		return store.Listed{}, err
	}
	listed.End(of, &f)
	return listed, nil
}

// list is a page of a list, or of a part of one.
func list(c *lite.Snapshot, f store.Filter, p store.Page) (listed store.Listed, err error) {
	steppers, err := openSteppers(c, f, p)
	defer func() {
		for _, r := range steppers {
			err = errors.Join(err, r.close())
		}
	}()
	if err != nil {
		return listed, err
	}
	for visits := 0; ; visits++ {
		var first *stepper
		for _, r := range steppers {
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

// ListTexts are the statements that list the pages of a filter behind the
// first, for tests that look at their plans.
func ListTexts(c *lite.Snapshot, f store.Filter, p store.Page) (texts []string, err error) {
	split, err := splits(c, f, p)
	if err != nil {
		return nil, err
	}
	p, f = p.Of(f, split)
	p.After.ID[0] = 1
	spans, err := listSpans(c, f, p)
	for _, r := range spans {
		r, order := r.page(p)
		if r.unsorted {
			order = "" // stepper.pick sorts
		}
		texts = append(texts, r.text(r.row.Columns)+order)
	}
	return texts, err
}
