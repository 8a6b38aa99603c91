package limits

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// CheckRule is the rule of P6 about buckets, by its name in every store.
const CheckRule = "bucket over its burst"

// stretch reads so many buckets after one, by primary key, and tells of each whether it
// breaks the rule: what is there and what is in blocks is more than the burst.
const stretch = `SELECT name, key, held < 0 OR before < 0 OR burst < 1 OR rate < 1
		OR level > (burst - held - before) * 1000000000
	FROM pawl_bucket
	WHERE namespace = ? AND (name, key) > (?, ?)
	ORDER BY name, key
	LIMIT ?`

// Check looks at the next step buckets after one, in one snapshot.
func Check(c *lite.Snapshot, after store.BucketName, step int) (faults []store.Fault, last store.BucketName, more bool, err error) {
	q := c.On(stretch).Text(after.Limit).Text(after.Key).Int(int64(step))
	n := 0
	for ; q.Step(); n++ {
		last = store.BucketName{Limit: q.ColText(0), Key: q.ColText(1)}
		if q.ColInt(2) != 0 {
			faults = append(faults, store.Fault{Rule: CheckRule, Detail: last.String()})
		}
	}
	return faults, last, n == step, q.Done()
}
