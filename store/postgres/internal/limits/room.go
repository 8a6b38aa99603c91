package limits

import (
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
)

// Tables are those of this room.
var Tables = []table.Table{
	{
		Name: "bucket", Key: []string{"namespace", "name", "key"},
		Expiry: table.Expiry{Column: "expires", Index: "bucket_expires"},
	},
}

// Plans are the statements of this room that find rows, with the indexes that must
// serve them.
var Plans = []pg.Plan{
	{Name: "listBuckets", Text: listBuckets, Indexes: []string{"bucket_pkey"}},
	{Name: "checkBuckets", Text: checkBuckets, Indexes: []string{"bucket_pkey"}},
}

// Room is the buckets.
type Room struct {
	pg       *pg.DB
	settings *settings.Room
}

func New(db *pg.DB, settings *settings.Room) *Room { return &Room{pg: db, settings: settings} }
