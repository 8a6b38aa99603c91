package claims

import (
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/workers"
)

// Room leases ready jobs to workers.
type Room struct {
	pg        *pg.DB
	hints     *hints.Room
	workers   *workers.Room
	jobs      *jobs.Room
	meets     *Meets
	Frontiers frontiers
}

// New makes it, and lets hints lower its frontiers.
func New(db *pg.DB, h *hints.Room, workers *workers.Room, jobs *jobs.Room, meets *Meets) *Room {
	s := &Room{pg: db, hints: h, workers: workers, jobs: jobs, meets: meets}
	s.Frontiers.guess = &s.pg.Clock
	s.hints.Register(hints.Frontier{Lower: s.Frontiers.Lower, Wake: s.Frontiers.wake, Drop: s.Frontiers.Drop})
	return s
}
