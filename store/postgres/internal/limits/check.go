package limits

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// CheckRule is the rule of P6 about buckets, by its name in every store.
const CheckRule = "bucket over its burst"

// checkBuckets reads so many ($4) buckets after one, and tells of each whether it breaks
// the rule: what is there and what is in blocks is more than the burst.
//
//   - bucket_pkey.
const checkBuckets = `SELECT name, key, held < 0 OR before < 0 OR burst < 1 OR rate < 1
	OR level > (burst - held - before)::numeric * 1000000000
FROM pawl.bucket
WHERE namespace = $1 AND (name, key) > ($2, $3)
ORDER BY name, key
LIMIT $4`

// Check adds what is broken to a report.
func (r *Room) Check(ctx context.Context, step int, report *store.CheckReport) error {
	if err := r.pg.Enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	last := store.BucketName{}
	for rows := step; rows >= step; {
		var found []store.Fault
		reached := last
		err := r.pg.Retry(ctx, "check", pg.Reading, func(ctx context.Context, _ bool) error {
			rows, found = 0, nil
			return r.pg.Send(ctx, r.pg.Reading, pg.UpkeepLimits, &pg.Statement{
				Text: checkBuckets, Args: []any{r.pg.Namespace, last.Limit, last.Key, step},
				Each: func(scan pg.Scan) error {
					broken := false
					err := scan(&reached.Limit, &reached.Key, &broken)
					if broken {
						found = append(found, store.Fault{Rule: CheckRule, Detail: reached.String()})
					}
					rows++
					return err
				},
			})
		})
		if err != nil {
			return err
		}
		last = reached
		report.Faults = append(report.Faults, found...)
	}
	return nil
}

// CheckRules are those of buckets. A bucket is left to people: nobody can tell what was
// taken of it, and it goes by itself when it is full.
func CheckRules(r *Room) []pg.TableRules {
	return []pg.TableRules{{Table: "bucket", Rules: []pg.Rule{{Name: CheckRule}}, Own: r.Check}}
}
