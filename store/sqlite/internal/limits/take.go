package limits

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
)

// What reads and writes a bucket, by primary key.
const (
	columns = `level, at, tick, held, before, drained, until, turn, rate, burst, revision`

	oneBucket = `SELECT ` + columns + `
	FROM pawl_bucket
	WHERE namespace = ? AND name = ? AND key = ?`

	putBucket = `INSERT OR REPLACE INTO pawl_bucket (namespace, name, key, ` + columns + `, expires)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

// scan reads the columns of a bucket from the nth on.
func scan(q *lite.Query, n int) (b job.Bucket) {
	for i, field := range fields(&b) {
		*field = q.ColInt(n + i)
	}
	return b
}

// fields are the columns of a bucket in their order.
func fields(b *job.Bucket) []*int64 {
	return []*int64{&b.Level, &b.At, &b.Tick, &b.Held, &b.Before, &b.Drained, &b.Until, &b.Turn, &b.Rate, &b.Burst, &b.Revision}
}

// Take takes tokens of a bucket, and gives back, by job.Bucket.
func Take(t *lite.Session, of store.BucketName, r *job.TakeRequest) (reply job.TakeReply, err error) {
	b := r.NewBucket(t.Now)
	q := t.On(oneBucket).Text(of.Limit).Text(of.Key)
	if q.Step() {
		b = scan(q, 0)
	}
	if err := q.Done(); err != nil {
		return reply, err
	}
	reply = b.Take(t.Now, r)
	q = t.On(putBucket).Text(of.Limit).Text(of.Key)
	for _, field := range fields(&b) {
		q.Int(*field)
	}
	return reply, q.Int(b.Expires()).Exec()
}

// Drain empties a bucket for a time, or ends a drain.
func Drain(t *lite.Session, of store.BucketName, r *job.TakeRequest, op *store.Operator) error {
	if _, err := Take(t, of, r); err != nil || op == nil {
		return err
	}
	action, target := store.DrainAction(of, r.Drain)
	return settings.Audit(t, *op, action, target)
}
