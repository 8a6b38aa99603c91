package postgres

import (
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/workers"
)

// claimRoom leases ready jobs to workers.
type claimRoom struct {
	pg        *pg.DB
	hints     *hints.Room
	workers   *workers.Room
	jobs      *jobs.Room
	frontiers frontiers
}

// newClaimRoom makes it, and lets hints lower its frontiers.
func newClaimRoom(db *pg.DB, h *hints.Room, workers *workers.Room, jobs *jobs.Room) *claimRoom {
	s := &claimRoom{pg: db, hints: h, workers: workers, jobs: jobs}
	s.frontiers.guess = &s.pg.Clock
	s.hints.Register(hints.Frontier{Lower: s.frontiers.lower, Wake: s.frontiers.wake, Drop: s.frontiers.drop})
	return s
}
