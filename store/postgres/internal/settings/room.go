package settings

import (
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Room is what operators have set: pauses of queues, and who did what.
type Room struct {
	pg    *pg.DB
	hints *hints.Room
}

func New(db *pg.DB, hints *hints.Room) *Room {
	return &Room{pg: db, hints: hints}
}
