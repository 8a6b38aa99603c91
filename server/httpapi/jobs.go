package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/store"
)

// longestWait bounds a long poll.
const longestWait = time.Minute

// jobs adds the routes of jobs.
func (a *api) jobs() {
	route(a, operation{
		method: http.MethodGet, path: "/jobs", id: "list-jobs", tag: "jobs", role: auth.Viewer,
		summary: "List jobs, the newest first; without arguments and failures",
	}, a.listJobs)
	route(a, operation{
		method: http.MethodGet, path: "/jobs/count", id: "count-jobs", tag: "jobs", role: auth.Viewer,
		summary: "Count jobs, up to a bound",
	}, a.countJobs)
	route(a, operation{
		method: http.MethodPost, path: "/jobs", id: "enqueue-job", tag: "jobs", role: auth.Operator, status: http.StatusCreated,
		summary: "Enqueue a job",
	}, a.enqueueJob)
	route(a, operation{
		method: http.MethodGet, path: "/jobs/{id}", id: "get-job", tag: "jobs", role: auth.Viewer,
		summary: "Read a job, live or archived; wait for its end with wait",
	}, a.getJob)
	route(a, operation{
		method: http.MethodGet, path: "/jobs/{id}/result", id: "get-job-result", tag: "jobs", role: auth.Viewer, hidden: true,
		summary: "Read what a job's handler kept; wait for its end with wait",
	}, a.getResult)
	route(a, operation{
		method: http.MethodGet, path: "/jobs/{id}/logs", id: "list-job-logs", tag: "jobs", role: auth.Viewer, hidden: true,
		summary: "Read the lines that a job's handler logged, the oldest first",
	}, a.listLogs)
	route(a, operation{
		method: http.MethodGet, path: "/jobs/{id}/why", id: "get-job-why", tag: "jobs", role: auth.Viewer,
		summary: "Say what keeps a job from running",
	}, a.getWhy)
	for _, v := range []struct {
		name, summary string
		do            func(context.Context, pawl.ID) (pawl.Change, error)
	}{
		{"cancel", "End a job that does not run, and ask one that does to stop", a.e.Cancel},
		{"retry", "Let a dead, cancelled or parked job wait again, with all its attempts", a.e.Retry},
		{"run", "Make a waiting job due now, before others of its priority", a.e.RunNow},
	} {
		route(a, operation{
			method: http.MethodPost, path: "/jobs/{id}/" + v.name, id: v.name + "-job", tag: "jobs", role: auth.Operator, summary: v.summary,
		}, func(ctx context.Context, in *JobPath) (*body[Changed], error) { return a.change(ctx, in.ID, v.do) })
	}
	route(a, operation{
		method: http.MethodPost, path: "/jobs/{id}/requeue", id: "requeue-job", tag: "jobs", role: auth.Operator,
		summary: "Move a job to another queue",
	}, func(ctx context.Context, in *requeueInput) (*body[Changed], error) {
		return a.change(ctx, in.ID, func(ctx context.Context, id pawl.ID) (pawl.Change, error) { return a.e.Requeue(ctx, id, in.Body.Queue) })
	})
	route(a, operation{
		method: http.MethodPost, path: "/jobs/{id}/priority", id: "set-job-priority", tag: "jobs", role: auth.Operator,
		summary: "Give a waiting job another priority",
	}, func(ctx context.Context, in *priorityInput) (*body[Changed], error) {
		return a.change(ctx, in.ID, func(ctx context.Context, id pawl.ID) (pawl.Change, error) {
			return a.e.SetPriority(ctx, id, in.Body.Priority)
		})
	})
	route(a, operation{
		method: http.MethodDelete, path: "/jobs/{id}", id: "delete-job", tag: "jobs", role: auth.Operator,
		summary: "Remove a job that does not run, and ask one that does to stop",
	}, func(ctx context.Context, in *JobPath) (*body[Changed], error) {
		return a.change(ctx, in.ID, a.e.Delete)
	})
}

// JobPath names a job.
type JobPath struct {
	ID string `path:"id" format:"uuid"`
}

// Changed is what became of a change.
type Changed struct {
	Change string `json:"change" doc:"what became of it" enum:"changed,asked,ended,duplicate,active,busy,same"`
}

