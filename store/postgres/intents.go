package postgres

import (
	"context"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

var (
	_ store.Intents     = (*Store)(nil)
	_ store.IntendingTx = (*within)(nil)
	_ store.IntendingTx = (*ownTx)(nil)
)

// ApplyIntents applies up to limit intents that users' transactions have left.
func (s *Store) ApplyIntents(ctx context.Context, limit int) (store.IntentsReply, error) {
	return s.intents.Apply(ctx, limit)
}

// WaitingIntents lists intents that have not been applied.
func (s *Store) WaitingIntents(ctx context.Context, limit int) ([]store.IntentInfo, error) {
	return s.intents.Waiting(ctx, limit)
}

// Intend leaves intents with the transaction. Its commit cannot be seen from here,
// so this process looks for them from time to time. Of a kind that only others
// apply they are told soon.
func (w *within) Intend(ctx context.Context, list []store.Intent) error {
	if err := w.intend(ctx, list); err != nil {
		return err
	}
	w.s.intents.Left()
	if w.s.intents.Foreign(list) {
		w.s.hints.Notifier.Left(store.Hint{Subject: store.SubjectIntent})
	}
	return nil
}

func (w *within) intend(ctx context.Context, list []store.Intent) error {
	if err := w.enter(ctx); err != nil {
		return err
	}
	defer w.s.pg.Leave()
	return pg.Explain("intend", w.foreign(w.s.intents.Leave(ctx, w.in, list)))
}

// Intend leaves intents with the transaction; they are applied after its commit,
// which can be seen.
func (o *ownTx) Intend(ctx context.Context, list []store.Intent) error {
	if err := o.intend(ctx, list); err != nil {
		return err
	}
	o.intended = true
	o.foreignIntents = o.foreignIntents || o.s.intents.Foreign(list)
	return nil
}

// HandleIntents has intents of a kind applied by a function, whose statements run in
// the transaction that removes them. It is there for storetest; nothing else may
// call it.
func (s *Store) HandleIntents(kind store.IntentKind, apply func(exec func(text string, args ...any) error, list []store.Intent) error) {
	s.intents.Register(kind, suiteApplier(apply))
}

type suiteApplier func(exec func(text string, args ...any) error, list []store.Intent) error

func (suiteApplier) Lock(context.Context, pg.Session, []store.Intent) error { return nil }

func (a suiteApplier) Apply(ctx context.Context, in pg.Session, list []store.Intent) error {
	return a(func(text string, args ...any) error { return in.Run(ctx, &pg.Statement{Text: text, Args: args}) }, list)
}
