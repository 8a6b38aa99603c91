package workers

import (
	"github.com/pawlwork/pawl/store/internal/crews"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

// Tables are those of this room.
var Tables = []table.Table{
	{
		Name: "worker", Key: []string{"namespace", "id"},
		Ours:   []string{"label", "owner", "version", "host", "machine", "start", "queues", "totals", "offer"},
		Expiry: table.Expiry{Column: "lost", When: "lost IS NOT NULL AND id > 0", Index: "worker_lost", Own: "a day after it left or was lost, when it holds nothing"},
	},
	{Name: "worker_beat", Key: []string{"namespace", "worker", "at"}, Parent: table.Parent{Column: "worker", Tables: []string{"worker"}}},
	{Name: "alone", Key: []string{"namespace"}, Parent: table.Parent{Column: "job", Tables: []string{"job"}}},
}

// Room is the registry of workers, and their leases.
type Room struct {
	pg       *pg.DB
	hints    *hints.Room
	settings *settings.Room
	meets    *Meets
	Asked    asked
	Leader   leader
	crews    crews.Known
	late     tour // of live workers, for who is late
	Gaps     Gaps
	Rides    Rides
}

func New(db *pg.DB, hints *hints.Room, settings *settings.Room, meets *Meets) *Room {
	return &Room{pg: db, hints: hints, settings: settings, meets: meets, Asked: asked{come: meets.come}, Rides: Rides{Patience: ridePatience}}
}
