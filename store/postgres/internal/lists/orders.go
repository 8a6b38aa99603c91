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
		return []stretch{r.byDue(f, p.After.Below)}, nil
	case store.ByWorker:
		if !f.ReadsLive(job.Running) {
			return nil, nil
		}
		return []stretch{r.byWorker(f, p.After.Below)}, nil
	case store.ByFinish:
		return r.byFinish(ctx, f)
	}
	return r.withQueues(ctx, r.of(f))
}

// byDue is the waiting jobs of a queue, priority after priority, each in the
// order of job_ready.
func (r *Room) byDue(f store.Filter, below job.ID) stretch {
	s := r.live(f)
	s.where = append(s.where, when("state = 2 AND gate IS NULL AND queue = %s", f.Queue))
	if !f.DueBefore.IsZero() {
		s.where = append(s.where, when("due <= %s", f.DueBefore))
	}
	if !f.DueAfter.IsZero() {
		s.where = append(s.where, when("due > %s", f.DueAfter))
	}
	s.match = append(s.match, onlyBelow(below)...)
	s.each, s.lists, s.by = jobs.Priorities, len(jobs.Priorities), "priority"
	return s
}

// byWorker is the running jobs, worker after worker. The index has those of a worker
// by claim: they are sorted, a worker at a time.
func (r *Room) byWorker(f store.Filter, below job.ID) stretch {
	s := r.running(f)
	s.match = append(s.match, onlyBelow(below)...)
	s.unsorted = false
	return s
}

func onlyBelow(id job.ID) []condition {
	if id == (job.ID{}) {
		return nil
	}
	return []condition{when("id < %s", id)}
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
	for _, state := range p.Sorts(&f) {
		s := r.running(f)
		if state == job.Waiting {
			s = r.waiting(f)
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
	err := r.pg.Read(ctx, func() []*pg.Statement {
		return []*pg.Statement{seek(), {Text: text, Args: b.args, Each: func(scan pg.Scan) error { return scan(&length) }}}
	})
	return length <= store.MaxSorted, err
}
