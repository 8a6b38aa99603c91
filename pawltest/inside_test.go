package pawltest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres"
	"github.com/pawlwork/pawl/store/sqlite"
)

var errUndo = errors.New("undo")

// placeOrder is code under test that hands in a job with its caller's transaction.
func placeOrder(ctx context.Context, tx pawl.Enqueuer, order int) error {
	_, err := tx.Enqueue(ctx, ship{order}, pawl.Queue("ships"))
	return err
}

func TestU10_InsideSeesWhatATransactionHolds(t *testing.T) {
	test := func(t *testing.T, e *pawltest.Engine) {
		e.Enqueue(ship{1})
		err := e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
			e.Inside(tx).RequireNotEnqueued(ship{7})
			if err := placeOrder(ctx, tx, 7); err != nil {
				return err
			}
			if d := e.Inside(tx).RequireEnqueued(ship{7}); d.Queue != "ships" {
				t.Errorf("it went to queue %s", d.Queue)
			}
			e.Inside(tx).RequireEnqueued(ship{1}) // committed before
			return errUndo
		})
		if !errors.Is(err, errUndo) {
			t.Fatal(err)
		}
		e.RequireNotEnqueued(ship{7})
		e.RequireEnqueued(ship{1})
		err = e.Tx(t.Context(), func(_ context.Context, tx *pawl.Tx) error {
			e.Inside(tx).RequireNotEnqueued(ship{7}) // rolled back
			return errUndo
		})
		if !errors.Is(err, errUndo) {
			t.Fatal(err)
		}
	}
	t.Run("virtual", func(t *testing.T) { pawltest.Run(t, nil, test) })
	onEachStore(t, func(t *testing.T, opener store.Opener) { pawltest.Real(t, opener, nil, test) })
}

// Two looks at the caller's own transaction, which the engine did not open, and a duplicate of a unique job, which is none.
func TestU10_InsideSeesTheCallersOwnTransaction(t *testing.T) {
	unique := pawl.Unique(pawl.ByKey("seven"))
	test := func(t *testing.T, e *pawltest.Engine, within func() *pawl.Tx, undo func()) {
		e.Inside(within()).RequireNotEnqueued(ship{7})
		for _, order := range []int{7, 8} {
			if _, err := within().Enqueue(t.Context(), ship{order}, unique); err != nil {
				t.Fatal(err)
			}
		}
		e.Inside(within()).RequireEnqueued(ship{7})
		e.Inside(within()).RequireNotEnqueued(ship{8})
		undo()
		e.RequireNotEnqueued(ship{7})
	}
	t.Run("sqlite", func(t *testing.T) {
		pawltest.Real(t, sqlite.Memory(), nil, func(t *testing.T, e *pawltest.Engine) {
			tx, err := e.DB().BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			test(t, e, func() *pawl.Tx { return sqlite.Within(e.Engine, tx) }, func() { _ = tx.Rollback() })
		})
	})
	t.Run("postgres by database/sql", func(t *testing.T) {
		p, schema := pool(t)
		pawltest.Real(t, postgres.Pool(p, postgres.Options{Schema: schema}), nil, func(t *testing.T, e *pawltest.Engine) {
			tx, err := e.DB().BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			test(t, e, func() *pawl.Tx { return postgres.WithinSQL(e.Engine, tx) }, func() { _ = tx.Rollback() })
		})
	})
	t.Run("postgres", func(t *testing.T) {
		p, schema := pool(t)
		pawltest.Real(t, postgres.Pool(p, postgres.Options{Schema: schema}), nil, func(t *testing.T, e *pawltest.Engine) {
			tx, err := p.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			test(t, e, func() *pawl.Tx { return postgres.Within(e.Engine, tx) }, func() { _ = tx.Rollback(t.Context()) })
		})
	})
}
