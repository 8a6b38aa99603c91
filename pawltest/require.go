package pawltest

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// Enqueue hands in a job.
func (e *Engine) Enqueue(args pawl.Args, opts ...pawl.EnqueueOption) pawl.Receipt {
	e.t.Helper()
	e.watch.moved()
	r, err := e.Engine.Enqueue(e.ctx, args, opts...)
	if err != nil {
		e.t.Fatalf("enqueue %T: %v", args, err)
	}
	return r
}

// Enqueued returns the jobs of a kind that were handed in and committed, whatever
// became of them, the oldest first. Jobs whose queue keeps nothing are not among
// them once they have ended.
func (e *Engine) Enqueued(kind string) (jobs []job.Job) {
	e.t.Helper()
	for j := range e.all(pawl.Filter{Kind: kind}) {
		jobs = append(jobs, j)
	}
	slices.Reverse(jobs)
	return jobs
}

// RequireEnqueued fails the test unless a job with these arguments was handed in
// and committed, whatever became of it. It returns that job, the newest of
// several. What an open transaction holds is seen by Inside.
func (e *Engine) RequireEnqueued(args pawl.Args) job.Job {
	e.t.Helper()
	want := e.draft(args)
	for j := range e.all(pawl.Filter{Kind: want.Kind}) {
		if bytes.Equal(j.Args, want.Args) {
			return j
		}
	}
	e.t.Fatalf("no job %s %s among %s", want.Kind, want.Args, e.describe(pawl.Filter{Kind: want.Kind}))
	return job.Job{}
}

// RequireNotEnqueued fails the test if a job with these arguments was handed in
// and committed, whatever became of it. Other arguments of the same kind do not
// count; for a whole kind see Enqueued.
func (e *Engine) RequireNotEnqueued(args pawl.Args) {
	e.t.Helper()
	want := e.draft(args)
	for j := range e.all(pawl.Filter{Kind: want.Kind}) {
		if bytes.Equal(j.Args, want.Args) {
			e.t.Fatalf("there is a job %s %s: %s is %s", want.Kind, want.Args, j.ID, j.State)
		}
	}
}

// RequireState fails the test unless the job is in the state.
func (e *Engine) RequireState(id job.ID, want job.State) job.Job {
	e.t.Helper()
	j, err := e.Get(e.ctx, id)
	if err != nil {
		e.t.Fatal(err)
	}
	if j.State != want {
		why, _ := e.Why(e.ctx, id)
		e.t.Fatalf("job %s is %s (%s), want %s", id, j.State, why, want)
	}
	return j
}

func (e *Engine) count(f pawl.Filter, most int) int {
	e.t.Helper()
	n, err := e.Count(e.ctx, f, most)
	if err != nil {
		e.t.Fatal(err)
	}
	return n.Jobs
}

func (e *Engine) all(f pawl.Filter) iter.Seq[job.Job] {
	e.t.Helper()
	e.watch.moved()
	return func(yield func(job.Job) bool) {
		for page := (pawl.Page{Limit: 1000}); ; {
			list, err := e.List(e.ctx, f, page)
			if err != nil {
				e.t.Fatal(err)
			}
			for _, j := range list.Jobs {
				if !yield(j) {
					return
				}
			}
			if !list.More {
				return
			}
			page.After = list.Next
		}
	}
}

func (e *Engine) describe(f pawl.Filter) string {
	e.t.Helper()
	var lines []string
	for j := range e.all(f) {
		lines = append(lines, fmt.Sprintf("%s %s %s", j.Kind, j.Args, j.State))
		if len(lines) == 20 {
			lines = append(lines, "…")
			break
		}
	}
	if len(lines) == 0 {
		return "no jobs"
	}
	slices.Reverse(lines)
	return strings.Join(lines, "; ")
}

func (e *Engine) requireConsistent() {
	e.t.Helper()
	report, err := e.Check(e.ctx, pawl.CheckOptions{})
	if err != nil {
		e.t.Errorf("check: %v", err)
	}
	for _, f := range report.Faults {
		e.t.Errorf("check: %s: %s %s", f.Rule, f.ID, f.Detail)
	}
}
