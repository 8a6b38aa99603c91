package limits

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// listBuckets lists those of a limit, by primary key.
const listBuckets = `SELECT key, ` + columns + `
	FROM pawl_bucket
	WHERE namespace = ? AND name = ? AND (key > ? OR ? = '')
	ORDER BY key
	LIMIT ?`

// List lists buckets of a limit after a key; the empty key is before all others.
func List(c *lite.Snapshot, limit, after string, n int) (list []store.BucketInfo, err error) {
	q := c.On(listBuckets).Text(limit).Text(after).Text(after).Int(int64(n))
	for q.Step() {
		i := store.BucketInfo{BucketName: store.BucketName{Limit: limit, Key: q.ColText(0)}, Bucket: scan(q, 1)}
		i.Changed = lite.TimeOf(i.At)
		list = append(list, i)
	}
	return list, q.Done()
}
