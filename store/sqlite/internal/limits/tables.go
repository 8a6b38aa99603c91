package limits

import "github.com/pawlwork/pawl/store/internal/table"

// Tables are those of this room.
var Tables = []table.Table{
	{
		Name: "pawl_bucket", Key: []string{"namespace", "name", "key"},
		Expiry: table.Expiry{Column: "expires", Index: "pawl_bucket_expires"},
	},
}
