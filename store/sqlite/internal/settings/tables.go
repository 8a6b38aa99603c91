package settings

import "github.com/pawlwork/pawl/store/internal/table"

// Tables are those of this room.
var Tables = []table.Table{
	{
		Name: "pawl_code_version", Key: []string{"namespace", "owner", "version"},
		Expiry: table.Expiry{Column: "ended", Own: "30 days after its last worker"},
	},
	{Name: "pawl_declaration", Key: []string{"namespace", "owner", "kind", "name", "version"}, Ours: []string{"value"}},
	{Name: "pawl_override", Key: []string{"namespace", "kind", "name"}, Users: []string{"note"}, Ours: []string{"value", "by"}},
	{Name: "pawl_pause", Key: []string{"namespace", "scope", "name"}, Users: []string{"note"}, Ours: []string{"by"}},
	{
		Name: "pawl_cool_down", Key: []string{"namespace", "queue"},
		Expiry: table.Expiry{Column: "until", Own: "a day after it, when another begins"},
	},
	{
		Name: "pawl_audit", Key: []string{"id"}, Users: []string{"note"}, Ours: []string{"by", "action", "target", "detail"},
		Except: "numbers are never used again, and SQLite keeps that promise for a key of one column only",
		Expiry: table.Expiry{Column: "expires", Index: "pawl_audit_expires"},
	},
}
