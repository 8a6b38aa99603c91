package claims

import "github.com/pawlwork/pawl/store/internal/table"

// Tables are those of this room.
var Tables = []table.Table{{
	Name: "pawl_gate", Key: []string{"namespace", "gate"}, Ours: []string{"head"},
	Expiry: table.Expiry{Own: "its job has ended and its tokens are all there"},
}}
