// Package lists answers what people ask about jobs: lists, counts, why jobs do not
// run. It changes nothing, and what each answer reads is bounded (P10).
package lists

import (
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
	"github.com/pawlwork/pawl/store/postgres/internal/workers"
)

// Room answers what people ask about jobs.
type Room struct {
	pg       *pg.DB
	settings *settings.Room
	workers  *workers.Room
	jobs     *jobs.Room
}

func New(db *pg.DB, settings *settings.Room, workers *workers.Room, jobs *jobs.Room) *Room {
	return &Room{pg: db, settings: settings, workers: workers, jobs: jobs}
}
