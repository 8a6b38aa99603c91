package groups

import (
	"encoding/binary"

	"github.com/pawlwork/pawl/store/internal/table"
)

// Tables are those of this room.
var Tables = []table.Table{
	{Name: "pawl_consumer_group", Key: []string{"id"}, Ours: []string{"name", "filter"}, Except: "numbers of groups are those of all namespaces"},
	{
		Name: "pawl_shelf", Key: []string{"id"}, Ours: []string{"member"}, Except: "numbers of shelves are those of all namespaces",
		Expiry: table.Expiry{Column: "expires", When: "expires IS NOT NULL", Index: "pawl_shelf_expires"},
	},
	{
		Name: "pawl_hand", Key: []string{"id"}, Ours: []string{"behind", "open", "member"},
		Except: "numbers of hands are those of all namespaces: none comes again",
	},
	{Name: "pawl_retry", Key: []string{"namespace", "shelf", "seq"}, Ours: []string{"reason"}},
	{Name: "pawl_stripe", Key: []string{"namespace", "consumer_group", "stripe"}},
	{Name: "pawl_acked", Key: []string{"namespace", "hand", "seq"}},
}

// pack writes numbers down as a blob; none is NULL.
func pack[N int16 | int64](list []N) []byte {
	if len(list) == 0 {
		return nil
	}
	b := make([]byte, 0, 8*len(list))
	for _, n := range list {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// unpack reads what pack wrote.
func unpack(b []byte) (list []int64) {
	for ; len(b) >= 8; b = b[8:] {
		list = append(list, int64(binary.BigEndian.Uint64(b)))
	}
	return list
}
