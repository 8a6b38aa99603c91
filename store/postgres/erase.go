package postgres

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

var _ store.Eraser = (*Store)(nil)

// Erase removes up to limit rows of the namespace, in the order of the list of
// tables that puts what belongs to a row before it. It waits some
// seconds for rows that somebody's open transaction holds, and gives up then.
func (s *Store) Erase(ctx context.Context, limit int) (n int, more bool, err error) {
	if limit < 1 {
		return 0, false, job.Invalid("limit", limit, "must be 1 or more")
	}
	if err := s.pg.Enter(ctx); err != nil {
		return 0, false, err
	}
	defer s.pg.Leave()
	err = s.pg.Retry(ctx, "erase", pg.Always, func(ctx context.Context, _ bool) error {
		return s.pg.Transact(ctx, s.pg.Upkeep, pg.UpkeepLimits, func(t *pg.Transaction) (err error) {
			var list []store.WorkerInfo
			var now time.Time
			if err := t.Run(ctx, s.workers.RegistryStep(&list, &now)); err != nil {
				return err
			}
			if err := store.CheckIdle(list, now); err != nil {
				return err
			}
			if n, err = s.eraseRows(ctx, t, limit); err != nil || n == 0 {
				return err
			}
			return s.settings.Raise(ctx, t) // who has the namespace open knows what was set
		})
	})
	if err != nil {
		return 0, false, err
	}
	return n, n > 0, nil
}

// eraseRows removes up to limit rows.
func (s *Store) eraseRows(ctx context.Context, t pg.Session, limit int) (erased int, err error) {
	for _, listed := range table.InNamespace(tables) {
		if erased == limit {
			break
		}
		st := &pg.Statement{Text: pg.EraseText(&listed), Args: []any{s.pg.Namespace, limit - erased}}
		if err := t.Run(ctx, st); err != nil {
			return 0, err
		}
		erased += int(st.Hits)
	}
	return erased, nil
}
