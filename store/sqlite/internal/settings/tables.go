package settings

import "github.com/pawlwork/pawl/store/internal/table"

// Tables are those of this room.
var Tables = []table.Table{
	{Name: "pawl_queue", Key: []string{"namespace", "name"}},
	{
		Name: "pawl_audit", Key: []string{"id"}, Users: []string{"note"}, Ours: []string{"by", "action", "target"},
		Except: "numbers are never used again, and SQLite keeps that promise for a key of one column only",
		Expiry: table.Expiry{Column: "expires", Index: "pawl_audit_expires"},
	},
}
