package postgres

import "github.com/pawlwork/pawl/store/postgres/internal/pg"

// workerRoom is the registry of workers, and their leases.
type workerRoom struct {
	pg    *pg.DB
	hints *hintRoom
	asked claims
}

func newWorkerRoom(db *pg.DB, hints *hintRoom) *workerRoom { return &workerRoom{pg: db, hints: hints} }