// change does something to one job.
func (a *api) change(ctx context.Context, text string, do func(context.Context, pawl.ID) (pawl.Change, error)) (*body[Changed], error) {
	id, err := job.ParseID(text)
	if err != nil {
		return nil, err
	}
	c, err := do(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case c == store.NotFound:
		return nil, newProblem(http.StatusNotFound, "not-found", "there is no job "+text)
	}
	return answer(Changed{c.String()}), nil
}

type requeueInput struct {
	JobPath
	Body struct {
		Queue string `json:"queue" minLength:"1" maxLength:"200"`
	}
}

type priorityInput struct {
	JobPath
	Body struct {
		Priority int `json:"priority" minimum:"1" maximum:"9"`
	}
}

type listInput struct {
	JobFilter
	Order string `query:"order" enum:"id,due,finish,worker" default:"id" doc:"due: waiting jobs of one queue; finish: dead and cancelled ones; worker: running ones"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"50"`
	After string `query:"after" maxLength:"1000" doc:"next of the page before"`
}

// JobList is one page.
type JobList struct {
	Jobs    []Job  `json:"jobs" nullable:"false"`
	Next    string `json:"next,omitempty" doc:"the next page begins behind it; none: this is the last"`
	Stopped bool   `json:"stopped,omitempty" doc:"the page ended at a bound of rows before it was full"`
}

var orders = map[string]store.Order{"id": store.ByID, "due": store.ByDue, "finish": store.ByFinish, "worker": store.ByWorker}

func (a *api) listJobs(ctx context.Context, in *listInput) (*body[JobList], error) {
	f, err := in.of()
	if err != nil {
		return nil, err
	}
	page := pawl.Page{Limit: in.Limit, Order: orders[in.Order]}
	if err := readCursor(in.After, &page.After); err != nil {
		return nil, err
	}
	listed, err := a.e.List(ctx, f, page)
	if err != nil {
		return nil, err
	}
	out := JobList{Jobs: make([]Job, len(listed.Jobs)), Stopped: listed.Stopped}
	for i := range listed.Jobs {
		out.Jobs[i] = jobOf(&listed.Jobs[i], false, true)
	}
	if listed.More {
		out.Next = cursor(listed.Next)
	}
	return answer(out), nil
}

type countInput struct {
	JobFilter
	Cap int `query:"cap" minimum:"1" maximum:"10000" default:"10000" doc:"where it stops"`
}

// JobCount is how many jobs there are.
type JobCount struct {
	Jobs int  `json:"jobs"`
	More bool `json:"more,omitempty" doc:"it came to a bound: there may be more"`
}

func (a *api) countJobs(ctx context.Context, in *countInput) (*body[JobCount], error) {
	f, err := in.of()
	if err != nil {
		return nil, err
	}
	n, err := a.e.Count(ctx, f, in.Cap)
	if err != nil {
		return nil, err
	}
	return answer(JobCount{n.Jobs, n.More}), nil
}

type getInput struct {
	JobPath
	Wait string `query:"wait" doc:"how long to wait for the end of the job at most, such as 10s; a minute is the most" maxLength:"20"`
}

// getJob reads a job, after a while if asked to.
func (a *api) getJob(ctx context.Context, in *getInput) (*body[Job], error) {
	j, err := a.job(ctx, in)
	if err != nil {
		return nil, err
	}
	return answer(jobOf(&j, true, auth.From(ctx).Hidden)), nil
}

func (a *api) job(ctx context.Context, in *getInput) (pawl.JobRecord, error) {
	id, err := job.ParseID(in.ID)
	if err != nil {
		return pawl.JobRecord{}, err
	}
	wait, err := readDuration("wait", in.Wait, longestWait)
	if err != nil || wait == 0 {
		if err != nil {
			return pawl.JobRecord{}, err
		}
		return a.e.Get(ctx, id)
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	j, err := a.e.Wait(waiting, id)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return a.e.Get(ctx, id) // as it is by now
	}
	return j, err
}

