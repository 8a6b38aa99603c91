package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl/batch"
	"github.com/pawlwork/pawl/job"
)

// Batch says how jobs of a kind are put together for HandleBatch, and events for
// SubscribeBatch.
type Batch[A any] struct {
	Size int                 // jobs at most in one call, 1..10,000
	Key  func(args A) string // jobs of one call share it [all jobs]
	// Wait is how long a batch may wait to be filled. Zero means not at all: a
	// call starts with what is there, and the next one takes what came meanwhile.
	Wait time.Duration
	// Observer is told of batches, and may put a span around each (batch.Tracer); it knows
	// them by the kind of their jobs.
	Observer batch.Observer
}

const (
	maxBatchSize = 10_000
	mostWaiting  = 1 << 20 // batches: the slots of the queue are the bound
)

// HandleBatch registers a handler of many jobs at once. It returns nil when all
// of them are done, or one error per job, in order: each job is retried, snoozed
// or dead for itself. Any other number of errors fails them all. Every job of a
// batch holds a slot of its queue, so a queue needs at least Size workers to
// fill one; when all its slots wait in batches these start at once, since no more
// can come. A panic fails each job of its batch and no other.
func HandleBatch[A Args](to Registrar, work func(ctx context.Context, jobs []*Job[A]) []error, b Batch[A], opts ...HandleOption) {
	if work == nil {
		Handle[A](to, nil, opts...)
		return
	}
	key := b.Key
	if key == nil {
		key = func(A) string { return "" }
	}
	o := batch.Options{Policy: batch.Balanced(max(b.Size, 1)), MaxBatch: b.Size, MaxWaiting: mostWaiting, Observer: b.Observer}
	if r := registrationOf[A](nil); b.Observer != nil && len(r.faults) == 0 {
		o.Name = r.kinds[0]
	}
	if b.Wait > 0 {
		o.Policy = batch.Duration(b.Wait)
	}
	type lot struct { // what the jobs of a batch share
		engine *Engine // a set of handlers may serve several
		key    string
	}
	group := batch.New(func(ctx context.Context, of lot, items []*batched[A]) ([]struct{}, error) {
		ctx = context.WithValue(ctx, engineKey{}, of.engine)
		errs := workTogether(ctx, work, items)
		return make([]struct{}, len(items)), batch.Errors(errs)
	}, o)
	opts = append([]HandleOption{handleOption(func(r *registration) {
		if b.Size < 1 || b.Size > maxBatchSize {
			r.fault(job.Invalid("batch size", b.Size, fmt.Sprintf("must be 1..%d", maxBatchSize)))
		}
		if b.Wait < 0 {
			r.fault(job.Invalid("batch wait", b.Wait, "must be 0 or more"))
		}
	})}, opts...)
	Handle(to, func(ctx context.Context, j *Job[A]) error {
		of := lot{j.engine, key(j.Args)}
		item := &batched[A]{ctx: ctx, job: j, end: make(chan error, 1)}
		if b.Wait > 0 { // else nothing waits to be filled
			item.wait = &batchWait{j.Queue, func() { group.Flush(of) }}
			j.engine.batches.join(item.wait, j.engine.slots)
			defer j.engine.batches.leave(item.wait)
		}
		_, err := group.Do(ctx, of, item)
		if errors.Is(err, batch.ErrOutcomeUnknown) {
			return <-item.end // its context ended while the batch works on it: the run is over when that is
		}
		return err
	}, opts...)
}

// batched is one job on its way through a batch.
type batched[A Args] struct {
	ctx  context.Context
	job  *Job[A]
	end  chan error // what became of it, for a job that is not waited for by its batch
	wait *batchWait // nil when it is not waited for more
}

// workTogether runs one batch. Its context ends when those of all its jobs have:
// one job that is cancelled must not fail the others.
func workTogether[A Args](ctx context.Context, work func(context.Context, []*Job[A]) []error, items []*batched[A]) (errs []error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	var ended atomic.Int64
	jobs := make([]*Job[A], len(items))
	for i, item := range items {
		jobs[i] = item.job
		if item.wait != nil {
			item.job.engine.batches.leave(item.wait)
		}
		stop := context.AfterFunc(item.ctx, func() {
			if ended.Add(1) == int64(len(items)) {
				cancel(context.Cause(item.ctx))
			}
		})
		defer stop()
	}
	defer func() {
		for i, item := range items {
			if i < len(errs) {
				item.end <- errs[i]
			} else {
				item.end <- errors.New("pawl: the batch handler panicked")
			}
		}
	}()
	answer := work(ctx, jobs)
	if answer == nil {
		return make([]error, len(jobs))
	}
	if len(answer) != len(jobs) {
		answer = slices.Repeat([]error{fmt.Errorf("pawl: a batch handler must return no errors or one for each job: it returned %d, and had %d", len(answer), len(jobs))}, len(jobs))
	}
	return answer
}
