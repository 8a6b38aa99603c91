package postgres

// workerRoom is the registry of workers, and their leases.
type workerRoom struct {
	pg    *DB
	hints *hintRoom
	asked claims
}

func newWorkerRoom(db *DB, hints *hintRoom) *workerRoom { return &workerRoom{pg: db, hints: hints} }
