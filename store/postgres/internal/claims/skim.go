package claims

import (
	"context"
	"sync"
	"time"

	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

const (
	// skimFrom is from how many quiet queues on a look asks first which of them have a job at all.
	skimFrom = 16
	// SkimAgain is how long it does not, after that was slow or of no use.
	SkimAgain = time.Minute
)

// skims remembers whether to skim.
type skims struct {
	mu    sync.Mutex
	until time.Time // it rests; by the store's clock
}

// serve reports whether it does not rest.
func (s *skims) serve(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !now.Before(s.until) || now.Before(s.until.Add(-SkimAgain)) // the clock was set back
}

func (s *skims) rest(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = until
}

// skim lists the first queues that have a waiting job in front of gates, from a name on.
//
//   - job_ready serves it: a seek for each.
const skim = `WITH RECURSIVE found AS (
	SELECT (
		SELECT job.queue
		FROM pawl.job
		WHERE job.namespace = $1 AND job.state = 2 AND job.gate IS NULL AND job.queue >= $2
		ORDER BY job.queue
		LIMIT 1
	) AS queue
	UNION ALL
	SELECT (
		SELECT job.queue
		FROM pawl.job
		WHERE job.namespace = $1 AND job.state = 2 AND job.gate IS NULL AND job.queue > f.queue
		ORDER BY job.queue
		LIMIT 1
	)
	FROM found AS f
	WHERE f.queue < $3
)
SELECT queue
FROM found
WHERE queue IS NOT NULL
LIMIT $4`

// quietOf are those lanes in which nothing was ready, and no hint came since.
func quietOf(lanes []*claimQueue) (list []*claimQueue) {
	for _, l := range lanes {
		if l.view.quiet {
			list = append(list, l)
		}
	}
	return list
}

// skim finds those of many quiet lanes that have a waiting job at all, be it due, later or
// behind the frontier: there is nothing to look for in the others, so that a process of two
// thousand queues asks for those few of them in which something waits. nil means all: there
// are few lanes, many of them have jobs, or so many entries of jobs that are gone lie in
// front of the next queue that frontiers serve better.
func (k *claiming) skim(ctx context.Context, lanes []*claimQueue) (some map[string]bool, err error) {
	now := k.room.pg.Clock.Estimate()
	if len(lanes) < skimFrom || !k.room.skims.serve(now) {
		return nil, nil
	}
	first, last := lanes[0].queue.Queue, lanes[0].queue.Queue
	for _, l := range lanes {
		first, last = min(first, l.queue.Queue), max(last, l.queue.Queue)
	}
	k.room.skims.rest(now.Add(SkimAgain)) // unless it is quick, and of use
	most := len(lanes) / 4
	took := pg.Stopwatch()
	late := false
	err = k.room.pg.Retry(ctx, "claim", pg.Always, func(ctx context.Context, _ bool) error {
		some, took = map[string]bool{}, pg.Stopwatch()
		err := k.room.pg.Send(ctx, k.room.pg.Claim, pg.ShortLimits, &pg.Statement{
			Text: skim, Args: []any{k.room.pg.Namespace, first, last, most + 1},
			Each: func(scan pg.Scan) error {
				var queue string
				err := scan(&queue)
				some[queue] = true
				return err
			},
		})
		if late = pg.IsOverTime(err); late {
			err = nil
		}
		return err
	})
	if err != nil || late || len(some) > most {
		return nil, err
	}
	if took() <= sweepSlow {
		k.room.skims.rest(time.Time{})
	}
	return some, nil
}
