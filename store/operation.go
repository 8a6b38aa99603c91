package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Operations is a store that keeps what operators do to many jobs, so that it goes
// on after the process that began it.
type Operations interface {
	// Operate applies a verb to jobs, as Cancel, Retry and Delete do theirs.
	Operate(ctx context.Context, v Verb, ids []job.ID, op Operator) ([]Change, error)
	// Foresee says what Operate would answer now, were nobody to hold any of them.
	// It changes and locks nothing.
	Foresee(ctx context.Context, v Verb, ids []job.ID) ([]Foreseen, error)
	// StartOperation keeps an operation, which is open from then on. One with this id
	// that is kept already is answered as it stands.
	StartOperation(ctx context.Context, o Operation) (Operation, error)
	// AdvanceOperation takes the next page of an operation whose time has come:
	// what it does to the jobs, its cursor and its counts are one transaction, which
	// changes nothing where somebody else took that page first. So no page is done
	// twice, whoever died or did not hear the answer.
	AdvanceOperation(ctx context.Context, id job.ID) (AdvanceReply, error)
	// CancelOperation ends an open operation. What it has done stays done.
	CancelOperation(ctx context.Context, id job.ID, op Operator) (Operation, error)
	// Operations lists operations, the newest first.
	Operations(ctx context.Context, p OperationPage) ([]Operation, error)
}

// VerbTx is a Tx in which operators' verbs commit with the user's own rows.
type VerbTx interface {
	Tx
	Operate(ctx context.Context, v Verb, ids []job.ID, op Operator) ([]Change, error)
}

// Foreseen is what a verb would answer for one job.
type Foreseen struct {
	Change Change
	// Key is the unique key that a retry would take: of two jobs with one key only
	// the first comes back.
	Key string
}

// Operation is one verb over the jobs that a filter matches: kept in the store, done
// page by page, by whichever process has the time.
type Operation struct {
	ID     job.ID `json:"id"` // made by the caller
	Verb   Verb   `json:"verb"`
	Filter Filter `json:"filter"` // those created after the operation do not match
	Most   int64  `json:"most,omitempty"`
	Pace   int    `json:"pace"` // jobs a second
	By     string `json:"by"`
	Note   string `json:"note,omitempty"`

	State    OperationState  `json:"state"`
	Counts   OperationCounts `json:"counts"`
	Cursor   Bookmark        `json:"cursor,omitzero"` // the next page goes on behind it
	Pages    int64           `json:"pages"`           // done so far: the number of the next
	Failures int             `json:"failures,omitempty"`
	Reason   string          `json:"reason,omitempty"` // of the last failure, or why it ended early
	Created  time.Time       `json:"created"`
	Next     time.Time       `json:"next,omitzero"` // when the next page may be taken
	Ended    time.Time       `json:"ended,omitzero"`
}

// OperationState is how an operation stands. The numbers are stored.
type OperationState uint8

// The states.
const (
	OperationOpen      OperationState = iota + 1 // there may be more to do
	OperationDone                                // it has seen all that matched
	OperationCancelled                           // by an operator
	OperationFailed                              // OperationTries pages in a row could not be done
)

func (s OperationState) String() string {
	switch s {
	case OperationOpen:
		return "open"
	case OperationDone:
		return "done"
	case OperationCancelled:
		return "cancelled"
	case OperationFailed:
		return "failed"
	}
	return fmt.Sprintf("operation state(%d)", uint8(s))
}

