package main

import (
	"context"

	"github.com/pawlwork/pawl/store"
	_ "github.com/pawlwork/pawl/store/postgres" // its scheme
)

// pawlPostgres opens Pawl by address, as a tool does.
// pawlPostgresTied gives one job in a hundred something beside itself.
func pawlPostgresTied(ctx context.Context, at place) (queue, error) {
	q, err := pawlPostgres(ctx, at)
	if err == nil {
		q.(*pawlQueue).tied = 100
	}
	return q, err
}

func pawlPostgres(_ context.Context, at place) (queue, error) {
	opener, err := store.Parse(at.Postgres)
	if err != nil {
		return nil, err
	}
	return openPawl("pawl.job", func() store.Opener { return opener })
}
