package jobs

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/internal/commit"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Bulk is how many drafts go in by COPY, in a transaction of their own.
const Bulk = 2000

// EnqueueCall is one caller's drafts.
type EnqueueCall struct {
	commit.Call
	Drafts   []job.Draft
	weight   int
	again    bool // they may have been committed before, the answer was lost
	Tried    int  // how often the server was asked to take them in with care
	Receipts []job.Receipt
}

func NewEnqueueCall(drafts []job.Draft, weight int) *EnqueueCall {
	return &EnqueueCall{Call: commit.NewCall(), Drafts: drafts, weight: weight}
}

// beginNothing lets go of the slots that are kept for the call: it may take long.
func (c *EnqueueCall) beginNothing() {
	job.SettleHandOvers(c.Drafts, job.HandedOver{Unknown: c.again})
	c.Drafts = job.WithoutHandOver(c.Drafts)
}

func (c *EnqueueCall) Rows() int { return c.weight }

// Answer ends the call. Drafts that asked to begin, and of which nothing is known yet,
// did not; where the call's outcome is unknown, so is theirs.
func (c *EnqueueCall) Answer(err error) {
	if HeldBy(err) == nil { // else it goes on
		job.SettleHandOvers(c.Drafts, job.HandedOver{Unknown: err != nil && c.again})
	}
	c.Call.Answer(err)
}

// Enqueue accepts drafts, all or none. Calls of many goroutines share a commit;
// large ones have their own.
func (r *Room) Enqueue(ctx context.Context, drafts []job.Draft) ([]job.Receipt, error) {
	if err := r.pg.Enter(ctx); err != nil {
		return nil, err
	}
	defer r.pg.Leave()
	if len(drafts) == 0 {
		return nil, nil
	}
	if err := checkTimes(drafts); err != nil {
		return nil, err
	}
	plain, weight := true, 0
	for i := range drafts {
		plain = plain && isPlain(&drafts[i])
		weight += WeightOf(&drafts[i])
	}
	c := NewEnqueueCall(drafts, weight)
	receipts, err := r.enqueue(ctx, c, plain)
	if c.Answered() || !c.Taken() { // else it is under way, and is settled when it is answered
		job.SettleHandOvers(drafts, job.HandedOver{Unknown: err != nil && c.again})
	}
	return receipts, err
}

// enqueue sends a call, with those it shares a commit with or alone if it is large,
// until it is answered. While somebody's open transaction
// holds a key that it needs, it stands in the line of that key, for as long as the
// busy limit allows: nobody else waits with it.
func (r *Room) enqueue(ctx context.Context, c *EnqueueCall, plain bool) ([]job.Receipt, error) {
	var patient context.Context // for waiting
	strangers := !plain         // a plain call waits for its own earlier try only, and that ends soon
	for {
		var key LockKey
		known := false
		if !plain {
			key, known = r.Lines.among(c.Drafts, c.again)
		}
		if !known {
			var err error
			switch {
			case len(c.Drafts) >= Bulk || c.weight >= MaxGathered:
				c.beginNothing()
				err = r.enqueueBulk(ctx, c, plain)
			case plain:
				err = r.plain.Do(ctx, c)
			default:
				err = r.careful.Do(ctx, c)
			}
			if err == nil {
				return c.Receipts, nil
			}
			held := HeldBy(err)
			if held == nil {
				return nil, err
			}
			key, plain = held.Key, false
			c.Tried = 0
			if strangers {
				c.beginNothing()
			}
		}
		if patient == nil {
			var cancel context.CancelFunc
			patient, cancel = context.WithTimeoutCause(ctx, r.BusyLimit+loading(c.weight), errBusyLimit)
			defer cancel()
		}
		if err := r.wait(patient, key); err != nil {
			return nil, pg.Failure("enqueue", err, c.again)
		}
	}
}

// isPlain reports whether a draft cannot meet a row of anybody else: its id is
// fresh and it is not unique.
func isPlain(d *job.Draft) bool { return !d.Resend && d.Unique.Hash == nil }

// The times a draft may have: what both Postgres and JSON can write down.
var (
	firstTime = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	lastTime  = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
)

