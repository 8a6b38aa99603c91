package settings

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// versionNow tells whether a version is live (code_version_pkey), and what it
// declares (declaration_pkey, the owner's part of it).
const versionNow = `SELECT v.ended IS NULL, d.kind, d.name, d.value
FROM pawl.code_version AS v
LEFT JOIN pawl.declaration AS d ON d.namespace = v.namespace AND d.owner = v.owner AND d.version = v.version
WHERE v.namespace = $1 AND v.owner = $2 AND v.version = $3`

// moment is that of the revision which the transaction has raised.
const moment = "(SELECT timestamptz 'epoch' + revision * interval '1 microsecond' FROM pawl.namespace WHERE id = $1)"

// What enters a version that comes, or comes back: it is seen now, and declares
// nothing of before.
const (
	putVersion = `INSERT INTO pawl.code_version (namespace, owner, version, seen)
VALUES ($1, $2, $3, ` + moment + `)
ON CONFLICT (namespace, owner, version) DO UPDATE SET seen = excluded.seen, ended = NULL`

	forgetDeclared = `DELETE FROM pawl.declaration
WHERE namespace = $1 AND owner = $2 AND version = $3`
)

// declare enters what a version declares. The time since when the owner holds a
// name passes on from its live versions.
//
//   - declaration_pkey finds what they declare of a name, code_version_live which live.
const declare = `INSERT INTO pawl.declaration (namespace, owner, kind, name, version, value, since)
SELECT $1, $2, e.kind, e.name, $3, e.value, coalesce(
	(
		SELECT min(d.since)
		FROM pawl.declaration AS d
		JOIN pawl.code_version AS v ON v.namespace = d.namespace AND v.owner = d.owner AND v.version = d.version
		WHERE d.namespace = $1 AND d.owner = $2 AND d.kind = e.kind AND d.name = e.name AND v.ended IS NULL
	),
	` + moment + `
)
FROM unnest($4::text[], $5::text[], $6::bytea[]) AS e (kind, name, value)
ORDER BY e.kind, e.name
ON CONFLICT (namespace, owner, kind, name, version) DO UPDATE SET value = excluded.value`

// Declare enters the version of a worker whose row the transaction has written, and
// what it declares (store.Worker.FormDeclares). It answers whether anything changed:
// this is the first worker of its version, or something is declared anew.
func (r *Room) Declare(ctx context.Context, t *pg.Transaction, w *store.Worker, declares []store.Declaration) (changed bool, err error) {
	if w.Owner == "" {
		return false, nil
	}
	live, known := false, map[store.Setting]string{}
	of := []any{r.pg.Namespace, w.Owner, w.Version}
	err = t.Run(ctx, r.lock(), &pg.Statement{Text: versionNow, Args: of, Each: func(scan pg.Scan) error {
		var kind, name *string
		var value []byte
		err := scan(&live, &kind, &name, &value)
		if err == nil && kind != nil {
			known[store.Setting{Kind: store.SettingKind(*kind), Name: *name}] = string(value)
		}
		return err
	}})
	if err != nil {
		return false, err
	}
	steps := []*pg.Statement{r.raise()}
	if !live {
		clear(known)
		steps = append(steps, &pg.Statement{Text: forgetDeclared, Args: of}, &pg.Statement{Text: putVersion, Args: of})
	}
	var kinds, names []string
	var values [][]byte
	for _, d := range declares {
		if value, same := known[d.Setting]; !same || value != string(d.Value) {
			kinds, names, values = append(kinds, string(d.Kind)), append(names, d.Name), append(values, d.Value)
		}
	}
	if live && len(names) == 0 {
		return false, nil
	}
	if len(names) > 0 {
		steps = append(steps, &pg.Statement{Text: declare, Args: append(of, kinds, names, values)})
	}
	return true, t.Run(ctx, steps...)
}

// Orphaned is a part of other statements: it finds a version that is live and has no
// live worker.
//
//   - code_version_live lists those that are live, worker_version finds a worker of each.
const Orphaned = `SELECT
	FROM pawl.code_version AS v
	WHERE v.namespace = $1
		AND v.ended IS NULL
		AND NOT EXISTS (
			SELECT
			FROM pawl.worker AS w
			WHERE w.namespace = $1 AND w.owner = v.owner AND w.version = v.version AND w.lost IS NULL AND w.owner <> ''
		)`

// endVersions ends the versions whose last live worker is gone, with what they
// declare, and raises the revision where there are any. It comes after lockRevision, in a statement of its
// own: of two workers that leave at once the second to come here sees that both have
// left, and nobody registers in between.
//
//   - code_version_live and worker_version as above; declaration_pkey finds what their
//     owners declare; namespace_pkey.
const endVersions = `WITH over AS (
	UPDATE pawl.code_version AS v
	SET ended = {now}
	WHERE v.namespace = $1
		AND v.ended IS NULL
		AND NOT EXISTS (
			SELECT
			FROM pawl.worker AS w
			WHERE w.namespace = $1 AND w.owner = v.owner AND w.version = v.version AND w.lost IS NULL AND w.owner <> ''
		)
	RETURNING v.owner, v.version
), undeclared AS (
	DELETE FROM pawl.declaration AS d
	USING over
	WHERE d.namespace = $1 AND d.owner = over.owner AND d.version = over.version
)
UPDATE pawl.namespace
SET revision = greatest((extract(epoch FROM {now}) * 1000000)::bigint, revision + 1)
WHERE id = $1 AND EXISTS (SELECT FROM over)`

// EndSteps end what was declared only by workers that are gone, in the transaction in
// which they go and behind it. The last statement has hits where something ended.
func (r *Room) EndSteps() []*pg.Statement {
	return []*pg.Statement{r.lock(), {Text: endVersions, Args: []any{r.pg.Namespace}}}
}
