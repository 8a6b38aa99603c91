package lists

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Count counts the jobs a filter matches, up to cap.
func Count(c *lite.Snapshot, f store.Filter, cap int) (counted store.Counted, err error) {
	spans, err := spansOf(c, f)
	if err != nil {
		return counted, err
	}
	left := store.MaxVisits
	for _, r := range spans {
		// One more than it may count tells that there is more.
		q := r.query(c, r.text("id, failures")+" LIMIT ?", func(q *lite.Query) { q.Int(int64(left) + 1) })
		for q.Step() {
			if left--; left < 0 {
				break
			}
			if q.ColBool(2) && (f.Fingerprint == "" || f.Matches(job.StoredFailures(q.ColBlob(1)))) {
				counted.Jobs++
			}
			if counted.Jobs > cap {
				break
			}
		}
		if err := q.Close(); err != nil {
			return counted, err
		}
		if left < 0 || counted.Jobs > cap {
			return store.Counted{Jobs: min(counted.Jobs, cap), More: true}, nil
		}
	}
	return counted, nil
}
