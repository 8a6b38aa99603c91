//go:build fault || soak

package fault

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// faultKind is the kind of intents of these tests. One that is applied adds a row of run 1 for its number, and the
// transaction that left it one of run 0.
const faultKind store.IntentKind = 30_005

// intender is a store whose intents a test applies.
type intender interface {
	store.Intents
	HandleIntents(kind store.IntentKind, apply func(exec func(text string, args ...any) error, list []store.Intent) error)
}

func intending(e *pawl.Engine) intender {
	s := e.Store().(intender)
	s.HandleIntents(faultKind, func(exec func(text string, args ...any) error, list []store.Intent) error {
		for _, i := range list {
			if err := exec("insert into effect (n, run) values ($1, 1)", int(binary.BigEndian.Uint64(i.Payload))); err != nil {
				return err
			}
		}
		return nil
	})
	return s
}

// intend leaves intents in one transaction after the other, and says so; its store applies them meanwhile.
func intend(ctx context.Context, e *pawl.Engine) error {
	intending(e)
	for ctx.Err() == nil {
		err := e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
			var list []store.Intent
			for range 5 {
				n := rand.Uint64() >> 2
				if _, err := tx.Exec(ctx, "insert into effect (n, run) values ($1, 0)", int64(n)); err != nil {
					return err
				}
				list = append(list, store.Intent{
					ID: job.NewID(), Kind: faultKind, Subject: fmt.Sprint(n % 7), Payload: binary.BigEndian.AppendUint64(nil, n),
				})
			}
			return tx.Store().(store.IntendingTx).Intend(ctx, list)
		})
		if err != nil && ctx.Err() == nil {
			say("failed", err)
			continue
		}
		say("left")
	}
	return nil
}
