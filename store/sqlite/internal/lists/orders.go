package lists

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// listSpans are the spans that are in the order of a page, and those that are few
// enough to be sorted. What is neither is walked by its id.
func listSpans(c *lite.Snapshot, f store.Filter, p store.Page) (spans []span, err error) {
	switch p.Order {
	case store.ByDue:
		for n := job.MinPriority; n <= job.MaxPriority; n++ {
			spans = append(spans, dueSpan(c, f, n, p.After.Below))
		}
		return spans, nil
	case store.ByFinish:
		return finishSpans(c, f)
	}
	if spans, err = spansOf(c, f); err != nil {
		return nil, err
	}
	for i, r := range spans {
		if !r.unsorted || r.index == "pawl_job_ready" { // those are few: the queue is not long
			continue
		}
		few, err := r.few(c)
		if err != nil {
			return nil, err
		}
		if !few {
			spans[i] = walk(liveSpan(c), f, job.Running).narrow(f, true)
		}
	}
	return spans, nil
}

// isLong reports whether the waiting jobs of the page's queue are too many to be
// sorted (store.PartLong).
func isLong(c *lite.Snapshot, f store.Filter, p store.Page) (bool, error) {
	if !p.Sorts(&f) {
		return false, nil
	}
	few, err := waitingSpan(c, f.Queue).few(c)
	return err == nil && !few, err
}

// dueSpan is the waiting jobs of one queue and priority, the next one due first.
func dueSpan(c *lite.Snapshot, f store.Filter, priority int, below job.ID) span {
	r := waitingSpan(c, f.Queue).and("priority = ?", func(q *lite.Query) { q.Int(int64(priority)) })
	r.unsorted = false
	if !f.DueBefore.IsZero() {
		r = r.and("due <= ?", func(q *lite.Query) { q.Int(lite.Micros(f.DueBefore)) })
	}
	if !f.DueAfter.IsZero() {
		r = r.and("due > ?", func(q *lite.Query) { q.Int(lite.Micros(f.DueAfter)) })
	}
	if below != (job.ID{}) {
		r = r.but("id < ?", func(q *lite.Query) { q.Blob(below[:]) })
	}
	return r.narrow(f, true)
}

// finishSpans are the dead and the cancelled jobs, the last end first. Those of one
// queue are sorted where they are few.
func finishSpans(c *lite.Snapshot, f store.Filter) (spans []span, err error) {
	_, archived := f.Reads()
	for _, s := range archived {
		if f.Queue != "" {
			r := endedSpan(c, s, f.Queue)
			r.unsorted = true
			few, err := r.few(c)
			if err != nil {
				return nil, err
			}
			if few {
				spans = append(spans, r.narrow(f, false))
				continue
			}
		}
		r := archivedSpan(c)
		r.index = "pawl_job_archive_finished"
		r = r.and("state IN (6, 7) AND state = ?", func(q *lite.Query) { q.Int(int64(s)) })
		if !f.FinishedBefore.IsZero() {
			r = r.and("finished < ?", func(q *lite.Query) { q.Int(lite.Micros(f.FinishedBefore)) })
		}
		if !f.FinishedAfter.IsZero() {
			r = r.and("finished >= ?", func(q *lite.Query) { q.Int(lite.Micros(f.FinishedAfter)) })
		}
		spans = append(spans, inQueue(r, f).narrow(f, false))
	}
	return spans, nil
}
