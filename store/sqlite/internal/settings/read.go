package settings

import (
	"encoding/json"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// What lists versions and what the live ones declare, by primary keys.
const (
	allVersions = `SELECT owner, version, seen, ended IS NULL
	FROM pawl_code_version
	WHERE namespace = ?
	ORDER BY owner, version`

	liveDeclarations = `SELECT d.kind, d.name, d.value, d.owner, d.version, d.since, v.seen
	FROM pawl_declaration AS d
	JOIN pawl_code_version AS v ON v.namespace = d.namespace AND v.owner = d.owner AND v.version = d.version
	WHERE d.namespace = ? AND v.ended IS NULL
	ORDER BY d.owner, d.kind, d.name, d.version`
)

// Read reads everything that is declared and set.
func Read(c *lite.Snapshot) (r store.SettingsReply, err error) {
	if r.Revision, err = Revision(c); err != nil {
		return r, err
	}
	if r.Overrides, err = overrides(c); err != nil {
		return r, err
	}
	if r.Pauses, err = Pauses(c); err != nil {
		return r, err
	}
	q := c.On(allVersions)
	for q.Step() {
		r.Versions = append(r.Versions, store.VersionInfo{
			Owner: q.ColText(0), Version: q.ColText(1), Seen: lite.TimeOf(q.ColInt(2)), Live: q.ColBool(3),
		})
	}
	if err := q.Done(); err != nil {
		return r, err
	}
	q = c.On(liveDeclarations)
	for q.Step() {
		d := store.Declared{Owner: q.ColText(3), Version: q.ColText(4), Since: lite.TimeOf(q.ColInt(5)), Seen: lite.TimeOf(q.ColInt(6))}
		d.Setting = store.Setting{Kind: store.SettingKind(q.ColText(0)), Name: q.ColText(1)}
		d.Value = json.RawMessage(q.ColText(2))
		r.Declared = append(r.Declared, d)
	}
	return r, q.Done()
}
