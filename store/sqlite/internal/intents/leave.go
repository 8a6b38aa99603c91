package intents

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// By pawl_intent_number, the last one.
const lastNumber = `SELECT coalesce(max(number), 0)
	FROM pawl_intent
	WHERE namespace = ?`

const leaveIntent = `INSERT INTO pawl_intent (namespace, id, number, kind, created, subject, payload)
	VALUES (?, ?, ?, ?, ?, ?, ?)`

// Leave writes intents into a transaction, in the order given. Numbers of those
// that are gone may come again: only the order of those that are there counts.
func Leave(in *lite.Session, list []store.Intent) error {
	number, err := in.On(lastNumber).One()
	if err != nil {
		return err
	}
	for i := range list {
		number++
		err := in.On(leaveIntent).Blob(list[i].ID[:]).Int(number).Int(int64(list[i].Kind)).Int(in.Now).
			Text(list[i].Subject).BlobOrNull(list[i].Payload).Exec()
		if err != nil {
			return err
		}
	}
	return nil
}
