package jobs

import "github.com/pawlwork/pawl/store/internal/table"

// Tables are those of this room.
var Tables = []table.Table{
	{
		Name: "pawl_job", Key: []string{"namespace", "id"},
		Users: []string{"args", "headers", "failures", "reason", "progress_note"},
		Ours:  []string{"queue", "kind", "key", "budget", "flow", "unique_hash", "capabilities", "tags"},
	},
	{
		Name: "pawl_job_archive", Key: []string{"namespace", "id"},
		Users:  []string{"args", "headers", "failures", "reason", "progress_note", "result"},
		Ours:   []string{"queue", "kind", "key", "budget", "flow", "unique_hash", "capabilities", "tags"},
		Expiry: table.Expiry{Column: "expires", Index: "pawl_job_archive_expires", Own: "`expires` is over, after its log lines"},
	},
	{
		Name: "pawl_job_unique", Key: []string{"namespace", "hash"}, Ours: []string{"job"},
		Parent: table.Parent{Column: "job", Tables: []string{"pawl_job"}},
		Expiry: table.Expiry{Column: "until", When: "until IS NOT NULL", Index: "pawl_job_unique_until"},
	},
	{
		Name: "pawl_tombstone", Key: []string{"namespace", "id"},
		Expiry: table.Expiry{Column: "expires", Index: "pawl_tombstone_expires"},
	},
	{
		Name: "pawl_job_log", Key: []string{"namespace", "job", "line"}, Users: []string{"text"},
		Parent: table.Parent{Column: "job", Tables: []string{"pawl_job", "pawl_job_archive"}},
	},
}
