package settings

import (
	"context"
	"fmt"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

const addEntries = `INSERT INTO pawl.audit (namespace, time, expires, by, action, target, note, detail)
SELECT $1, {now}, {now} + interval '90 days', $2, $3, t.name, $4, t.detail
FROM unnest($5::text[], $6::text[]) WITH ORDINALITY AS t (name, detail, n)
ORDER BY t.n`

// What lists entries, all of them or those about one target ($9). Of those it
// visits ($5 at most) it answers those that match, and the last in any case: the
// next page goes on there. It visits none behind the last that is asked for ($8).
//
//   - audit_pkey, or audit_target, backwards.
var (
	entriesByTime = fmt.Sprintf(listEntries, "")
	// The condition on a target is in the text only where there is one.
	entriesByTarget = fmt.Sprintf(listEntries, " AND target = $9")
)

const listEntries = `SELECT id, time, by, action, target, note, detail, n
FROM (
	SELECT *, row_number() OVER (ORDER BY time DESC, id DESC) AS n
	FROM pawl.audit
	WHERE namespace = $1 AND (time, id) < ($2, $3) AND time >= $4%s
	ORDER BY time DESC, id DESC
	LIMIT $5
) AS visited
WHERE n = $5 OR ($6 = '' OR by = $6) AND ($7 = '' OR action = $7)
ORDER BY n
LIMIT $8`

// Plans are the statements of this room that find rows, with the indexes that must
// serve them.
var Plans = []pg.Plan{
	{Name: "versionNow", Text: versionNow, Indexes: []string{"code_version_pkey", "declaration_pkey"}},
	{Name: "declare", Text: declare, Indexes: []string{"declaration_pkey", "code_version_live", "namespace_pkey"}},
	{Name: "endVersions", Text: endVersions, Indexes: []string{"code_version_live", "worker_version", "declaration_pkey", "namespace_pkey"}},
	{Name: "purgeVersions", Text: PurgeVersions, Indexes: []string{"code_version_ended"}},
	{Name: "lockCoolDown", Text: lockCoolDown, Indexes: []string{"cool_down_pkey"}},
	{Name: "setCoolDown", Text: setCoolDown, Indexes: []string{"cool_down_pkey"}},
	{Name: "endCoolDown", Text: endCoolDown, Indexes: []string{"cool_down_pkey"}},
	{Name: "forgetCoolDowns", Text: forgetCoolDowns, Indexes: []string{"cool_down_until"}},
	{Name: "allCoolDowns", Text: allCoolDowns, Indexes: []string{"cool_down_until"}},
	{Name: "entriesByTime", Text: entriesByTime, Indexes: []string{"audit_pkey"}},
	{Name: "entriesByTarget", Text: entriesByTarget, Indexes: []string{"audit_target"}},
}

// Record writes entries in the transaction of the change they are about: one for
// each target, with what changed. They are remembered for 90 days.
func (r *Room) Record(ctx context.Context, session pg.Session, op store.Operator, action string, targets, details []string) error {
	if op.Name == "" || len(targets) == 0 {
		return nil
	}
	args := []any{r.pg.Namespace, pg.Legible(op.Name), action, pg.Legible(op.Note), targets, details}
	return session.Run(ctx, &pg.Statement{Text: addEntries, Args: args})
}

// RecordOne writes an entry by itself. One whose answer was lost is not written again.
func (r *Room) RecordOne(ctx context.Context, op store.Operator, action, target, detail string) error {
	if err := r.pg.Enter(ctx); err != nil {
		return err
	}
	defer r.pg.Leave()
	return r.pg.Retry(ctx, action, pg.UnlessUnknown, func(ctx context.Context, _ bool) error {
		return r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(t *pg.Transaction) error {
			return r.Record(ctx, t, op, action, []string{pg.Legible(target)}, []string{pg.Legible(detail)})
		})
	})
}

// Audit pages through operator actions, the newest first.
func (r *Room) Audit(ctx context.Context, f store.AuditFilter, p store.AuditPage) (list store.AuditList, err error) {
	if err := p.Check(); err != nil {
		return list, err
	}
	f.By, f.Action, f.Target = pg.Legible(f.By), pg.Legible(f.Action), pg.Legible(f.Target) // as they were written
	before := p.Before(&f)
	text, args := entriesByTime, []any{r.pg.Namespace, before.Time, before.ID, f.After, store.AuditVisits, f.By, f.Action, p.Limit + 1}
	if f.Target != "" {
		text, args = entriesByTarget, append(args, f.Target)
	}
	err = r.pg.Browse(ctx, func() []*pg.Statement {
		list = store.AuditList{}
		return []*pg.Statement{{Text: text, Args: args, Each: func(scan pg.Scan) error {
			var e store.AuditEntry
			var n int
			err := scan(&e.ID, &e.Time, &e.By, &e.Action, &e.Target, &e.Note, &e.Detail, &n)
			e.Time = e.Time.UTC()
			list.Add(&f, &p, &e, n)
			return err
		}}}
	})
	return list, err
}
