package postgres

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Seen returns those of ids that the transaction sees as jobs.
func (w *within) Seen(ctx context.Context, ids []job.ID) (seen []job.ID, err error) {
	if err := w.enter(ctx); err != nil {
		return nil, err
	}
	defer w.s.pg.Leave()
	seen, err = w.s.jobs.SeenIn(ctx, w.in, ids)
	return seen, pg.Explain("read", w.foreign(err))
}
