package schedules

import "github.com/pawlwork/pawl/store/internal/table"

// Tables are those of this room.
var Tables = []table.Table{
	{
		Name: "pawl_schedule", Key: []string{"namespace", "name"}, Ours: []string{"last_job", "cron", "zone"},
		Expiry: table.Expiry{Column: "expires", Index: "pawl_schedule_expires"},
	},
}
