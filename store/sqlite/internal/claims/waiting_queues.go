package claims

import (
	"strings"

	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// WaitingQueues lists queues with waiting jobs behind one, a seek for each.
func WaitingQueues(c *lite.Snapshot, after string, limit int) (queues []string, err error) {
	for len(queues) < limit {
		q := c.On(jobs.NextWaitingQueue).Text(after)
		found := q.Step()
		if found {
			after = strings.Clone(q.ColText(0))
		}
		if err := q.Done(); err != nil {
			return nil, err
		}
		if !found {
			break
		}
		queues = append(queues, after)
	}
	return queues, nil
}
