package main

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

// pawlSQLite opens Pawl on a file: WAL and synchronous=FULL are what it always uses.
func pawlSQLite(_ context.Context, at place) (queue, error) {
	return openPawl("pawl_job", func() store.Opener { return sqlite.File(at.file()) })
}
