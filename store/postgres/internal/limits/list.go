package limits

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// listBuckets lists those of limits ($2) after a key, up to $4 of each; the empty key is
// before all others.
//
//   - bucket_pkey, a seek for each limit.
const listBuckets = `SELECT b.*
FROM (
	SELECT DISTINCT name
	FROM unnest($2::text[]) AS l (name)
) AS l
CROSS JOIN LATERAL (
	SELECT name, key, level, at, tick, held, before, drained, until, turn, rate, burst, revision
	FROM pawl.bucket
	WHERE namespace = $1 AND name = l.name AND (key > $3 OR $3 = '')
	ORDER BY name, key
	LIMIT $4
) AS b
ORDER BY b.name, b.key`

// List lists buckets of limits by key.
func (r *Room) List(ctx context.Context, limits []string, after string, n int) (list []store.BucketInfo, err error) {
	if err := r.pg.Enter(ctx); err != nil {
		return nil, err
	}
	defer r.pg.Leave()
	err = r.pg.Retry(ctx, "list buckets", pg.Reading, func(ctx context.Context, _ bool) error {
		list = nil
		return r.pg.Send(ctx, r.pg.Work, nil, &pg.Statement{
			Text: listBuckets, Args: []any{r.pg.Namespace, limits, after, min(n, store.MaxBuckets)},
			Each: func(scan pg.Scan) error {
				var i store.BucketInfo
				var at time.Time
				err := scan(&i.Limit, &i.Key, &i.Level, &at, &i.Tick, &i.Held, &i.Before, &i.Drained,
					&i.Until, &i.Turn, &i.Rate, &i.Burst, &i.Bucket.Revision)
				i.At, i.Changed = at.UnixMicro(), at.UTC()
				list = append(list, i)
				return err
			},
		})
	})
	return list, err
}
