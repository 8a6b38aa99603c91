package intents

import (
	"context"
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// want is which intents a transaction is to apply.
type want struct {
	kinds []store.IntentKind
	limit int
	from  string     // of transactions from this one on
	named [][16]byte // these, if not nil
}

// Apply applies up to limit intents of the kinds this build knows. It looks at all
// of them.
func (r *Room) Apply(ctx context.Context, limit int) (store.IntentsReply, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return store.IntentsReply{}, err
	}
	defer r.pg.Leave()
	return r.apply(ctx, want{kinds: r.Known(), limit: limit, from: "0"})
}

// apply applies what is wanted in one transaction. When that fails for a reason of
// theirs, it goes on with each half, so that one bad intent costs itself only (P8).
func (r *Room) apply(ctx context.Context, w want) (reply store.IntentsReply, err error) {
	if len(w.kinds) == 0 {
		return reply, nil
	}
	var held taken
	var cause error // why these cannot be applied
	err = r.pg.Retry(ctx, "apply intents", pg.Always, func(ctx context.Context, _ bool) error {
		var done store.IntentsReply
		held, cause = taken{}, nil
		err := r.pg.Transact(ctx, r.pg.Upkeep, pg.SharedLimits, func(t *pg.Transaction) (err error) {
			if held, err = r.take(ctx, t, w); err != nil || len(held.list) == 0 {
				return err
			}
			first, err := r.first(ctx, t, held.list)
			if err != nil {
				return err
			}
			free, behind := store.IntentsInOrder(held.list, first)
			left, err := r.putBehind(ctx, t, behind)
			if err != nil {
				return err
			}
			if err := r.applyAll(ctx, t, w.kinds, free); err != nil {
				return err
			}
			full := w.named == nil && (len(held.list) >= w.limit || held.all > int64(len(held.list)))
			done = store.IntentsReply{Applied: len(free), More: left || full}
			return r.remove(ctx, t, free)
		})
		if err != nil && len(held.list) > 0 && ours(ctx, err) {
			cause = err
			return nil
		}
		if err == nil {
			reply = done
		}
		return err
	})
	switch {
	case err != nil:
		return store.IntentsReply{}, err
	case cause == nil:
		if w.named == nil && !reply.More {
			r.reached(held.xmin)
		}
		return reply, nil
	case len(held.list) == 1:
		return r.putOff(ctx, held, cause)
	}
	ids := make([][16]byte, len(held.list))
	for i := range held.list {
		ids[i] = held.list[i].ID
	}
	for _, half := range [][][16]byte{ids[:len(ids)/2], ids[len(ids)/2:]} {
		part, err := r.apply(ctx, want{kinds: w.kinds, named: half})
		reply.Applied += part.Applied
		reply.PutOff = append(reply.PutOff, part.PutOff...)
		if err != nil {
			return reply, err
		}
	}
	reply.More = w.named == nil // there may be others behind them
	return reply, nil
}

// ours reports whether an error is that of the intents: not of the connection or
// the caller, which pass.
func ours(ctx context.Context, err error) bool {
	f := pg.FaultOf(err)
	return ctx.Err() == nil && (!f.Passing || f.Blocked)
}

// applyAll has every kind lock before any applies.
func (r *Room) applyAll(ctx context.Context, in pg.Session, kinds []store.IntentKind, list []store.Intent) error {
	parts := store.IntentsByKind(kinds, list)
	for _, step := range []func(Applier, context.Context, pg.Session, []store.Intent) error{Applier.Lock, Applier.Apply} {
		for i, part := range parts {
			if len(part) == 0 {
				continue
			}
			if err := guard(func() error { return step(r.applier(kinds[i]), ctx, in, part) }); err != nil {
				return fmt.Errorf("intents of kind %d: %w", kinds[i], err)
			}
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

// removeIntents removes what was applied.
//
//   - intent_pkey finds them.
const removeIntents = `DELETE FROM pawl.intent AS i
USING (SELECT $1::int AS namespace, e.id FROM unnest($2::uuid[]) AS e (id) OFFSET 0) AS e
WHERE i.namespace = e.namespace AND i.id = e.id`

// remove removes intents with the transaction that has applied them: whoever comes
// next, also after a lost answer, finds them gone or not applied.
func (r *Room) remove(ctx context.Context, in pg.Session, list []store.Intent) error {
	if len(list) == 0 {
		return nil
	}
	ids := make([][16]byte, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	gone := &pg.Statement{Text: removeIntents, Args: []any{r.pg.Namespace, ids}}
	if err := in.Run(ctx, gone); err != nil {
		return err
	}
	if gone.Hits != int64(len(ids)) {
		return fmt.Errorf("%d of %d intents were there to be removed: %w", gone.Hits, len(ids), job.ErrNotFound)
	}
	return nil
}
