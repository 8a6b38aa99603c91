package postgres

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Whichever answer is lost, each intent is applied once.
func TestJ32_LostAnswers_Intents(t *testing.T) {
	// leave commits intents past the proxy, in a store that does not know their kind.
	leave := func(l *lossy, list []store.Intent) {
		l.t.Helper()
		if l.round == 1 {
			makeCounted(l.t, l.pool)
			countIntents(l.s)
			countIntents(l.hasty)
		}
		tx, err := l.direct.Begin(l.t.Context())
		l.surely(err)
		l.surely(errors.Join(tx.(store.IntendingTx).Intend(l.t.Context(), list), tx.Commit(l.t.Context())))
	}
	once := func(l *lossy, list []store.Intent) {
		l.t.Helper()
		times := applied(l.t, l.pool)
		for _, i := range list {
			if n := times[i.ID.String()]; n != 1 {
				l.t.Errorf("intent %s was applied %d times", i.ID, n)
			}
		}
	}
	loseEach(t,
		lostCase{name: "apply", silent: true, play: func(l *lossy) (func(context.Context) error, func(error)) {
			list := counted(5)
			leave(l, list)
			return func(ctx context.Context) error { _, err := l.s.ApplyIntents(ctx, 3); return err }, func(err error) {
				l.surely(err)
				settleIntents(l.t, l.s)
				once(l, list)
			}
		}},
		lostCase{name: "put off", play: func(l *lossy) (func(context.Context) error, func(error)) {
			list := counted(4)
			list[2].Subject, list[2].Payload = l.queue, []byte("bad")
			leave(l, list)
			return func(ctx context.Context) error { _, err := l.s.ApplyIntents(ctx, 4); return err }, func(err error) {
				l.surely(err)
				for more := true; more; { // a late commit may have had some of them
					reply, err := l.s.ApplyIntents(l.t.Context(), 4)
					l.surely(err)
					more = reply.More
				}
				once(l, append(list[:2:2], list[3]))
				waiting, err := l.s.WaitingIntents(l.t.Context(), 10_000)
				l.surely(err)
				for _, w := range waiting {
					if w.ID == list[2].ID && w.Failures < 1 {
						l.t.Errorf("the bad one waits: %s", w.Why())
					}
				}
				if _, err := l.pool.Exec(l.t.Context(), l.direct.pg.SQL("DELETE FROM pawl.intent")); err != nil {
					l.t.Fatal(err)
				}
			}
		}},
		lostCase{name: "leave", play: func(l *lossy) (func(context.Context) error, func(error)) {
			list := counted(3)
			call := func(ctx context.Context) error {
				tx, err := l.s.Begin(ctx)
				if err != nil {
					return err
				}
				return errors.Join(tx.(store.IntendingTx).Intend(ctx, list), tx.Commit(ctx))
			}
			return call, func(err error) {
				if err != nil && !errors.Is(err, job.ErrOutcomeUnknown) {
					return // nothing of it: its connection broke before the commit
				}
				settleIntents(l.t, l.s)
				if times := applied(l.t, l.pool); err == nil || times[list[0].ID.String()] > 0 {
					once(l, list)
				}
			}
		}},
	)
}
