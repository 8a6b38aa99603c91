package lists

import (
	"context"
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// stretches are those of a page: what has no index in its order is sorted where
// it is few, else walked by its id.
func (r *Room) stretches(ctx context.Context, f store.Filter, p store.Page) (list []stretch, err error) {
	switch p.Order {
	case store.ByDue:
		return []stretch{r.byDue(f, p.After.Below)}, nil
	case store.ByFinish:
		return r.byFinish(ctx, f)
	}
	list, err = r.withQueues(ctx, r.of(f))
	if err != nil {
		return nil, err
	}
	for i, s := range list {
		if !s.unsorted || s.state == job.Waiting { // those are few: the queue is not long
			continue
		}
		few, err := r.few(ctx, s)
		if err != nil {
			return nil, err
		}
		if !few {
			list[i] = r.live(f)
			list[i].match = append(append(list[i].match, when("state = 3")), inQueue(f)...)
		}
	}
	return list, nil
}

// byDue is the waiting jobs of a queue, priority after priority, each in the
// order of job_ready.
func (r *Room) byDue(f store.Filter, below job.ID) stretch {
	s := r.live(f)
	s.where = append(s.where, when("state = 2 AND queue = %s", f.Queue))
	if !f.DueBefore.IsZero() {
		s.where = append(s.where, when("due <= %s", f.DueBefore))
	}
	if !f.DueAfter.IsZero() {
		s.where = append(s.where, when("due > %s", f.DueAfter))
	}
	if below != (job.ID{}) {
		s.match = append(s.match, when("id < %s", below))
	}
	s.each, s.lists, s.by = jobs.Priorities, len(jobs.Priorities), "priority"
	return s
}

// byFinish is the dead and the cancelled jobs, each in the order of
// job_archive_finished. Those of one queue are sorted where they are few.
func (r *Room) byFinish(ctx context.Context, f store.Filter) (list []stretch, err error) {
	_, archived := f.Reads()
	for _, state := range archived {
		if f.Queue != "" {
			s := r.ended(f, state)
			s.unsorted = true
			few, err := r.few(ctx, s)
			if err != nil {
				return nil, err
			}
			if few {
				list = append(list, s)
				continue
			}
		}
		s := r.archived(f)
		s.where = append(s.where, when(fmt.Sprintf("state = %d", state)))
		if !f.FinishedBefore.IsZero() {
			s.where = append(s.where, when("finished < %s", f.FinishedBefore))
		}
		if !f.FinishedAfter.IsZero() {
			s.where = append(s.where, when("finished >= %s", f.FinishedAfter))
		}
		s.match = append(s.match, inQueue(f)...)
		list = append(list, s)
	}
	return list, nil
}

// long reports whether the waiting jobs of the page's queue are too many to be
// sorted (store.PartLong).
func (r *Room) long(ctx context.Context, f store.Filter, p store.Page) (bool, error) {
	if !p.Sorts(&f) {
		return false, nil
	}
	few, err := r.few(ctx, r.waiting(f))
	return err == nil && !few, err
}

// few reports whether a stretch is short enough to be sorted: it counts no more of
// its index than that.
func (r *Room) few(ctx context.Context, s stretch) (bool, error) {
	b, length := &listing{}, 0
	text := "SELECT count(*)\nFROM (\n\t" + b.read(s, "1") + "\n\tLIMIT " + b.arg(store.MaxSorted+1) + "\n) AS counted"
	err := r.pg.Read(ctx, func() []*pg.Statement {
		return []*pg.Statement{seek(), {Text: text, Args: b.args, Each: func(scan pg.Scan) error { return scan(&length) }}}
	})
	return length <= store.MaxSorted, err
}
