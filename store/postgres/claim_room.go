package postgres

import "github.com/pawlwork/pawl/store/postgres/internal/pg"

// claimRoom leases ready jobs to workers.
type claimRoom struct {
	pg        *pg.DB
	hints     *hintRoom
	workers   *workerRoom
	jobs      *jobRoom
	frontiers frontiers
}

// newClaimRoom makes it, and lets hints lower its frontiers.
func newClaimRoom(db *pg.DB, h *hintRoom, workers *workerRoom, jobs *jobRoom) *claimRoom {
	s := &claimRoom{pg: db, hints: h, workers: workers, jobs: jobs}
	s.frontiers.guess = &s.pg.Clock
	s.hints.register(frontier{lower: s.frontiers.lower, wake: s.frontiers.wake, drop: s.frontiers.drop})
	return s
}
