package batch

import (
	"context"
	"fmt"
	"time"
)

// acquire gets the resource of a batch in time. Its context lives until the batch is finished, because a resource may
// live by it: a transaction of database/sql is rolled back when the context it was begun with ends.
func (b *Batcher[K, In, Out]) acquire(r *activeBatch[K, In, Out], key K) (acquired[K, In, Out], error) {
	ctx, cancel := context.WithCancelCause(b.context)
	r.cancel = cancel
	timeout := b.options.AcquireTimeout
	timer := time.AfterFunc(timeout, func() { cancel(context.DeadlineExceeded) })
	defer timer.Stop()
	got, err := b.functions.acquire(ctx, key)
	if timer.Stop() || context.Cause(ctx) != context.DeadlineExceeded {
		return got, err
	}
	if err == nil { // too late: what it acquired lives by a context that has ended
		r.release = got.release
		err = ctx.Err()
	}
	return acquired[K, In, Out]{}, fmt.Errorf("%sbatch: Work.Acquire took longer than Options.AcquireTimeout, which is %v: %w: %w", prefix(b.options.Name), timeout, context.DeadlineExceeded, err)
}

// giveBack releases the batch's resource once, and returns the panic of doing so.
func (r *activeBatch[K, In, Out]) giveBack() (err error) {
	if r.cancel != nil {
		defer r.cancel(nil)
	}
	release := r.release
	if release == nil {
		return nil
	}
	r.release = nil
	defer func() {
		if value := recover(); value != nil {
			err = newPanicError(r.owner.options.Name, value)
		}
	}()
	release()
	return nil
}