func (a *api) getResult(ctx context.Context, in *getInput) (*body[payload], error) {
	j, err := a.job(ctx, in)
	switch {
	case err != nil:
		return nil, err
	case j.State != job.Done:
		return nil, newProblem(http.StatusConflict, "not-done", "the job is "+j.State.String())
	case j.Result == nil:
		return nil, newProblem(http.StatusNotFound, "no-result", "the job's handler kept no result")
	}
	return answer(*payloadOf(j.Result)), nil
}

type logsInput struct {
	JobPath
	Skip  int `query:"skip" minimum:"0" maximum:"100000" doc:"lines"`
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

// LogLine is one line of a job's log.
type LogLine struct {
	Time  time.Time `json:"time"`
	Run   int64     `json:"run"`
	Level int       `json:"level" doc:"-4 debug, 0 info, 4 warning, 8 error"`
	Text  string    `json:"text"`
}

// LogList is some of them.
type LogList struct {
	Lines []LogLine `json:"lines" nullable:"false"`
}

func (a *api) listLogs(ctx context.Context, in *logsInput) (*body[LogList], error) {
	id, err := job.ParseID(in.ID)
	if err != nil {
		return nil, err
	}
	lines, err := a.e.Logs(ctx, id, in.Skip, in.Limit)
	if err != nil {
		return nil, err
	}
	out := LogList{Lines: make([]LogLine, len(lines))}
	for i, l := range lines {
		out.Lines[i] = LogLine{l.Time, l.Run, l.Level, l.Text}
	}
	return answer(out), nil
}

func (a *api) getWhy(ctx context.Context, in *JobPath) (*body[pawl.Why], error) {
	id, err := job.ParseID(in.ID)
	if err != nil {
		return nil, err
	}
	why, err := a.e.Why(ctx, id)
	if err != nil {
		return nil, err
	}
	return answer(why), nil
}

// Draft is a job to be enqueued.
type Draft struct {
	Kind     string            `json:"kind" minLength:"1" maxLength:"200"`
	Args     json.RawMessage   `json:"args,omitempty" doc:"any JSON value; null without it"`
	ID       string            `json:"id,omitempty" format:"uuid" doc:"of the caller's choice (UUIDv7), so that a send whose answer was lost can be repeated"`
	Queue    string            `json:"queue,omitempty" maxLength:"200"`
	Priority int               `json:"priority,omitempty" minimum:"1" maximum:"9"`
	At       time.Time         `json:"at,omitzero" doc:"when it falls due"`
	In       string            `json:"in,omitempty" doc:"after how long it falls due, such as 10m" maxLength:"20"`
	Attempts int               `json:"attempts,omitempty" minimum:"1" maximum:"10000"`
	Timeout  string            `json:"timeout,omitempty" doc:"of one attempt" maxLength:"20"`
	Deadline time.Time         `json:"deadline,omitzero"`
	Key      string            `json:"key,omitempty" maxLength:"1024"`
	Tags     []string          `json:"tags,omitempty" maxItems:"100"`
	Needs    []string          `json:"needs,omitempty" maxItems:"100"`
	Headers  map[string]string `json:"headers,omitempty"`
	Unique   *Unique           `json:"unique,omitempty" doc:"accept it only if no live job of its kind is the same"`
}

// Unique says what makes a job the same as another.
type Unique struct {
	Key     string `json:"key,omitempty" doc:"of the caller's; without it the arguments" maxLength:"1024"`
	ByQueue bool   `json:"by_queue,omitempty" doc:"only in the same queue"`
	HeldFor string `json:"held_for,omitempty" doc:"also for so long after it was enqueued" maxLength:"20"`
}

type enqueueInput struct {
	Body Draft
}

// Receipt is what became of a draft.
type Receipt struct {
	ID        string `json:"id" format:"uuid" doc:"of the job, or of the one that was there first"`
	Duplicate bool   `json:"duplicate,omitempty" doc:"nothing was added"`
}

func (a *api) enqueueJob(ctx context.Context, in *enqueueInput) (*body[Receipt], error) {
	d := &in.Body
	opts, err := d.options()
	if err != nil {
		return nil, err
	}
	keyed := keyFrom(ctx) != ""
	if keyed {
		if d.Unique != nil {
			return nil, newProblem(http.StatusUnprocessableEntity, "invalid", keyHeader+": a job that is unique has a key of its own")
		}
		opts = append(opts, pawl.Unique(pawl.ByKey(storedKey(ctx, "enqueue")), pawl.HeldFor(keptFor)))
	}
	r, err := a.e.Enqueue(ctx, pawl.RawArgs(d.Kind, d.args()), opts...)
	if err != nil {
		return nil, err
	}
	if keyed && r.Duplicate {
		if err := a.sameArgs(ctx, r.ID, d.args()); err != nil {
			return nil, err
		}
	}
	return answer(Receipt{r.ID.String(), r.Duplicate}), nil
}

// args are those of a draft; null without any.
func (d *Draft) args() json.RawMessage {
	if len(d.Args) == 0 {
		return json.RawMessage("null")
	}
	return d.Args
}

// item is a draft that is enqueued with something else.
func (d *Draft) item() (pawl.Item, error) {
	opts, err := d.options()
	return pawl.NewItem(pawl.RawArgs(d.Kind, d.args()), opts...), err
}

// sameArgs refuses a key whose job has other arguments. One that is gone cannot be asked.
func (a *api) sameArgs(ctx context.Context, id pawl.ID, args []byte) error {
	j, err := a.e.Get(ctx, id)
	switch {
	case errors.Is(err, pawl.ErrNotFound):
		return nil
	case err != nil:
		return err
	case !sameJSON(j.Args, args):
		return fmt.Errorf("%s %q %w", keyHeader, keyFrom(ctx), errKeyReused)
	}
	return nil
}

// sameJSON compares values but for the space between their parts.
func sameJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return bytes.Equal(a, b)
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}

