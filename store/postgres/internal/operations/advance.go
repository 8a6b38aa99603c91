package operations

import (
	"context"
	"errors"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Advance takes the next page of an operation, if its time has come. The page is
// listed first, by statements of their own; then its jobs, the cursor and the counts
// change in one transaction, unless somebody else has done that page in between: the
// number of pages is the fence.
func (r *Room) Advance(ctx context.Context, id job.ID) (reply store.AdvanceReply, err error) {
	var found []store.Operation
	err = r.pg.Read(ctx, func() []*pg.Statement {
		found = nil
		return []*pg.Statement{r.find(&found, readOne, [16]byte(id)), clock(&reply.Now)}
	})
	if err != nil {
		return reply, err
	}
	if len(found) == 0 {
		return reply, job.NotFound("operation", id)
	}
	of := found[0]
	if reply.Operation = of; !of.Due(reply.Now) {
		return reply, nil
	}
	reply, err = r.page(ctx, of)
	if err == nil || ctx.Err() != nil || !store.ItsFault(err) {
		return reply, err
	}
	noted, failed := r.fail(ctx, of, err)
	return noted, errors.Join(err, failed)
}

// page lists and does the next page.
func (r *Room) page(ctx context.Context, of store.Operation) (reply store.AdvanceReply, err error) {
	listed, err := r.lists.List(ctx, of.Filter, of.Page())
	if err != nil {
		return reply, err
	}
	if err := r.pg.Enter(ctx); err != nil {
		return reply, err
	}
	defer r.pg.Leave()
	ids := make([]job.ID, len(listed.Jobs))
	for i := range listed.Jobs {
		ids[i] = listed.Jobs[i].ID
	}
	page := &jobs.Page{
		Of: &of,
		Lock: func(ctx context.Context, in pg.Session) (open bool, err error) {
			reply = store.AdvanceReply{}
			if reply.Operation, reply.Now, err = r.lock(ctx, in, of.ID); err != nil {
				return false, err
			}
			return reply.Operation.State == store.OperationOpen && reply.Operation.Pages == of.Pages, nil
		},
		Done: func(ctx context.Context, in pg.Session, answers []store.Change) error {
			for i, a := range answers {
				if a == store.Asked {
					reply.Asked = append(reply.Asked, ids[i])
				}
			}
			reply.Operation.Advance(&listed, answers, reply.Now)
			reply.Did = true
			return r.finish(ctx, in, &reply.Operation)
		},
	}
	_, err = r.jobs.OperatePage(ctx, of.Verb, ids, store.Operator{Name: of.By, Note: of.Note}, page)
	return reply, err
}

// fail notes that a page could not be done.
func (r *Room) fail(ctx context.Context, of store.Operation, cause error) (reply store.AdvanceReply, err error) {
	if err := r.pg.Enter(ctx); err != nil {
		return reply, err
	}
	defer r.pg.Leave()
	err = r.pg.Retry(ctx, "note a failed page", pg.UnlessUnknown, func(ctx context.Context, _ bool) error {
		return r.pg.Transact(ctx, r.pg.Work, pg.UpkeepLimits, func(t *pg.Transaction) (err error) {
			var now time.Time
			if reply.Operation, now, err = r.lock(ctx, t, of.ID); err != nil {
				return err
			}
			reply.Now = now
			if o := &reply.Operation; o.State == store.OperationOpen && o.Pages == of.Pages {
				o.Fail(cause, now)
				return r.finish(ctx, t, o)
			}
			return nil
		})
	})
	return reply, err
}

// finish writes the operation, and its end into the audit log.
func (r *Room) finish(ctx context.Context, in pg.Session, o *store.Operation) error {
	if err := r.put(ctx, in, o); err != nil || o.State == store.OperationOpen {
		return err
	}
	return r.audit(ctx, in, o, "end", store.Operator{Name: o.By, Note: o.Note})
}
