package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
)

// operations adds the routes of operations over many jobs.
func (a *api) operations() {
	route(a, operation{
		method: http.MethodPost, path: "/operations", id: "start-operation", tag: "operations", role: auth.Operator,
		summary: "Begin to do something to all jobs that a filter matches, or only count them",
	}, a.startOperation)
	route(a, operation{
		method: http.MethodGet, path: "/operations", id: "list-operations", tag: "operations", role: auth.Viewer,
		summary: "List operations, the newest first: those that are open, and those that ended in the last 30 days",
	}, a.listOperations)
	route(a, operation{
		method: http.MethodGet, path: "/operations/{id}", id: "get-operation", tag: "operations", role: auth.Viewer,
		summary: "Read how far an operation is; wait for its end with wait, which moves it on",
	}, a.getOperation)
	route(a, operation{
		method: http.MethodPost, path: "/operations/{id}/cancel", id: "cancel-operation", tag: "operations", role: auth.Operator,
		summary: "End an operation; what it has done stays done",
	}, a.cancelOperation)
}

// Bulk is what is to be done to many jobs.
type Bulk struct {
	Verb     string    `json:"verb" enum:"cancel,retry,delete,requeue,set-priority"`
	Queue    string    `json:"queue,omitempty" maxLength:"200" doc:"of requeue: where to"`
	Priority int       `json:"priority,omitempty" minimum:"1" maximum:"9" doc:"of set-priority: the new one"`
	Filter   JobFilter `json:"filter" doc:"which jobs; without states those that the verb is for, and delete needs some"`
	DryRun   bool      `json:"dry_run,omitempty" doc:"change nothing, and count what would change now"`
	Most     int       `json:"most,omitempty" minimum:"1" maximum:"1000000" doc:"how many jobs are looked at; without it all"`
	Pace     int       `json:"pace,omitempty" minimum:"1" maximum:"100000" doc:"jobs a second; without it 1000"`
}

// Operation is one verb over many jobs.
type Operation struct {
	ID       string          `json:"id,omitempty" format:"uuid" doc:"none of a dry run: nothing is kept of it"`
	Verb     string          `json:"verb" doc:"cancel, retry, delete, requeue or set-priority; a later build may have others"`
	Queue    string          `json:"queue,omitempty" doc:"of requeue: where to"`
	Priority int             `json:"priority,omitempty" doc:"of set-priority: the new one"`
	Filter   JobFilter       `json:"filter" doc:"which jobs; those created after the operation do not match"`
	Most     int64           `json:"most,omitempty"`
	Pace     int             `json:"pace" doc:"jobs a second"`
	By       string          `json:"by"`
	Note     string          `json:"note,omitempty"`
	State    string          `json:"state,omitempty" enum:"open,done,cancelled,failed" doc:"none of a dry run"`
	Counts   OperationCounts `json:"counts"`
	Failures int             `json:"failures,omitempty" doc:"pages in a row that could not be done"`
	Reason   string          `json:"reason,omitempty" doc:"of the last failure, or why it ended early"`
	Created  time.Time       `json:"created,omitzero"`
	Next     time.Time       `json:"next,omitzero" doc:"when the next page may be taken"`
	Ended    time.Time       `json:"ended,omitzero"`
}

// OperationCounts are what became of the jobs that an operation has looked at.
type OperationCounts struct {
	Looked    int64 `json:"looked" doc:"jobs that matched: the sum of the others"`
	Changed   int64 `json:"changed"`
	Asked     int64 `json:"asked" doc:"running ones that were asked to stop"`
	Duplicate int64 `json:"duplicate" doc:"another job holds their unique key"`
	Busy      int64 `json:"busy" doc:"an open transaction held them"`
	Left      int64 `json:"left" doc:"there was nothing to do, or they were gone"`
}

// verbNames are the verbs as paths and bodies call them.
var verbNames = map[store.VerbName]string{store.VerbPriority: "set-priority", store.VerbRunNow: "run"}

func operationOf(o *pawl.Operation) Operation {
	name := verbNames[o.Verb.Name]
	if name == "" {
		name = string(o.Verb.Name)
	}
	w := Operation{
		Verb: name, Queue: o.Verb.Queue, Priority: o.Verb.Priority, Filter: filterOf(&o.Filter), Most: o.Most, Pace: o.Pace, By: o.By, Note: o.Note,
		Counts: OperationCounts(o.Counts), Failures: o.Failures, Reason: o.Reason, Created: o.Created, Next: o.Next, Ended: o.Ended,
	}
	if o.ID != (pawl.ID{}) {
		w.ID, w.State = o.ID.String(), o.State.String()
	}
	return w
}

type bulkInput struct {
	Body Bulk
}

func (a *api) startOperation(ctx context.Context, in *bulkInput) (*body[Operation], error) {
	b, err := in.Body.of()
	if err != nil {
		return nil, err
	}
	var opts []pawl.AllOption
	if in.Body.DryRun {
		opts = append(opts, pawl.DryRun())
	}
	if in.Body.Most != 0 {
		opts = append(opts, pawl.Most(in.Body.Most))
	}
	if in.Body.Pace != 0 {
		opts = append(opts, pawl.Pace(in.Body.Pace))
	}
	if keyFrom(ctx) != "" && !in.Body.DryRun {
		id, before, err := a.keyedOperation(ctx)
		if err != nil {
			return nil, err
		}
		if before != nil {
			return in.Body.repeated(ctx, before)
		}
		opts = append(opts, pawl.OperationID(id))
	}
	op, err := a.e.Bulk(ctx, b, opts...)
	if err != nil {
		return nil, err
	}
	return answer(operationOf(&op)), nil
}

// manyOperations bounds how many operations are looked through for one of a key.
const manyOperations = 1000

