package pawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// EraseNamespace removes all that the engine's namespace has: jobs, live and ended,
// with arguments, results and log lines, settings, workers, the audit log. What was
// erased cannot be brought back, so confirm has to be the namespace's name. It is
// ErrInUse while workers of it are live: stop them first. What is enqueued meanwhile
// may be erased or stay.
//
// It goes in short transactions that hold nobody else up. When it fails, or its
// process is killed, call it again: it goes on. Until then Check finds what is missing,
// such as the log lines of jobs that are still there. Who did it is in the log; the
// audit log is gone. It answers how many rows were removed.
func (e *Engine) EraseNamespace(ctx context.Context, confirm string) (rows int, err error) {
	if err := e.usable(ctx); err != nil {
		return 0, err
	}
	namespace := cmp.Or(e.cfg.Namespace, "default")
	if confirm != namespace {
		return 0, job.Invalid("confirm", confirm, fmt.Sprintf("must be the name of the namespace that is erased, %q", namespace))
	}
	s, ok := e.store.(store.Eraser)
	if !ok {
		return 0, fmt.Errorf("erase namespace %q: %w", namespace, errors.ErrUnsupported)
	}
	op := operatorOf(ctx)
	log := e.cfg.Logger.With("namespace", namespace, "by", op.Name, "note", op.Note)
	for step := 1; ; step++ {
		n, more, err := s.Erase(ctx, store.EraseRows)
		rows += n
		if err != nil {
			return rows, fmt.Errorf("erase namespace %q (rows that are gone: %d): %w", namespace, rows, err)
		}
		if step == 1 { // before the rest, which a kill may come before
			log.WarnContext(ctx, "erasing a namespace")
		}
		if !more {
			log.WarnContext(ctx, "namespace is erased", "rows", rows)
			return rows, nil
		}
	}
}
