package operations

import (
	"context"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// The rules of P6 about operations. Their names are those of every store.
const (
	withoutEnd = "operation without an end"
	miscounted = "operation miscounted"
)

// CheckRules lists the names of the rules.
func CheckRules() []string { return []string{withoutEnd, miscounted} }

// checkOperations finds what breaks them among so many ($3) operations after one ($2).
//
//   - operation_pkey gives the stretch.
const checkOperations = `SELECT id, CASE
	WHEN (state = 1) <> (ended IS NULL) OR (ended IS NULL) <> (expires IS NULL) THEN
		'` + withoutEnd + `'
	WHEN looked <> changed + asked + duplicate + busy + unchanged THEN
		'` + miscounted + `'
	ELSE
		''
END, 'state ' || state || ', ' || looked || ' looked at'
FROM pawl.operation
WHERE namespace = $1 AND id > $2
ORDER BY id
LIMIT $3`

// Check adds what is broken to a report.
func (r *Room) Check(ctx context.Context, step int, report *store.CheckReport) error {
	if err := r.pg.Enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	last := [16]byte{}
	for rows := step; rows >= step; {
		var found []store.Fault
		reached := last
		err := r.pg.Retry(ctx, "check", pg.Reading, func(ctx context.Context, _ bool) error {
			rows, found = 0, nil
			return r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits, &pg.Statement{
				Text: checkOperations, Args: []any{r.pg.Namespace, last, step},
				Each: func(scan pg.Scan) error {
					var f store.Fault
					err := scan(&reached, &f.Rule, &f.Detail)
					f.ID = job.ID(reached)
					if f.Rule != "" {
						found = append(found, f)
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
