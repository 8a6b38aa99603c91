package sqlite

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
	"github.com/pawlwork/pawl/store/sqlite/internal/workers"
)

var _ store.Eraser = (*Store)(nil)

// Erase removes up to limit rows of the namespace, in the order of the list of
// tables that puts what belongs to a row before it.
func (s *Store) Erase(ctx context.Context, limit int) (n int, more bool, err error) {
	if limit < 1 {
		return 0, false, job.Invalid("limit", limit, "must be 1 or more")
	}
	n, err = ask(ctx, s, limit, func(t *jobs.Transition) (int, error) {
		list, err := workers.Registry(&t.Snapshot)
		if err != nil {
			return 0, err
		}
		if err := store.CheckIdle(list, lite.TimeOf(t.Now)); err != nil {
			return 0, err
		}
		n, err := eraseRows(&t.Session, limit)
		if err != nil || n == 0 {
			return n, err
		}
		return n, settings.Raise(&t.Session) // who has the namespace open knows what was set
	})
	return n, n > 0, err
}

// eraseRows removes up to limit rows.
func eraseRows(t *lite.Session, limit int) (erased int, err error) {
	for _, listed := range table.InNamespace(tables) {
		if erased == limit {
			break
		}
		n, err := t.On(lite.EraseText(&listed)).Int(int64(limit - erased)).Changes()
		if err != nil {
			return 0, err
		}
		erased += int(n)
	}
	return erased, nil
}
