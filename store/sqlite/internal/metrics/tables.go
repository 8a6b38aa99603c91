package metrics

import "github.com/pawlwork/pawl/store/internal/table"

// Tables are those of this room.
var Tables = []table.Table{
	{
		Name: "pawl_metric", Key: []string{"namespace", "class", "width", "start", "name", "kind", "source", "flush"}, Users: []string{"data"},
		Expiry: table.Expiry{Column: "expires", Index: "pawl_metric_expires"},
	},
	{
		Name: "pawl_metric_flush", Key: []string{"namespace", "source"},
		Expiry: table.Expiry{Column: "expires", Index: "pawl_metric_flush_expires"},
	},
}
