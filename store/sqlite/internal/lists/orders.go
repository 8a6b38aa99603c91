package lists

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// listSpans are the spans of a page. What is not in its order is few, else the list
// is split.
func listSpans(c *lite.Snapshot, f store.Filter, p store.Page) (spans []span, err error) {
	switch p.Order {
	case store.ByDue:
		for n := job.MinPriority; n <= job.MaxPriority && f.ReadsLive(job.Waiting); n++ {
			spans = append(spans, dueSpan(c, f, n).rest(p.After))
		}
		if p.After.Part == store.PartWhole && f.ReadsLive(job.Waiting) {
			spans = append(spans, gatedSpan(c, f.Queue).narrow(f, true))
		}
		return spans, nil
	case store.ByGate:
		r := gatedSpan(c, f.Queue).narrow(f, true).rest(p.After)
		r.unsorted = false
		return []span{r}, nil
	case store.ByWorker:
		if !f.ReadsLive(job.Running) {
			return nil, nil
		}
		r := inQueue(runningSpan(c, f), f).narrow(f, true).rest(p.After)
		r.unsorted = false
		return []span{r}, nil
	case store.ByFinish:
		return finishSpans(c, f)
	}
	return spansOf(c, f)
}

// splits reports whether a list has to be split: too many jobs would have to be
// sorted (store.Part).
func splits(c *lite.Snapshot, f store.Filter, p store.Page) (bool, error) {
	for _, part := range p.Sorts(&f) {
		r := runningSpan(c, f)
		switch part {
		case store.PartWaiting:
			r = waitingSpan(c, f.Queue)
		case store.PartGated:
			r = gatedSpan(c, f.Queue)
		}
		if few, err := r.few(c); err != nil || !few {
			return true, err
		}
	}
	return false, nil
}

// rest leaves what a list that was split had not listed before, if it had any.
func (r span) rest(at store.Bookmark) span {
	switch {
	case at.Below == (job.ID{}):
		return r
	case !at.Beyond.IsZero():
		return r.but("(due, id) > (?, ?)", func(q *lite.Query) { q.Int(lite.Micros(at.Beyond)).Blob(at.Below[:]) })
	}
	return r.but("id < ?", func(q *lite.Query) { q.Blob(at.Below[:]) })
}

// dueSpan is the waiting jobs of one queue and priority, the next one due first.
func dueSpan(c *lite.Snapshot, f store.Filter, priority int) span {
	r := waitingSpan(c, f.Queue).and("priority = ?", func(q *lite.Query) { q.Int(int64(priority)) })
	r.unsorted = false
	if !f.DueBefore.IsZero() {
		r = r.and("due <= ?", func(q *lite.Query) { q.Int(lite.Micros(f.DueBefore)) })
	}
	if !f.DueAfter.IsZero() {
		r = r.and("due > ?", func(q *lite.Query) { q.Int(lite.Micros(f.DueAfter)) })
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
		// The one state comes first: by the other term SQLite would read both, and sort them.
		r = r.and("state = ? AND state IN (6, 7)", func(q *lite.Query) { q.Int(int64(s)) })
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
