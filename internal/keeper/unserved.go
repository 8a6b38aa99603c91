package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/store"
)

const (
	// unservedAfter is how long a job must have been ready before somebody is told
	// that nobody takes it: a restart of the workers takes less.
	unservedAfter = time.Minute
	// maxReported bounds the lines of one report.
	maxReported = 20
	// reportLimit bounds one look. A store that needs longer has other worries.
	reportLimit = 5 * time.Second
)

// ReportOnce logs which queues and kinds have jobs that wait in vain (P5, J18).
// After an outage every worker looks dead, so it waits until its own beats have
// succeeded for a while: by then those that live have beaten too.
func (k *Keeper) ReportOnce(ctx context.Context) ([]store.Unserved, error) {
	worker, _, steady := k.config.Steady()
	if worker == 0 || steady < unservedAfter {
		return nil, nil
	}
	limited, cancel := context.WithTimeout(ctx, reportLimit)
	defer cancel()
	list, err := k.store.Unserved(limited, worker, unservedAfter)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		k.log.DebugContext(ctx, "the look for jobs that nobody takes was given up", "after", reportLimit)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for unserved jobs: %w", err)
	}
	k.config.Unserved(list)
	for i, u := range list {
		if i == maxReported {
			k.log.WarnContext(ctx, "jobs wait that nobody takes, for more reasons than are listed", "reasons", len(list)-i)
			break
		}
		jobs := fmt.Sprint(u.Jobs)
		if u.More {
			jobs += "+"
		}
		k.log.WarnContext(ctx, "jobs wait that nobody takes", "queue", u.Queue, "kind", u.Kind, "jobs", jobs, "oldest", u.Oldest, "why", u.Why)
	}
	return list, nil
}
