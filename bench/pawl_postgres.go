package main

import (
	"context"

	"github.com/pawlwork/pawl/store"
	_ "github.com/pawlwork/pawl/store/postgres" // its scheme
)

// pawlPostgres opens Pawl by address, as a tool does.
func pawlPostgres(_ context.Context, at place) (queue, error) {
	opener, err := store.Parse(at.Postgres)
	if err != nil {
		return nil, err
	}
	return openPawl("pawl.job", func() store.Opener { return opener })
}
