package pawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/internal/rate"
	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// acquireWait is how long Acquire keeps a handler waiting, and its slot taken, before
// the job is given back.
const acquireWait = 2 * time.Second

// Acquire takes n tokens of a limit's rate (Limit.PerSecond), and waits until they come.
// It is for anywhere; in handlers the function of the same name frees their slot when
// that takes long.
//
// It returns 0 when the tokens are taken. When they come after ctx's deadline nothing is
// taken, and it says at once in how long they come, with ErrRateLimited: that is an
// estimate, others may be faster. More than the burst never come at once and are
// refused, as is a limit that nobody declares. An operator may have lifted the rate
// (NoLimit): then there is nothing to wait for.
func (e *Engine) Acquire(ctx context.Context, limit string, n int) (wait time.Duration, err error) {
	of, err := e.bucket(ctx, limit)
	if err != nil {
		return 0, err
	}
	wait, err = e.limiters.Acquire(ctx, of, n, -1)
	return wait, rateError(err, of, n, wait)
}

// Acquire takes n tokens of a limit's rate in a handler. It waits for them for two
// seconds at most. When they take longer, the job is given back and comes again when
// they should be there: no attempt is burned, and Engine.Why says what it waits for.
//
// Then Acquire returns an error, ErrSuspended, which the handler returns too. What it
// returns instead does not count: the job has been given back, the handler's context is
// cancelled, every later Acquire of the run returns the same error, and nothing that
// the run does about its job takes effect. A handler that goes on all the same is
// warned about and counted (Stats.Swallowed).
//
// What the handler has done before runs again, so acquire first. In a batch handler,
// whose jobs cannot be given back together, it waits as Engine.Acquire does.
func Acquire(ctx context.Context, limit string, n int) error {
	e := EngineFrom(ctx)
	if e == nil {
		return job.Invalid("context", "of no handler", "must be that of a handler; anywhere else there is Engine.Acquire")
	}
	i := InfoFrom(ctx)
	if i.says == nil || i.task.Ends() { // there is nothing to give back
		_, err := e.Acquire(ctx, limit, n)
		return err
	}
	if s := i.says.suspended.Load(); s != nil {
		return s
	}
	of, err := e.bucket(ctx, limit)
	if err != nil {
		return err
	}
	wait, err := e.limiters.AcquireOrBook(ctx, of, n, acquireWait)
	if !errors.Is(err, rate.ErrLate) {
		return rateError(err, of, n, wait)
	}
	return i.suspend(wait, fmt.Sprintf("waits for limit %s", of))
}

// bucket is the bucket of a limit: of the job's key where the limit is per key and
// this is its handler.
func (e *Engine) bucket(ctx context.Context, limit string) (of store.BucketName, err error) {
	if err := e.usable(ctx); err != nil {
		return of, err
	}
	if e.limiters == nil {
		return of, job.Invalid("limit", limit, "cannot be acquired: the store keeps no rates")
	}
	if !e.followed.running.Load() {
		e.followed.mirror.Refresh()
	}
	s, known := e.followed.limits.Load().find(limit)
	if !known { // another process may have declared it, or an operator set it, just now
		if err := e.followed.mirror.Look(ctx); err != nil {
			return of, err
		}
		s, _ = e.followed.limits.Load().find(limit)
	}
	of.Limit = limit
	if s.PerKey {
		of.Key = InfoFrom(ctx).Key
	}
	return of, nil
}

// rateError is an error of limiters as users know it.
func rateError(err error, of store.BucketName, n int, wait time.Duration) error {
	switch {
	case errors.Is(err, rate.ErrLate):
		return fmt.Errorf("%w: %d of limit %s come in %v", ErrRateLimited, n, of, wait.Round(time.Millisecond))
	case errors.Is(err, rate.ErrClosed):
		return store.ErrClosed
	}
	return err
}

// Drain empties the limit's bucket for a time, in the whole cluster: nothing is to be
// had of it until then, and it begins empty. For when the other side says that it was
// too much (a 429). Processes use what they have taken before for a second at most.
func (l LimitHandle) Drain(ctx context.Context, d time.Duration) error {
	if d <= 0 || d > store.MaxDrain {
		return job.Invalid("drain", d, fmt.Sprintf("must be more than 0 and at most %v", store.MaxDrain))
	}
	op := operatorOf(ctx)
	return l.engine.drain(ctx, store.BucketName{Limit: l.name, Key: l.key}, d, &op)
}

// Undrain ends a drain before its time: tokens come again.
func (l LimitHandle) Undrain(ctx context.Context) error {
	op := operatorOf(ctx)
	return l.engine.drain(ctx, store.BucketName{Limit: l.name, Key: l.key}, job.Undrain, &op)
}

// Acquire takes n tokens of the limit's rate as Engine.Acquire does; of a limit that is
// per key those of the handle's key, also outside of handlers.
func (l LimitHandle) Acquire(ctx context.Context, n int) (wait time.Duration, err error) {
	if _, err := l.engine.bucket(ctx, l.name); err != nil {
		return 0, err
	}
	of := store.BucketName{Limit: l.name, Key: l.key}
	wait, err = l.engine.limiters.Acquire(ctx, of, n, -1)
	return wait, rateError(err, of, n, wait)
}

// Key is one key of a limit that is per key, to acquire from its bucket or to drain it.
func (l LimitHandle) Key(key string) LimitHandle {
	l.key = key
	return l
}

// drain empties a bucket, or ends a drain. With an operator it is audited.
func (e *Engine) drain(ctx context.Context, of store.BucketName, d time.Duration, op *store.Operator) error {
	if _, err := e.bucket(ctx, of.Limit); err != nil {
		return err
	}
	return rateError(e.limiters.Drain(ctx, of, d, op), of, 0, 0)
}

// throttledBy drains the limit that a run was throttled by: the bucket of its key where
// the limit is per key.
func (e *Engine) throttledBy(ctx context.Context, t *runner.Task, limit string, d time.Duration) error {
	of, err := e.bucket(ctx, limit)
	if err != nil {
		return err
	}
	if s, known := e.followed.limits.Load().find(limit); known && s.PerKey {
		of.Key = t.Job.Key
	}
	return rateError(e.limiters.Drain(ctx, of, d, nil), of, 0, 0)
}

// findLimit is what limiters know of a limit.
func (e *Engine) findLimit(name string) (LimitSettings, int64, bool) {
	r := e.followed.limits.Load()
	s, ok := r.find(name)
	return s, r.revision, ok
}
