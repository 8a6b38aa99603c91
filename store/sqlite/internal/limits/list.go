package limits

import (
	"slices"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// listBuckets lists those of a limit, by primary key.
const listBuckets = `SELECT key, ` + columns + `
	FROM pawl_bucket
	WHERE namespace = ? AND name = ? AND (key > ? OR ? = '')
	ORDER BY key
	LIMIT ?`

// List lists buckets of limits after a key, a seek for each limit in one snapshot; the
// empty key is before all others.
func List(c *lite.Snapshot, limits []string, after string, n int) (list []store.BucketInfo, err error) {
	limits = slices.Clone(limits)
	slices.Sort(limits)
	for _, limit := range slices.Compact(limits) {
		q := c.On(listBuckets).Text(limit).Text(after).Text(after).Int(int64(n))
		for q.Step() {
			i := store.BucketInfo{BucketName: store.BucketName{Limit: limit, Key: q.ColText(0)}, Bucket: scan(q, 1)}
			i.Changed = lite.TimeOf(i.At)
			list = append(list, i)
		}
		if err := q.Done(); err != nil {
			return nil, err
		}
	}
	return list, nil
}
