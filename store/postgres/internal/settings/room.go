package settings

import (
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Tables are those of this room.
var Tables = []table.Table{
	{Name: "queue", Key: []string{"namespace", "name"}},
	{
		Name: "audit", Key: []string{"namespace", "time", "id"}, Users: []string{"note"}, Ours: []string{"by", "action", "target"},
		Expiry: table.Expiry{Column: "expires", When: "expires > '-infinity'", Index: "audit_expires"},
	},
}

// Room is what operators have set: pauses of queues, and who did what.
type Room struct {
	pg    *pg.DB
	hints *hints.Room
}

func New(db *pg.DB, hints *hints.Room) *Room {
	return &Room{pg: db, hints: hints}
}
