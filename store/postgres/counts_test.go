package postgres

import (
	"testing"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Counting the waiting jobs of many queues reads each of them once, those behind
// gates, too.
func TestJ35_CountsReadEachWaitingJobOnce(t *testing.T) {
	s, sent := openTraced(t)
	execAll(t, s, `INSERT INTO `+s.options.Schema+`.job (namespace, priority, state, id, due, created, max_attempts, queue, kind, gate)
	SELECT 1, 5, 2, gen_random_uuid(), now(), now(), 3, 'q' || n % 20, 'k', CASE WHEN n % 20 < 2 THEN 7 END
	FROM generate_series(1, 4000) AS n`)
	var counts []store.QueueCount
	visits := sent.visits(func() {
		var err error
		if counts, err = s.Counts(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	if len(counts) != 20 {
		t.Errorf("%d queues are counted, want 20", len(counts))
	}
	for _, c := range counts {
		if c.State != job.Waiting || c.Jobs != 200 || c.More {
			t.Errorf("queue %s: %d %s jobs, want 200 that wait", c.Queue, c.Jobs, c.State)
		}
	}
	if visits > 4500 {
		t.Errorf("the count of 4000 jobs visits %d rows", visits)
	}
}