// keyedOperation is what the request's key has begun before, or the id for what it begins.
// Ids are in the order of their time, so that a key makes all of one but its minute: those
// of the last day are looked through, and of two at once the store takes one.
func (a *api) keyedOperation(ctx context.Context) (id pawl.ID, before *pawl.Operation, err error) {
	now := time.Now().Truncate(time.Minute)
	sum := sha256.Sum256([]byte(storedKey(ctx, "operation")))
	copy(id[:], sum[:])
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(now.UnixMilli()))
	copy(id[:6], ms[2:])
	id[6] = id[6]&0x0f | 0x70 // version 7
	id[8] = id[8]&0x3f | 0x80 // the variant of RFC 9562
	var behind []pawl.ID
	for range manyOperations / store.MaxOperations {
		list, err := a.e.Operations(ctx, behind...)
		if err != nil {
			return id, nil, err
		}
		for i := range list {
			if now.Sub(list[i].Created) > keptFor {
				return id, nil, nil
			}
			if bytes.Equal(list[i].ID[6:], id[6:]) {
				return id, &list[i], nil
			}
		}
		if len(list) < store.MaxOperations {
			break
		}
		behind = []pawl.ID{list[len(list)-1].ID}
	}
	return id, nil, nil
}

// repeated answers with the operation that the key began before, unless that was another.
func (b *Bulk) repeated(ctx context.Context, before *pawl.Operation) (*body[Operation], error) {
	was := operationOf(before)
	f, g := b.Filter, was.Filter
	same := was.Verb == b.Verb && was.Queue == b.Queue && was.Priority == b.Priority && was.Most == int64(b.Most) &&
		was.Pace == cmp.Or(b.Pace, store.OperationPace) && (len(f.States) == 0 || slices.Equal(f.States, g.States)) &&
		f.Queue == g.Queue && f.Kind == g.Kind && f.Key == g.Key && f.Tag == g.Tag && f.Worker == g.Worker && f.Fingerprint == g.Fingerprint
	if !same {
		return nil, fmt.Errorf("%s %q %w", keyHeader, keyFrom(ctx), errKeyReused)
	}
	return answer(was), nil
}

// of reads it. What another verb would need is a mistake.
func (b *Bulk) of() (pawl.Bulk, error) {
	if b.Queue != "" && b.Verb != "requeue" {
		return pawl.Bulk{}, newProblem(http.StatusUnprocessableEntity, "invalid", "queue: is for requeue; which jobs is said by filter.queue")
	}
	if b.Priority != 0 && b.Verb != "set-priority" {
		return pawl.Bulk{}, newProblem(http.StatusUnprocessableEntity, "invalid", "priority: is for set-priority")
	}
	f, err := b.Filter.of()
	if err != nil {
		return pawl.Bulk{}, err
	}
	switch b.Verb {
	case "cancel":
		return pawl.BulkCancel(f), nil
	case "retry":
		return pawl.BulkRetry(f), nil
	case "delete":
		return pawl.BulkDelete(f), nil
	case "requeue":
		return pawl.BulkRequeue(f, b.Queue), nil
	}
	return pawl.BulkPriority(f, b.Priority), nil
}

type operationsInput struct {
	Limit int    `query:"limit" minimum:"1" maximum:"100" default:"50"`
	After string `query:"after" maxLength:"1000" doc:"next of the page before"`
}

// OperationList is one page.
type OperationList struct {
	Operations []Operation `json:"operations" nullable:"false"`
	Next       string      `json:"next,omitempty" doc:"the next page begins behind it; none: this is the last"`
}

func (a *api) listOperations(ctx context.Context, in *operationsInput) (*body[OperationList], error) {
	var before []pawl.ID
	if in.After != "" {
		before = make([]pawl.ID, 1)
		if err := readCursor(in.After, &before[0]); err != nil {
			return nil, err
		}
	}
	list, err := a.e.Operations(ctx, before...)
	if err != nil {
		return nil, err
	}
	shown := min(len(list), in.Limit)
	out := OperationList{Operations: make([]Operation, shown)}
	for i := range shown {
		out.Operations[i] = operationOf(&list[i])
	}
	if len(list) > shown || len(list) == store.MaxOperations {
		out.Next = cursor(list[shown-1].ID)
	}
	return answer(out), nil
}

// OperationPath names an operation.
type OperationPath struct {
	ID string `path:"id" format:"uuid"`
}

type operationInput struct {
	OperationPath
	Wait string `query:"wait" doc:"how long to wait for the end of the operation at most, such as 10s; a minute is the most" maxLength:"20"`
}

func (a *api) getOperation(ctx context.Context, in *operationInput) (*body[Operation], error) {
	id, err := job.ParseID(in.ID)
	if err != nil {
		return nil, err
	}
	wait, err := readDuration("wait", in.Wait, longestWait)
	if err != nil {
		return nil, err
	}
	if wait > 0 {
		waiting, cancel := context.WithTimeout(ctx, wait)
		op, err := a.e.WaitOperation(waiting, id)
		cancel()
		if err == nil {
			return answer(operationOf(&op)), nil
		}
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return nil, err
		}
	}
	if id == (pawl.ID{}) { // the engine would take it for any
		return nil, job.NotFound("operation", id)
	}
	op, err := a.e.Operation(ctx, id)
	if err != nil {
		return nil, err
	}
	return answer(operationOf(&op)), nil
}

func (a *api) cancelOperation(ctx context.Context, in *OperationPath) (*body[Operation], error) {
	id, err := job.ParseID(in.ID)
	if err != nil {
		return nil, err
	}
	op, err := a.e.CancelOperation(ctx, id)
	if err != nil {
		return nil, err
	}
	return answer(operationOf(&op)), nil
}
