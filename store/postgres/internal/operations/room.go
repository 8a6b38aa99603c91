// Package operations keeps what operators do to many jobs, and does it page by page:
// the jobs of a page, the cursor and the counts change in one transaction. It owns
// the table operation.
package operations

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/lists"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

// Tables are those of this room.
var Tables = []table.Table{
	{
		Name: "operation", Key: []string{"namespace", "id"}, Users: []string{"note"},
		Ours:   []string{"verb", "filter", "cursor", "by", "reason"},
		Expiry: table.Expiry{Column: "expires", When: "expires IS NOT NULL", Index: "operation_expires"},
	},
}

// Due is what the room asks with the look for what is due.
var Due = jobs.Ask{
	Text: `SELECT 1
	FROM pawl.operation
	WHERE namespace = $1 AND state = 1 AND next <= {now}
	ORDER BY next
	LIMIT 1`,
	Set:     func(d *store.Due, due bool) { d.Operations = due },
	Indexes: []string{"operation_open"},
}

// Plans are the statements that find rows, with the indexes that must serve them.
var Plans = []pg.Plan{
	{Name: "readOne", Text: readOne, Indexes: []string{"operation_pkey"}},
	{Name: "lockOne", Text: lockOne, Indexes: []string{"operation_pkey"}},
	{Name: "readOpen", Text: readOpen, Indexes: []string{"operation_open"}},
	{Name: "readNewest", Text: readNewest, Indexes: []string{"operation_pkey"}},
	{Name: "countOpen", Text: countOpen, Indexes: []string{"operation_open"}},
	{Name: "updateOperation", Text: update, Indexes: []string{"operation_pkey"}},
	{Name: "checkOperations", Text: checkOperations, Indexes: []string{"operation_pkey"}},
}

// Room keeps operations.
type Room struct {
	pg       *pg.DB
	settings *settings.Room
	jobs     *jobs.Room
	lists    *lists.Room
}

func New(db *pg.DB, settings *settings.Room, jobs *jobs.Room, lists *lists.Room) *Room {
	return &Room{pg: db, settings: settings, jobs: jobs, lists: lists}
}
