package settings

import (
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Tables are those of this room.
var Tables = []table.Table{
	{
		Name: "code_version", Key: []string{"namespace", "owner", "version"},
		Expiry: table.Expiry{Column: "ended", Own: "30 days after its last worker"},
	},
	{Name: "declaration", Key: []string{"namespace", "owner", "kind", "name", "version"}, Ours: []string{"value"}},
	{Name: "override", Key: []string{"namespace", "kind", "name"}, Users: []string{"note"}, Ours: []string{"value", "by"}},
	{Name: "pause", Key: []string{"namespace", "scope", "name"}, Users: []string{"note"}, Ours: []string{"by"}},
	{
		Name: "cool_down", Key: []string{"namespace", "queue"},
		Expiry: table.Expiry{Column: "until", Own: "a day after it, when another begins"},
	},
	{
		Name: "audit", Key: []string{"namespace", "time", "id"}, Users: []string{"note"}, Ours: []string{"by", "action", "target", "detail"},
		Expiry: table.Expiry{Column: "expires", When: "expires > '-infinity'", Index: "audit_expires"},
	},
}

// Room is what code declares and operators set, and who did what.
type Room struct {
	pg    *pg.DB
	hints *hints.Room
}

func New(db *pg.DB, hints *hints.Room) *Room {
	return &Room{pg: db, hints: hints}
}
