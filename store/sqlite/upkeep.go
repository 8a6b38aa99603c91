package sqlite

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/sqlite/internal/claims"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/log"
	"github.com/pawlwork/pawl/store/sqlite/internal/metrics"
	"github.com/pawlwork/pawl/store/sqlite/internal/operations"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
	"github.com/pawlwork/pawl/store/sqlite/internal/workers"
)

// Due says which rounds of upkeep have something to do. It reads, and waits for no writer.
func (s *Store) Due(ctx context.Context) (store.Due, error) {
	return view(ctx, s, func(c *lite.Snapshot) (due store.Due, err error) {
		if due, err = jobs.Due(c, lookDue); err != nil {
			return due, err
		}
		if due.Intents, err = s.intents.Due(c); err != nil {
			return due, err
		}
		if due.Operations, err = operations.Due(c); err != nil {
			return due, err
		}
		if due.RollUp, err = metrics.Due(c); err != nil {
			return due, err
		}
		if due.Trim, err = log.Trimmable(c); err != nil {
			return due, err
		}
		due.Gates, err = claims.Due(c)
		return due, err
	})
}

// MarkLost declares workers lost whose last beat is older than their own limit, if
// the declarer has beaten throughout such a time.
func (s *Store) MarkLost(ctx context.Context, l store.MarkLostRequest) (store.MarkLostReply, error) {
	var locks []string
	lost, err := ask(ctx, s, 1, func(t *jobs.Transition) (lost store.MarkLostReply, err error) {
		if lost.Neighbours, locks, err = workers.Neighbours(&t.Session, &l); err != nil {
			return lost, err
		}
		if lost.Orphans, err = t.HasOrphans(); err != nil {
			return lost, err
		}
		lost.Workers, err = workers.MarkLost(&t.Session, &l)
		return lost, err
	})
	for i := range lost.Neighbours {
		n := &lost.Neighbours[i]
		n.Dead = lite.SameKernel(n.Machine, l.Machine) && s.alive.IsFree(s.namespace, n.ID, locks[i])
	}
	return lost, err
}

// MarkDead declares workers lost that are proven dead.
func (s *Store) MarkDead(ctx context.Context, dead []job.WorkerID) (int, error) {
	return ask(ctx, s, len(dead), func(t *jobs.Transition) (int, error) { return workers.MarkDead(&t.Session, dead) })
}

// Rescue ends up to limit runs whose worker is absent or lost.
func (s *Store) Rescue(ctx context.Context, limit int) (store.RescueReply, error) {
	rescued, err := ask(ctx, s, limit, func(t *jobs.Transition) (store.RescueReply, error) { return t.Rescue(limit) })
	if rescued.Total() > 0 {
		s.claims.Turns.Drop() // they may have gates
	}
	return rescued, err
}

// Expire ends up to limit jobs that are not running and past their deadline.
func (s *Store) Expire(ctx context.Context, limit int) (store.ExpireReply, error) {
	return ask(ctx, s, limit, func(t *jobs.Transition) (store.ExpireReply, error) { return t.Expire(limit) })
}

// What purges and looks for what is due, made from the list of tables.
var (
	lookDue    = jobs.LookDue(table.Expiring(tables))
	purgeTexts = func() (texts []string) {
		for _, t := range table.Expiring(tables) {
			texts = append(texts, lite.PurgeText(&t))
		}
		return texts
	}()
)

// Purge removes up to limit rows of each table whose time is over, by index and in
// one short transaction, so that it never delays a claim for long.
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	return ask(ctx, s, limit, func(t *jobs.Transition) (int, error) {
		purged, err := t.PurgeArchive(limit)
		if err != nil {
			return 0, err
		}
		for _, text := range purgeTexts {
			n, err := t.On(text).Int(t.Now).Int(int64(limit)).Changes()
			if err != nil {
				return 0, err
			}
			purged += int(n)
		}
		for _, purge := range []func(*lite.Session, int) (int64, error){settings.PurgeVersions, workers.Purge} {
			n, err := purge(&t.Session, limit)
			if err != nil {
				return 0, err
			}
			purged += int(n)
		}
		return purged, nil
	})
}

// Regate moves waiting jobs to where the rules put them.
func (s *Store) Regate(ctx context.Context, rules *job.GateRules, limit int) (store.RegateReply, error) {
	var next claims.RegatePlace
	reply, err := ask(ctx, s, limit, func(t *jobs.Transition) (reply store.RegateReply, err error) {
		reply, next, err = claims.Regate(t, rules, limit, s.claims.Regated())
		return reply, err
	})
	if err == nil {
		s.claims.KeepRegated(next)
	}
	if reply.Moved > 0 {
		s.claims.Turns.Drop()
	}
	return reply, err
}

// MakeDueAgain makes up to limit jobs ready whose due time the clock had reached.
func (s *Store) MakeDueAgain(ctx context.Context, b store.ClockStep, limit int) (int, error) {
	defer s.claims.Turns.Drop() // what is closed is so until a time that was
	return ask(ctx, s, limit, func(t *jobs.Transition) (int, error) { return t.MakeDueAgain(&b, limit) })
}

// WaitingQueues lists queues with waiting jobs behind one, in one snapshot.
func (s *Store) WaitingQueues(ctx context.Context, after string, limit int) ([]string, error) {
	return view(ctx, s, func(c *lite.Snapshot) ([]string, error) { return claims.WaitingQueues(c, after, limit) })
}

// Unserved finds jobs that no live worker takes, in one snapshot.
func (s *Store) Unserved(ctx context.Context, by job.WorkerID, older time.Duration) ([]store.Unserved, error) {
	return view(ctx, s, func(c *lite.Snapshot) ([]store.Unserved, error) { return claims.Unserved(c, by, older) })
}
