package settings

import (
	"encoding/json"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// What reads and writes overrides, by primary key.
const (
	valueOf = `SELECT value
	FROM pawl_override
	WHERE namespace = ? AND kind = ? AND name = ?`

	putOverride = `INSERT OR REPLACE INTO pawl_override (namespace, kind, name, value, by, note, since)
	VALUES (?, ?, ?, ?, ?, ?, ?)`

	dropOverride = `DELETE FROM pawl_override
	WHERE namespace = ? AND kind = ? AND name = ?`

	allOverrides = `SELECT kind, name, value, by, note, since
	FROM pawl_override
	WHERE namespace = ?
	ORDER BY kind, name`
)

// Override puts an operator's fields over what is set for a name.
func Override(t *lite.Session, s store.Setting, value json.RawMessage, op store.Operator) error {
	var before json.RawMessage
	q := t.On(valueOf).Text(string(s.Kind)).Text(s.Name)
	if q.Step() {
		before = json.RawMessage(q.ColText(0))
	}
	if err := q.Done(); err != nil {
		return err
	}
	after, err := s.Patch(before, value)
	if err != nil {
		return err
	}
	switch {
	case after == nil && before == nil || string(after) == string(before):
	case after == nil:
		err = change(t, t.On(dropOverride).Text(string(s.Kind)).Text(s.Name))
	default:
		err = change(t, t.On(putOverride).Text(string(s.Kind)).Text(s.Name).
			Text(string(after)).Text(op.Name).Text(op.Note).Int(t.Now))
	}
	if err != nil {
		return err
	}
	action, target, detail := store.OverrideAction(s, value, before, after)
	return Audit(t, op, action, target, detail)
}

// change writes what is set, and raises the revision with it.
func change(t *lite.Session, q *lite.Query) error {
	if err := q.Exec(); err != nil {
		return err
	}
	_, err := raise(t)
	return err
}

// overrides lists what operators have set.
func overrides(c *lite.Snapshot) (list []store.Override, err error) {
	q := c.On(allOverrides)
	for q.Step() {
		list = append(list, store.Override{
			Setting: store.Setting{Kind: store.SettingKind(q.ColText(0)), Name: q.ColText(1)},
			Value:   json.RawMessage(q.ColText(2)), By: q.ColText(3), Note: q.ColText(4), Since: lite.TimeOf(q.ColInt(5)),
		})
	}
	return list, q.Done()
}
