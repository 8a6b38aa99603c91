package workers

import (
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Room is the registry of workers, and their leases.
type Room struct {
	pg     *pg.DB
	hints  *hints.Room
	meets  *Meets
	Asked  asked
	Leader leader
}

func New(db *pg.DB, hints *hints.Room, meets *Meets) *Room {
	return &Room{pg: db, hints: hints, meets: meets, Asked: asked{come: meets.come}}
}
