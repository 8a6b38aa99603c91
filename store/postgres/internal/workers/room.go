package workers

import (
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

// Room is the registry of workers, and their leases.
type Room struct {
	pg       *pg.DB
	hints    *hints.Room
	settings *settings.Room
	Asked    asked
	Leader   leader
}

func New(db *pg.DB, hints *hints.Room, settings *settings.Room) *Room {
	return &Room{pg: db, hints: hints, settings: settings}
}
