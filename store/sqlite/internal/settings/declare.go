package settings

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// What enters versions and what they declare, by primary keys.
const (
	isLive = `SELECT 1
	FROM pawl_code_version
	WHERE namespace = ? AND owner = ? AND version = ? AND ended IS NULL`

	putVersion = `INSERT OR REPLACE INTO pawl_code_version (namespace, owner, version, seen)
	VALUES (?, ?, ?, ?)`

	// The owner's part of the key is read: a version has few rows beside others.
	forgetDeclared = `DELETE FROM pawl_declaration
	WHERE namespace = ? AND owner = ? AND version = ?`

	isDeclared = `SELECT 1
	FROM pawl_declaration
	WHERE namespace = ? AND owner = ? AND kind = ? AND name = ? AND version = ? AND value = ?`

	// The time since when the owner holds the name passes on from its live versions.
	declare = `INSERT INTO pawl_declaration (namespace, owner, kind, name, version, value, since)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, coalesce((
		SELECT min(d.since)
		FROM pawl_declaration AS d
		JOIN pawl_code_version AS v ON v.namespace = d.namespace AND v.owner = d.owner AND v.version = d.version
		WHERE d.namespace = ?1 AND d.owner = ?2 AND d.kind = ?3 AND d.name = ?4 AND v.ended IS NULL), ?7))
	ON CONFLICT DO UPDATE
	SET value = excluded.value`
)

// Declare enters the version of a worker that registers, and what it declares
// (store.Worker.FormDeclares). The revision changes with the first worker of a
// version, and with what is declared anew.
func Declare(t *lite.Session, w *store.Worker, declares []store.Declaration) error {
	if w.Owner == "" {
		return nil
	}
	live, err := t.On(isLive).Text(w.Owner).Text(w.Version).Found()
	if err != nil {
		return err
	}
	changed := declares
	if live {
		if changed, err = undeclared(t, w, declares); err != nil || len(changed) == 0 {
			return err
		}
	}
	moment, err := raise(t)
	if err != nil {
		return err
	}
	if !live {
		if err := t.On(forgetDeclared).Text(w.Owner).Text(w.Version).Exec(); err != nil {
			return err
		}
		if err := t.On(putVersion).Text(w.Owner).Text(w.Version).Int(moment).Exec(); err != nil {
			return err
		}
	}
	for _, d := range changed {
		err := t.On(declare).Text(w.Owner).Text(string(d.Kind)).Text(d.Name).Text(w.Version).Text(string(d.Value)).Int(moment).Exec()
		if err != nil {
			return err
		}
	}
	return nil
}

// undeclared are those that the worker's version does not declare so yet.
func undeclared(t *lite.Session, w *store.Worker, declares []store.Declaration) (list []store.Declaration, err error) {
	for _, d := range declares {
		known, err := t.On(isDeclared).Text(w.Owner).Text(string(d.Kind)).Text(d.Name).Text(w.Version).Text(string(d.Value)).Found()
		if err != nil {
			return nil, err
		}
		if !known {
			list = append(list, d)
		}
	}
	return list, nil
}

// What ends a version.
const (
	// pawl_code_version_live lists those that are live, pawl_worker_version tells
	// whether one has a live worker.
	orphaned = `SELECT owner, version
	FROM pawl_code_version AS v INDEXED BY pawl_code_version_live
	WHERE v.namespace = ? AND v.ended IS NULL
		AND NOT EXISTS (
			SELECT 1
			FROM pawl_worker AS w INDEXED BY pawl_worker_version
			WHERE w.namespace = v.namespace AND w.owner = v.owner AND w.version = v.version
				AND w.lost IS NULL AND w.owner <> '')`

	// By primary key.
	endVersion = `UPDATE pawl_code_version
	SET ended = ?
	WHERE namespace = ? AND owner = ? AND version = ?`
)

// EndVersions ends what was declared only by workers that are gone, in the commit in
// which they go.
func EndVersions(t *lite.Session) error {
	type version struct{ owner, name string }
	var over []version
	q := t.On(orphaned)
	for q.Step() {
		over = append(over, version{q.ColText(0), q.ColText(1)})
	}
	if err := q.Done(); err != nil || len(over) == 0 {
		return err
	}
	for _, v := range over {
		if err := t.Query(endVersion).Int(t.Now).Int(t.Namespace).Text(v.owner).Text(v.name).Exec(); err != nil {
			return err
		}
		if err := t.On(forgetDeclared).Text(v.owner).Text(v.name).Exec(); err != nil {
			return err
		}
	}
	_, err := raise(t)
	return err
}