// MarshalText writes the state's name.
func (s OperationState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// OperationCounts are what became of the jobs that an operation has looked at.
type OperationCounts struct {
	Looked    int64 `json:"looked"`              // jobs that matched; the sum of the others
	Changed   int64 `json:"changed"`             // done
	Asked     int64 `json:"asked,omitempty"`     // running ones that were asked to stop
	Duplicate int64 `json:"duplicate,omitempty"` // another job holds their unique key
	Busy      int64 `json:"busy,omitempty"`      // an open transaction held them; nothing changed
	Left      int64 `json:"left,omitempty"`      // nothing to do for the verb, or gone or moved since they were listed
}

// Add counts an answer.
func (c *OperationCounts) Add(answer Change) {
	c.Looked++
	switch answer {
	case Changed:
		c.Changed++
	case Asked:
		c.Asked++
	case Duplicate:
		c.Duplicate++
	case Busy:
		c.Busy++
	default:
		c.Left++
	}
}

func (c OperationCounts) String() string {
	return fmt.Sprintf("%d looked at, %d changed, %d asked to stop, %d duplicates, %d busy, %d left as they were",
		c.Looked, c.Changed, c.Asked, c.Duplicate, c.Busy, c.Left)
}

// AdvanceReply is what one call of AdvanceOperation came to.
type AdvanceReply struct {
	Operation Operation // as it stands now
	Did       bool      // this call took a page
	Now       time.Time // the store's clock
	Asked     []job.ID  // running jobs that this call asked to stop
}

// OperationPage is a part of the list of operations.
type OperationPage struct {
	ID     job.ID // only this one
	Open   bool   // only those that are open, those whose time came first first
	Before job.ID // ids below it; zero for the first page
	Limit  int    // 1..MaxOperations
}

// Bounds of operations.
const (
	MaxOperations = 100     // that are open at once, and on a page
	OperationPace = 1_000   // jobs a second, when it does not say
	MaxPace       = 100_000 // jobs a second
	// OperationTries is how many failures in a row end an operation.
	OperationTries = 10
	// KeepOperation is how long an operation is kept after its end.
	KeepOperation = 30 * 24 * time.Hour

	pagesASecond = 10
	largestPage  = 500
	breath       = 10 * time.Millisecond // between two pages, so that claims and finishes come between
	maxReason    = 1_000
)

// Check refuses an operation that cannot be kept.
func (o *Operation) Check() error {
	errs := []error{o.Verb.Check(), o.Filter.Check()}
	if o.ID == (job.ID{}) {
		errs = append(errs, job.Invalid("operation id", o.ID, "must be set"))
	}
	if o.Verb.Name == VerbRunNow {
		errs = append(errs, job.Invalid("verb", string(o.Verb.Name), "must be one for many jobs: of several only one is first"))
	}
	if o.Pace < 1 || o.Pace > MaxPace {
		errs = append(errs, job.Invalid("pace", o.Pace, fmt.Sprintf("must be 1..%d jobs a second", MaxPace)))
	}
	if o.Most < 0 {
		errs = append(errs, job.Invalid("most", o.Most, "must be 0 (all) or more"))
	}
	if len(o.Filter.States) == 0 {
		errs = append(errs, job.Invalid("Filter.States", "none", "must be named, so that nothing is changed by mistake"))
	}
	return errors.Join(errs...)
}

// Check refuses a page of no size or of too large a one.
func (p *OperationPage) Check() error {
	if p.Limit < 1 || p.Limit > MaxOperations {
		return job.Invalid("limit", p.Limit, fmt.Sprintf("must be 1..%d", MaxOperations))
	}
	return nil
}

// TooManyOpen is the error of an operation that would be one too many.
func TooManyOpen() error {
	bound := fmt.Sprintf("must be at most %d open at once: wait for some, or cancel them", MaxOperations)
	return job.Invalid("operations", MaxOperations+1, bound)
}

// Begin makes the operation one that is to be kept from now on. What is created
// later does not match: an operation that chases what comes in would never end.
func (o *Operation) Begin(now time.Time) {
	o.State, o.Created, o.Next = OperationOpen, now, now
	o.Counts, o.Cursor, o.Pages, o.Failures, o.Reason, o.Ended = OperationCounts{}, Bookmark{}, 0, 0, "", time.Time{}
	if f := &o.Filter; f.CreatedBefore.IsZero() || f.CreatedBefore.After(now) {
		f.CreatedBefore = now.Add(time.Microsecond) // with those of this moment
	}
}

// Due reports whether the next page may be taken now, by this build.
func (o *Operation) Due(now time.Time) bool {
	return o.State == OperationOpen && !o.Next.After(now) && o.Verb.Known()
}

// Page is the next one.
func (o *Operation) Page() Page {
	limit := min(max(o.Pace/pagesASecond, 1), largestPage)
	if o.Most > 0 {
		limit = min(limit, int(max(o.Most-o.Counts.Looked, 1)))
	}
	return Page{After: o.Cursor, Limit: limit}
}

// Advance is the operation after a page: what was listed, and what the verb
// answered for each job of it.
func (o *Operation) Advance(listed *Listed, answers []Change, now time.Time) {
	for _, a := range answers {
		o.Counts.Add(a)
	}
	o.Pages++
	o.Failures, o.Reason, o.Cursor = 0, "", listed.Next
	// From when it was due, not from when it came: a page that takes its time does not
	// slow it down. What was missed for longer than a moment is not made up for.
	from := o.Next
	if now.Sub(from) > time.Second {
		from = now
	}
	o.Next = from.Add(time.Duration(len(answers)) * time.Second / time.Duration(o.Pace))
	if soonest := now.Add(breath); o.Next.Before(soonest) {
		o.Next = soonest
	}
	if !listed.More || o.Most > 0 && o.Counts.Looked >= o.Most {
		o.end(OperationDone, now)
	}
}

// Fail is the operation after a page that could not be done: it is put off, longer
// each time, and ends after OperationTries.
func (o *Operation) Fail(cause error, now time.Time) {
	o.Failures++
	o.Reason = cause.Error()
	o.Reason = o.Reason[:min(len(o.Reason), maxReason)]
	o.Next = now.Add(IntentPause(o.Failures))
	if o.Failures >= OperationTries {
		o.end(OperationFailed, now)
	}
}

// ItsFault reports whether an error is that of a page, and not of the store, which
// passes.
func ItsFault(err error) bool {
	for _, of := range []error{
		ErrClosed, ErrFull, ErrReadOnly, ErrBusy, ErrCorrupt, ErrUnavailable, ErrInsideTx, job.ErrOutcomeUnknown, job.ErrNotFound,
		context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, of) {
			return false
		}
	}
	return true
}

