package intents

import "github.com/pawlwork/pawl/store/internal/table"

// Tables are those of this room.
var Tables = []table.Table{
	{Name: "pawl_intent", Key: []string{"namespace", "id"}, Users: []string{"payload", "error"}, Ours: []string{"subject"}},
}