// options are those of a draft.
func (d *Draft) options() (opts []pawl.EnqueueOption, err error) {
	add := func(some bool, o func() (pawl.EnqueueOption, error)) {
		if !some || err != nil {
			return
		}
		var option pawl.EnqueueOption
		if option, err = o(); err == nil {
			opts = append(opts, option)
		}
	}
	plain := func(o pawl.EnqueueOption) func() (pawl.EnqueueOption, error) {
		return func() (pawl.EnqueueOption, error) { return o, nil }
	}
	if !d.At.IsZero() && d.In != "" {
		return nil, newProblem(http.StatusUnprocessableEntity, "invalid", "in: there is at already")
	}
	add(d.ID != "", func() (pawl.EnqueueOption, error) {
		id, err := job.ParseID(d.ID)
		return pawl.WithID(id), err
	})
	add(d.Queue != "", plain(pawl.Queue(d.Queue)))
	add(d.Priority != 0, plain(pawl.Priority(d.Priority)))
	add(!d.At.IsZero(), plain(pawl.At(d.At)))
	add(d.In != "", func() (pawl.EnqueueOption, error) {
		in, err := readDuration("in", d.In, 0)
		return pawl.In(in), err
	})
	add(d.Attempts != 0, plain(pawl.Attempts(d.Attempts)))
	add(d.Timeout != "", func() (pawl.EnqueueOption, error) {
		t, err := readDuration("timeout", d.Timeout, 0)
		return pawl.Timeout(t), err
	})
	add(!d.Deadline.IsZero(), plain(pawl.Deadline(d.Deadline)))
	add(d.Key != "", plain(pawl.Key(d.Key)))
	add(len(d.Tags) > 0, plain(pawl.Tags(d.Tags...)))
	add(len(d.Needs) > 0, plain(pawl.Needs(d.Needs...)))
	add(len(d.Headers) > 0, plain(pawl.Headers(d.Headers)))
	add(d.Unique != nil, d.unique)
	return opts, err
}

func (d *Draft) unique() (pawl.EnqueueOption, error) {
	var rules []pawl.UniqueRule
	if rules = append(rules, pawl.ByArgs()); d.Unique.Key != "" {
		rules = []pawl.UniqueRule{pawl.ByKey(d.Unique.Key)}
	}
	if d.Unique.ByQueue {
		rules = append(rules, pawl.ByQueue())
	}
	if d.Unique.HeldFor != "" {
		held, err := readDuration("unique.held_for", d.Unique.HeldFor, 0)
		if err != nil {
			return nil, err
		}
		rules = append(rules, pawl.HeldFor(held))
	}
	return pawl.Unique(rules...), nil
}
