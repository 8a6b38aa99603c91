package sqlite

import (
	"context"
	"encoding/json"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
)

// Settings reads everything that is declared and set, in one snapshot.
func (s *Store) Settings(ctx context.Context) (store.SettingsReply, error) {
	return view(ctx, s, settings.Read)
}

// Override puts an operator's fields over what is set for one name. Other processes
// hear of it as of every commit: the file has changed.
func (s *Store) Override(ctx context.Context, set store.Setting, value json.RawMessage, op store.Operator) error {
	return s.write(ctx, 1, func(t *jobs.Transition) error { return settings.Override(&t.Session, set, value, op) })
}

// Record writes an audit entry by itself.
func (s *Store) Record(ctx context.Context, op store.Operator, action, target, detail string) error {
	return s.write(ctx, 1, func(t *jobs.Transition) error { return settings.Audit(&t.Session, op, action, target, detail) })
}

// SetPaused stops or allows claims: from a queue, of a kind, or all of them.
func (s *Store) SetPaused(ctx context.Context, p store.Pause, paused bool, op store.Operator) error {
	if err := p.Check(); err != nil {
		return err
	}
	return s.write(ctx, 1, func(t *jobs.Transition) error { return settings.SetPaused(&t.Session, p, paused, op) })
}
