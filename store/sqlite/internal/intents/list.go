package intents

import (
	"slices"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// By primary key, in its order.
const listIntents = `SELECT id, kind, failures, created, due, subject, payload, coalesce(error, '')
	FROM pawl_intent
	WHERE namespace = ? AND id > x''
	ORDER BY id
	LIMIT ?`

// Waiting lists intents that have not been applied, of every kind.
func (a *Appliers) Waiting(c *lite.Snapshot, limit int) (list []store.IntentInfo, err error) {
	known := a.Known()
	q := c.On(listIntents).Int(int64(limit))
	for q.Step() {
		i := store.IntentInfo{
			Intent:   store.Intent{ID: q.ColID(0), Kind: store.IntentKind(q.ColInt(1)), Subject: q.ColText(5), Payload: q.ColBlob(6)},
			Failures: int(q.ColInt(2)), Created: q.ColTime(3), Until: q.ColTime(4), Error: q.ColText(7),
		}
		i.Known = slices.Contains(known, i.Kind)
		list = append(list, i)
	}
	return list, q.Done()
}

// lookIntents says whether there is something to apply of one kind.
//   - pawl_intent_fresh and pawl_intent_due: a seek for the first.
const lookIntents = `SELECT EXISTS (
		SELECT 1
		FROM pawl_intent INDEXED BY pawl_intent_fresh
		WHERE namespace = ?1 AND kind = ?2 AND due IS NULL
	) OR EXISTS (
		SELECT 1
		FROM pawl_intent INDEXED BY pawl_intent_due
		WHERE namespace = ?1 AND kind = ?2 AND due IS NOT NULL AND due <= ?3
	)`

// Due says whether there is something to apply.
func (a *Appliers) Due(c *lite.Snapshot) (bool, error) {
	for _, kind := range a.Known() {
		due, err := c.On(lookIntents).Int(int64(kind)).Int(c.Clock.Now()).One()
		if err != nil || due != 0 {
			return due != 0, err
		}
	}
	return false, nil
}
