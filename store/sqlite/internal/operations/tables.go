package operations

import "github.com/pawlwork/pawl/store/internal/table"

// Tables are those of this room.
var Tables = []table.Table{
	{
		Name: "pawl_operation", Key: []string{"namespace", "id"}, Users: []string{"note"},
		Ours:   []string{"verb", "filter", "cursor", "by", "reason"},
		Expiry: table.Expiry{Column: "expires", When: "expires IS NOT NULL", Index: "pawl_operation_expires"},
	},
}
