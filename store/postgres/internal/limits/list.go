package limits

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// listBuckets lists those of a limit after a key; the empty key is before all others.
//
//   - bucket_pkey.
const listBuckets = `SELECT key, level, at, tick, held, before, drained, until, turn, rate, burst, revision
FROM pawl.bucket
WHERE namespace = $1 AND name = $2 AND (key > $3 OR $3 = '')
ORDER BY key
LIMIT $4`

// List lists buckets of a limit by key.
func (r *Room) List(ctx context.Context, limit, after string, n int) (list []store.BucketInfo, err error) {
	if err := r.pg.Enter(ctx); err != nil {
		return nil, err
	}
	defer r.pg.Leave()
	err = r.pg.Retry(ctx, "list buckets", pg.Reading, func(ctx context.Context, _ bool) error {
		list = nil
		return r.pg.Send(ctx, r.pg.Work, nil, &pg.Statement{
			Text: listBuckets, Args: []any{r.pg.Namespace, limit, after, min(n, store.MaxBuckets)},
			Each: func(scan pg.Scan) error {
				i := store.BucketInfo{BucketName: store.BucketName{Limit: limit}}
				var at time.Time
				err := scan(&i.Key, &i.Level, &at, &i.Tick, &i.Held, &i.Before, &i.Drained, &i.Until, &i.Turn, &i.Rate, &i.Burst, &i.Bucket.Revision)
				i.At, i.Changed = at.UnixMicro(), at.UTC()
				list = append(list, i)
				return err
			},
		})
	})
	return list, err
}