func checkTimes(drafts []job.Draft) error {
	for i := range drafts {
		d := &drafts[i]
		if d.At.After(lastTime) || d.At.Before(firstTime) {
			return job.Invalid("at", d.At, "must be in the years 0..9999")
		}
		if d.Deadline.After(lastTime) || d.Deadline.Before(firstTime) {
			return job.Invalid("deadline", d.Deadline, "must be in the years 0..9999")
		}
	}
	return nil
}

// commitPlain commits drafts of many callers that cannot meet any lock or
// conflict: one insert.
func (r *Room) commitPlain(ctx context.Context, calls []*EnqueueCall) {
	all := draftsOf(calls)
	asked := newBegun(all)
	var now time.Time
	unknown := false
	err := r.pg.Retry(ctx, "enqueue", pg.UnlessUnknown, func(ctx context.Context, _ bool) error {
		mode := insertDurable
		if r.pg.Settled {
			mode = insertFresh
		}
		insert := insertStep(r.pg.Namespace, all, mode, asked)
		insert.Each = func(scan pg.Scan) error { return asked.scan(scan, &now) }
		err := r.pg.Send(ctx, r.pg.Work, nil, insert) // waits for no row of anybody
		unknown = unknown || pg.FaultOf(err).Unknown
		return err
	})
	switch {
	case err == nil:
		r.accepted(asked.waiting(all), now)
		asked.settle()
		for _, c := range calls {
			c.Receipts = make([]job.Receipt, len(c.Drafts))
			for i := range c.Drafts {
				c.Receipts[i].ID = c.Drafts[i].ID
			}
			c.Answer(nil)
		}
	case len(calls) == 1 && !unknown && !pg.HasCode(err, uniqueViolation):
		calls[0].Answer(err)
	default:
		// Its answer was lost, or one of many rows is bad, or an id is not fresh after
		// all: it is sent again as what it may be, a repetition, and with care.
		for _, c := range calls {
			c.again = c.again || unknown
		}
		r.commitAccepted(ctx, calls)
	}
}

const uniqueViolation = "23505"

// accepted tells claims, here and elsewhere, of what was just committed. No
// draft is due before now, the time of the statement that put it in.
func (r *Room) accepted(drafts []job.Draft, now time.Time) {
	r.hints.TellDrafts(drafts, func(d *job.Draft) time.Time { return dueOf(d, now) })
}

// dueOf is when a draft falls due: never before now.
func dueOf(d *job.Draft, now time.Time) time.Time {
	due := now
	switch {
	case !d.At.IsZero():
		if d.At.After(now) {
			due = d.At
		}
	case d.In > 0:
		due = now.Add(d.In)
	}
	return due
}

func draftsOf(calls []*EnqueueCall) []job.Draft {
	if len(calls) == 1 {
		return calls[0].Drafts
	}
	n := 0
	for _, c := range calls {
		n += len(c.Drafts)
	}
	all := make([]job.Draft, 0, n)
	for _, c := range calls {
		all = append(all, c.Drafts...)
	}
	return all
}

// EnqueueIn accepts drafts in a user's transaction, and says what claims are to be
// told when it commits. None of them begins in it: who knows when it commits?
func (r *Room) EnqueueIn(ctx context.Context, in pg.Session, drafts []job.Draft) ([]job.Receipt, hints.Set, error) {
	if len(drafts) == 0 {
		return nil, nil, nil
	}
	if err := checkTimes(drafts); err != nil {
		return nil, nil, err
	}
	a := &Acceptance{Room: r, Session: in, Drafts: job.WithoutHandOver(drafts)}
	receipts, err := a.Run(ctx)
	return receipts, a.told, err
}

// Accepted is what drafts have come to in a transaction of the store's own.
type Accepted struct {
	Receipts []job.Receipt
	Told     hints.Set // what claims are to be told when it commits
	begun    *begun
}

// Settle tells those who keep slots which drafts began. It is called once the commit is
// answered, and before its callers are.
func (a *Accepted) Settle() { a.begun.settle() }

// Accept accepts drafts in a transaction of the store's own, in which they may begin.
func (r *Room) Accept(ctx context.Context, in pg.Session, drafts []job.Draft) (Accepted, error) {
	if len(drafts) == 0 {
		return Accepted{}, nil
	}
	if err := checkTimes(drafts); err != nil {
		return Accepted{}, err
	}
	a := &Acceptance{Room: r, Session: in, Drafts: drafts}
	receipts, err := a.Run(ctx)
	return Accepted{receipts, a.told, a.begun}, err
}
