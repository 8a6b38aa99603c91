package schedules

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// The rules of P6 about schedules. Their names are those of every store.
const (
	dueAgain    = "schedule due again"
	outOfBounds = "schedule out of bounds"
)

// CheckRules lists the names of the rules.
func CheckRules() []string { return []string{dueAgain, outOfBounds} }

// checkStates finds what breaks them. The table is small: it is looked at whole.
//
//   - schedule_pkey.
const checkStates = `SELECT r.rule, s.name
FROM pawl.schedule AS s
CROSS JOIN LATERAL (
	SELECT '` + dueAgain + `'
	WHERE s.next <= s.last
	UNION ALL
	SELECT '` + outOfBounds + `'
	WHERE s.fires < 0 OR s.skips < 0 OR (s.fires + s.skips > 0) <> (s.last_job IS NOT NULL)
) AS r (rule)
WHERE s.namespace = $1
ORDER BY s.name`

// Check adds what is broken to a report.
func (r *Room) Check(ctx context.Context, report *store.CheckReport) error {
	if err := r.pg.Enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	var found []store.Fault
	err := r.pg.Retry(ctx, "check", pg.Reading, func(ctx context.Context, _ bool) error {
		found = nil
		return r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits, &pg.Statement{Text: checkStates, Args: []any{r.pg.Namespace}, Each: func(scan pg.Scan) error {
			var f store.Fault
			err := scan(&f.Rule, &f.Detail)
			found = append(found, f)
			return err
		}})
	})
	report.Faults = append(report.Faults, found...)
	return err
}
