package settings

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// readAll reads everything that is declared and set in one statement, so that it is
// of one snapshot with its revision.
//
//   - code_version_pkey, declaration_pkey, override_pkey and pause_pkey list the rows.
const readAll = `SELECT 0 AS what, '' AS kind, '' AS name, NULL::bytea AS value, '' AS a, '' AS b,
	NULL::timestamptz AS since, NULL::timestamptz AS seen, ` + Revision + ` AS n
UNION ALL
SELECT 1, '', '', NULL, owner, version, NULL, seen, (ended IS NULL)::int
FROM pawl.code_version
WHERE namespace = $1
UNION ALL
SELECT 2, d.kind, d.name, d.value, d.owner, d.version, d.since, v.seen, 0
FROM pawl.declaration AS d
JOIN pawl.code_version AS v ON v.namespace = d.namespace AND v.owner = d.owner AND v.version = d.version
WHERE d.namespace = $1 AND v.ended IS NULL
UNION ALL
SELECT 3, kind, name, value, by, note, since, NULL, 0
FROM pawl.override
WHERE namespace = $1
UNION ALL
SELECT 4, '', name, NULL, by, note, since, NULL, scope
FROM pawl.pause
WHERE namespace = $1`

// Settings reads everything that is declared and set, with its revision.
func (r *Room) Settings(ctx context.Context) (reply store.SettingsReply, err error) {
	err = r.pg.Read(ctx, func() []*pg.Statement {
		reply = store.SettingsReply{}
		return []*pg.Statement{{Text: readAll, Args: []any{r.pg.Namespace}, Each: func(scan pg.Scan) error { return read(scan, &reply) }}}
	})
	store.SortSettings(&reply)
	return reply, err
}

// read takes over one row.
func read(scan pg.Scan, reply *store.SettingsReply) error {
	var what int
	var s store.Setting
	var value []byte
	var a, b string
	var since, seen *time.Time
	var n int64
	if err := scan(&what, &s.Kind, &s.Name, &value, &a, &b, &since, &seen, &n); err != nil {
		return err
	}
	switch what {
	case 0:
		reply.Revision = n
	case 1:
		reply.Versions = append(reply.Versions, store.VersionInfo{Owner: a, Version: b, Seen: seen.UTC(), Live: n == 1})
	case 2:
		reply.Declared = append(reply.Declared, store.Declared{
			Declaration: store.Declaration{Setting: s, Value: json.RawMessage(value)}, Owner: a, Version: b, Since: since.UTC(), Seen: seen.UTC(),
		})
	case 3:
		reply.Overrides = append(reply.Overrides, store.Override{Setting: s, Value: json.RawMessage(value), By: a, Note: b, Since: since.UTC()})
	case 4:
		reply.Pauses = append(reply.Pauses, store.Pause{Scope: job.PauseScope(n), Name: s.Name, Since: since.UTC(), By: a, Note: b})
	}
	return nil
}
