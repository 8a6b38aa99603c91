package pawltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Inside looks into a transaction that has not committed yet: the one of e.Tx, or
// the caller's own.
//
//	e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
//		placeOrder(ctx, tx)
//		e.Inside(tx).RequireEnqueued(Ship{Order: 7})
//		return errors.New("roll back") // leave the database as it was
//	})
//	e.Inside(postgres.Within(e.Engine, pgxTx)).RequireEnqueued(Ship{Order: 7})
func (e *Engine) Inside(tx *pawl.Tx) View { return View{e, tx} }

// View is what a transaction sees; Inside makes it. It is used by the goroutine
// that uses the transaction, before that ends.
type View struct {
	e  *Engine
	tx *pawl.Tx
}

// RequireEnqueued fails the test unless the transaction sees a job with these
// arguments that was handed in through this engine: in this transaction, or in
// one that committed before. It returns what was handed in, the newest of
// several. A duplicate of a unique job is no job.
func (v View) RequireEnqueued(args pawl.Args) job.Draft {
	v.e.t.Helper()
	want := v.e.draft(args)
	found := v.seen(want)
	if len(found) == 0 {
		v.e.t.Fatalf("the transaction sees no job %s %s among %s", want.Kind, want.Args, v.describe(want.Kind))
	}
	return found[len(found)-1]
}

// RequireNotEnqueued fails the test if the transaction sees a job with these
// arguments that was handed in through this engine.
func (v View) RequireNotEnqueued(args pawl.Args) {
	v.e.t.Helper()
	want := v.e.draft(args)
	if found := v.seen(want); len(found) > 0 {
		v.e.t.Fatalf("the transaction sees a job %s %s: %s", want.Kind, want.Args, found[0].ID)
	}
}

// seen are the drafts like this one that the transaction sees as jobs.
func (v View) seen(want job.Draft) []job.Draft {
	v.e.t.Helper()
	return slices.DeleteFunc(v.ofKind(want.Kind), func(d job.Draft) bool { return !bytes.Equal(d.Args, want.Args) })
}

func (v View) ofKind(kind string) []job.Draft {
	v.e.t.Helper()
	if v.tx == nil {
		v.e.t.Fatal(job.Invalid("transaction", "nil", "must be one of this engine"))
	}
	r, ok := v.tx.Store().(store.TxReader)
	if !ok {
		v.e.t.Fatalf("pawltest: the store cannot look into a transaction: %T is no store.TxReader", v.tx.Store())
	}
	drafts := v.e.watch.handedIn(kind)
	ids := make([]job.ID, len(drafts))
	for i, d := range drafts {
		ids[i] = d.ID
	}
	seen, err := r.Seen(v.e.ctx, ids)
	if err != nil {
		v.e.t.Fatalf("pawltest: look into the transaction: %v", err)
	}
	return slices.DeleteFunc(drafts, func(d job.Draft) bool { return !slices.Contains(seen, d.ID) })
}

func (v View) describe(kind string) string {
	v.e.t.Helper()
	var lines []string
	for _, d := range v.ofKind(kind) {
		lines = append(lines, fmt.Sprintf("%s %s", d.Kind, d.Args))
	}
	if len(lines) == 0 {
		return "no jobs"
	}
	return strings.Join(lines, "; ")
}

// recorded is the enqueue hook: it notes what is handed in, after the user's own
// hook has seen it.
func (e *Engine) recorded(next func(context.Context, []job.Draft) error) func(context.Context, []job.Draft) error {
	return func(ctx context.Context, drafts []job.Draft) error {
		if asked, ok := ctx.Value(draftKey{}).(*job.Draft); ok {
			*asked = drafts[0]
			return errDraft
		}
		if next != nil {
			if err := next(ctx, drafts); err != nil {
				return err
			}
		}
		e.watch.accept(drafts)
		return nil
	}
}

type draftKey struct{}

var errDraft = errors.New("pawltest: only the draft was wanted")

// draft is what the engine makes of arguments, by its own codec. Nothing is
// handed in.
func (e *Engine) draft(args pawl.Args, opts ...pawl.EnqueueOption) (d job.Draft) {
	e.t.Helper()
	_, err := e.Engine.Enqueue(context.WithValue(e.ctx, draftKey{}, &d), args, opts...)
	if !errors.Is(err, errDraft) {
		e.t.Fatalf("encode %T: %v", args, err)
	}
	return d
}

func (w *watch) accept(drafts []job.Draft) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moves++
	w.drafts = append(w.drafts, drafts...)
}

func (w *watch) handedIn(kind string) (list []job.Draft) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.drafts {
		if d.Kind == kind {
			list = append(list, d)
		}
	}
	return list
}
