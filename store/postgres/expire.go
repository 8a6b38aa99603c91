package postgres

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// lockLate finds jobs past their deadline on job_deadline, which holds those
// with a deadline that are not running.
const lockLate = "SELECT " + subjectColumns + mortalColumns + ` FROM pawl.job WHERE namespace = $1 AND deadline IS NOT NULL AND state <> 3 AND state IN (1, 2, 4) AND deadline <= {now}
	ORDER BY deadline LIMIT $2 FOR UPDATE SKIP LOCKED`

// Expire ends up to limit jobs that are not running and past their deadline. A
// running one is ended by its worker, which has the handler to stop.
func (s *Store) Expire(ctx context.Context, limit int) (store.ExpireReply, error) {
	if err := s.enter(ctx); err != nil {
		return store.ExpireReply{}, err
	}
	defer s.leave()
	some := false
	err := s.retry(ctx, "expire", reading, func(ctx context.Context, _ bool) error {
		return s.send(ctx, s.reserved, nil, &statement{
			text: "SELECT EXISTS (SELECT FROM pawl.job WHERE namespace = $1 AND deadline IS NOT NULL AND state <> 3 AND state IN (1, 2, 4) AND deadline <= {now})",
			args: []any{s.namespace}, each: func(scan scan) error { return scan(&some) },
		})
	})
	if err != nil || !some {
		return store.ExpireReply{}, err
	}
	var expired store.ExpireReply
	var deaths []store.Death
	err = s.retry(ctx, "expire", always, func(ctx context.Context, _ bool) error {
		err := s.transact(ctx, s.reserved, upkeepLimits, func(t *transaction) (err error) {
			expired, err = s.expire(ctx, t, limit)
			return err
		})
		deaths = namedBy(err, deaths, expired.Deaths)
		return err
	})
	if err != nil {
		return store.ExpireReply{}, err
	}
	expired.Deaths = deaths
	return expired, nil
}

func (s *Store) expire(ctx context.Context, session session, limit int) (expired store.ExpireReply, err error) {
	lock, late := mortals(lockLate, s.namespace, limit)
	var now time.Time
	if err := session.run(ctx, &statement{text: "SELECT {now}", each: func(scan scan) error { return scan(&now) }}, lock); err != nil {
		return expired, err
	}
	var moves []move
	for _, l := range *late {
		to := job.Dead
		if !job.CanMove(l.state, to) {
			to = job.Cancelled
		}
		m, err := decide(l, job.End{ID: l.id, To: to, Reason: "its deadline passed", Keep: s.keep(l.queue)}, false, now)
		if err != nil {
			return expired, err
		}
		moves = append(moves, m)
		if to == job.Dead {
			expired.Dead++
			expired.Deaths = store.AddDeaths(expired.Deaths, l.death(m.end.Reason))
		} else {
			expired.Cancelled++
		}
	}
	_, err = s.apply(ctx, session, moves, now)
	return expired, err
}
