package intents

import (
	"errors"
	"fmt"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// By primary key.
const (
	removeIntent = `DELETE FROM pawl_intent
	WHERE namespace = ? AND id = ?`
	putBehind = `UPDATE pawl_intent
	SET due = ?
	WHERE namespace = ? AND id = ?`
	putOffIntent = `UPDATE pawl_intent
	SET failures = ?, due = ?, error = ?
	WHERE namespace = ? AND id = ?`
)

// Apply applies up to limit intents in the transaction. One that cannot be applied
// is found by halving, and put off; it costs itself only (P8).
func (a *Appliers) Apply(in *lite.Session, limit int) (reply store.IntentsReply, err error) {
	kinds := a.Known()
	rows, more, err := take(in, kinds, limit)
	if err != nil {
		return reply, err
	}
	reply.More = more
	return reply, a.apply(in, kinds, rows, &reply)
}

func (a *Appliers) apply(in *lite.Session, kinds []store.IntentKind, rows []row, reply *store.IntentsReply) error {
	if len(rows) == 0 {
		return nil
	}
	held := make([]store.Intent, len(rows))
	for i := range rows {
		held[i] = rows[i].Intent
	}
	places, err := first(in, held)
	if err != nil {
		return err
	}
	free, behind := store.IntentsInOrder(held, places)
	for id, until := range behind {
		if until.IsZero() {
			reply.More = true // behind one that did not fit: it is next
			continue
		}
		if err := in.Query(putBehind).Int(lite.Micros(until)).Int(in.Namespace).Blob(id[:]).Exec(); err != nil {
			return err
		}
	}
	cause, err := a.attempt(in, kinds, free)
	switch {
	case err != nil:
		return err
	case cause == nil:
		reply.Applied += len(free)
		return nil
	case len(rows) == 1:
		return putOff(in, &rows[0], cause, reply)
	}
	reply.More = true // there may be others behind them
	if err := a.apply(in, kinds, rows[:len(rows)/2], reply); err != nil {
		return err
	}
	return a.apply(in, kinds, rows[len(rows)/2:], reply)
}

// attempt applies and removes intents, or leaves no trace and says why not. The
// error is one that ends the whole transaction.
func (a *Appliers) attempt(in *lite.Session, kinds []store.IntentKind, list []store.Intent) (cause, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	if err := in.Exec("SAVEPOINT pawl_intents"); err != nil {
		return nil, err
	}
	if cause = a.applyAll(in, kinds, list); cause == nil {
		return nil, in.Exec("RELEASE pawl_intents")
	}
	if in.Raw.GetAutocommit() { // SQLite has ended the transaction
		return nil, cause
	}
	return cause, errors.Join(in.Exec("ROLLBACK TO pawl_intents"), in.Exec("RELEASE pawl_intents"))
}

func (a *Appliers) applyAll(in *lite.Session, kinds []store.IntentKind, list []store.Intent) error {
	for i, part := range store.IntentsByKind(kinds, list) {
		if len(part) == 0 {
			continue
		}
		if err := guard(func() error { return a.of(kinds[i])(in, part) }); err != nil {
			return fmt.Errorf("intents of kind %d: %w", kinds[i], err)
		}
	}
	for i := range list {
		if err := in.On(removeIntent).Blob(list[i].ID[:]).Exec(); err != nil {
			return err
		}
	}
	return nil
}

// guard makes a panic of an applier its error.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

// maxError bounds the text that is kept of a failure.
const maxError = 1000

func putOff(in *lite.Session, r *row, cause error, reply *store.IntentsReply) error {
	text := cause.Error()
	text = text[:min(len(text), maxError)]
	failures := r.failures + 1
	until := in.Now + store.IntentPause(failures).Microseconds()
	reply.PutOff = append(reply.PutOff, store.IntentInfo{
		Intent: r.Intent, Created: lite.TimeOf(r.created), Failures: failures, Until: lite.TimeOf(until), Error: text, Known: true,
	})
	return in.Query(putOffIntent).Int(int64(failures)).Int(until).Text(text).Int(in.Namespace).Blob(r.ID[:]).Exec()
}
