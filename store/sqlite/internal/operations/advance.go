package operations

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lists"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Page is what an operation is to do next.
type Page struct {
	Of     store.Operation
	Listed store.Listed
	IDs    []job.ID
	Due    bool
	Now    int64
}

// Next lists the next page of an operation, if its time has come. It only reads, so
// that nobody waits for it.
func Next(c *lite.Snapshot, id job.ID) (p Page, err error) {
	o, found, err := one(c, id)
	switch {
	case err != nil:
		return p, err
	case !found:
		return p, job.NotFound("operation", id)
	}
	p.Of, p.Now = o, c.Clock.Now()
	if p.Due = o.Due(lite.TimeOf(p.Now)); !p.Due {
		return p, nil
	}
	if p.Listed, err = lists.List(c, o.Filter, o.Page()); err != nil {
		return p, err
	}
	for i := range p.Listed.Jobs {
		p.IDs = append(p.IDs, p.Listed.Jobs[i].ID)
	}
	return p, nil
}

// Advance does a page that was listed, unless somebody else has done it: the number
// of pages is the fence.
func Advance(t *jobs.Transition, p *Page) (reply store.AdvanceReply, err error) {
	reply.Now = lite.TimeOf(t.Now)
	o, found, err := one(&t.Snapshot, p.Of.ID)
	if err != nil {
		return reply, err
	}
	reply.Operation = o
	if !found || o.State != store.OperationOpen || o.Pages != p.Of.Pages {
		return reply, nil
	}
	answers, err := t.Operate(o.Verb, p.IDs, store.Operator{Name: o.By, Note: o.Note}, &o)
	if err != nil {
		return reply, err
	}
	for i, a := range answers {
		if a == store.Asked {
			reply.Asked = append(reply.Asked, p.IDs[i])
		}
	}
	o.Advance(&p.Listed, answers, reply.Now)
	reply.Operation, reply.Did = o, true
	return reply, finish(t, &o)
}

// Fail notes that a page could not be done.
func Fail(t *jobs.Transition, p *Page, cause error) (reply store.AdvanceReply, err error) {
	reply.Now = lite.TimeOf(t.Now)
	o, found, err := one(&t.Snapshot, p.Of.ID)
	if err != nil || !found || o.State != store.OperationOpen || o.Pages != p.Of.Pages {
		reply.Operation = o
		return reply, err
	}
	o.Fail(cause, reply.Now)
	reply.Operation = o
	return reply, finish(t, &o)
}

// finish writes the operation, and its end into the audit log.
func finish(t *jobs.Transition, o *store.Operation) error {
	if err := put(&t.Session, o); err != nil || o.State == store.OperationOpen {
		return err
	}
	return audit(&t.Session, o, "end", store.Operator{Name: o.By, Note: o.Note})
}
