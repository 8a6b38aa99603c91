package schedules

import (
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

// Tables are those of this room.
var Tables = []table.Table{
	{
		Name: "schedule", Key: []string{"namespace", "name"}, Ours: []string{"cron", "zone"},
		Expiry: table.Expiry{Column: "expires", When: "expires > '-infinity'", Index: "schedule_expires"},
	},
}

// Plans are the statements of this room, with the indexes that must serve them.
var Plans = []pg.Plan{
	{Name: "allStates", Text: allStates, Indexes: []string{"schedule_pkey"}},
	{Name: "moveStates", Text: moveStates, Indexes: []string{"schedule_pkey", "namespace_pkey"}},
	{Name: "countJobs", Text: countJobs, Indexes: []string{"schedule_pkey"}},
	{Name: "dropState", Text: dropState, Indexes: []string{"schedule_pkey"}},
}

// Room fires schedules.
type Room struct {
	pg       *pg.DB
	hints    *hints.Room
	settings *settings.Room
	jobs     *jobs.Room
}

func New(db *pg.DB, hints *hints.Room, settings *settings.Room, jobs *jobs.Room) *Room {
	return &Room{pg: db, hints: hints, settings: settings, jobs: jobs}
}
