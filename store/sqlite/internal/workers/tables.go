package workers

import "github.com/pawlwork/pawl/store/internal/table"

// Tables are those of this room.
var Tables = []table.Table{
	{
		Name: "pawl_worker", Key: []string{"namespace", "id"},
		Ours:   []string{"label", "owner", "version", "host", "machine", "start", "lock", "queues", "slots", "totals", "offer"},
		Expiry: table.Expiry{Column: "lost", When: "lost IS NOT NULL", Index: "pawl_worker_lost", Own: "when it left or was lost, and holds nothing"},
	},
	{
		Name: "pawl_alone", Key: []string{"namespace"}, Ours: []string{"job"},
		Parent: table.Parent{Column: "job", Tables: []string{"pawl_job"}},
	},
}
