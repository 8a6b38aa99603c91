package lists

import (
	"context"
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// stretches are those of a page. What has no index in its order is few, else the
// list is split.
func (r *Room) stretches(ctx context.Context, f store.Filter, p store.Page) ([]stretch, error) {
	switch p.Order {
	case store.ByDue:
		if !f.ReadsLive(job.Waiting) {
			return nil, nil
		}
		list := []stretch{r.byDue(f, p.After)}
		if p.After.Part == store.PartWhole {
			list = append(list, r.gated(f)) // they are few, else the list is split
		}
		return list, nil
	case store.ByGate:
		return []stretch{r.byGate(f, p.After)}, nil
	case store.ByWorker:
		if !f.ReadsLive(job.Running) {
			return nil, nil
		}
		return []stretch{r.byWorker(f, p.After)}, nil
	case store.ByFinish:
		return r.byFinish(ctx, f)
	}
	return r.withQueues(ctx, r.of(f))
}

// byDue is the waiting jobs of a queue, priority after priority, each in the
// order of job_ready.
func (r *Room) byDue(f store.Filter, from store.Bookmark) stretch {
	s := r.live(f)
	s.where = append(s.where, when("state = 2 AND gate IS NULL AND queue = %s", f.Queue))
	if !f.DueBefore.IsZero() {
		s.where = append(s.where, when("due <= %s", f.DueBefore))
	}
	if !f.DueAfter.IsZero() {
		s.where = append(s.where, when("due > %s", f.DueAfter))
	}
	s.match = append(s.match, rest(from)...)
	s.each, s.lists, s.by = jobs.Priorities, len(jobs.Priorities), "priority"
	return s
}

// byWorker is the running jobs, worker after worker. The index has those of a worker
// by claim: they are sorted, a worker at a time.
func (r *Room) byWorker(f store.Filter, from store.Bookmark) stretch {
	s := r.running(f)
	s.match = append(s.match, rest(from)...)
	s.unsorted = false
	return s
}

// byGate is the jobs of a queue that wait behind gates, in the order of job_gated.
func (r *Room) byGate(f store.Filter, from store.Bookmark) stretch {
	s := r.gated(f)
	s.match = append(s.match, rest(from)...)
	s.unsorted = false
	return s
}

// rest is what a list that was split had not listed before, if it had any.
func rest(from store.Bookmark) []condition {
	switch {
	case from.Below == (job.ID{}):
		return nil
	case !from.Beyond.IsZero():
		return []condition{when("(due, id) > (%s, %s)", from.Beyond, from.Below)}
	}
	return []condition{when("id < %s", from.Below)}
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

// splits reports whether a list has to be split: too many jobs would have to be
// sorted (store.Part).
func (r *Room) splits(ctx context.Context, f store.Filter, p store.Page) (bool, error) {
	for _, part := range p.Sorts(&f) {
		s := r.running(f)
		switch part {
		case store.PartWaiting:
			s = r.waiting(f)
		case store.PartGated:
			s = r.gated(f)
		}
		if few, err := r.few(ctx, s); err != nil || !few {
			return true, err
		}
	}
	return false, nil
}

// few reports whether a stretch is short enough to be sorted: it counts no more of
// its index than that.
func (r *Room) few(ctx context.Context, s stretch) (bool, error) {
	b, length := &listing{}, 0
	text := "SELECT count(*)\nFROM (\n\t" + b.read(s, "1") + "\n\tLIMIT " + b.arg(store.MaxSorted+1) + "\n) AS counted"
	err := r.pg.Browse(ctx, func() []*pg.Statement {
		return []*pg.Statement{seek(), {Text: text, Args: b.args, Each: func(scan pg.Scan) error { return scan(&length) }}}
	})
	return length <= store.MaxSorted, err
}