// Cancel is the operation after an operator ended it.
func (o *Operation) Cancel(op Operator, now time.Time) {
	o.Reason = "cancelled by " + cmp.Or(op.Name, "nobody")
	o.end(OperationCancelled, now)
}

func (o *Operation) end(s OperationState, now time.Time) {
	o.State, o.Ended, o.Next = s, now, time.Time{}
}

// Matches reports whether a job that was listed still is in a state and queue that
// the filter names: whoever was there first may have changed it since.
func (o *Operation) Matches(s job.State, queue string) bool {
	for _, want := range o.Filter.States {
		if s == want {
			return o.Filter.Queue == "" || o.Filter.Queue == queue
		}
	}
	return false
}

// Action is what the audit log calls the operation, and what it did with it.
func (o *Operation) Action(what string) string { return what + " bulk " + string(o.Verb.Name) }

// Detail is what the audit log has of the operation: what it does when it starts,
// what it came to when it has ended.
func (o *Operation) Detail() string {
	if o.State != OperationOpen {
		return o.State.String() + ": " + o.Counts.String()
	}
	text := "jobs that match " + o.Filter.JSON()
	switch o.Verb.Name {
	case VerbRequeue:
		text = "to queue " + o.Verb.Queue + ": " + text
	case VerbPriority:
		text = fmt.Sprintf("to priority %d: %s", o.Verb.Priority, text)
	}
	if o.Most > 0 {
		text += fmt.Sprintf(", at most %d", o.Most)
	}
	return text
}

// Read reads what is kept as JSON. A verb that this build cannot read is one that it
// does not know, and leaves alone; so is that of a filter or cursor.
func (o *Operation) Read(verb, filter, cursor []byte) {
	err := errors.Join(json.Unmarshal(verb, &o.Verb), json.Unmarshal(filter, &o.Filter), json.Unmarshal(cursor, &o.Cursor))
	if err != nil {
		o.Verb.Name, o.Reason = "", "cannot be read by this build: "+err.Error()
	}
}
