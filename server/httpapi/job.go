package httpapi

import (
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// Job is a job over the wire.
type Job struct {
	ID           string            `json:"id" format:"uuid"`
	Kind         string            `json:"kind"`
	Queue        string            `json:"queue"`
	State        string            `json:"state" enum:"blocked,waiting,running,suspended,done,dead,cancelled,skipped"`
	Priority     int               `json:"priority" doc:"1 first, 9 last"`
	Version      int               `json:"version,omitempty" doc:"of the arguments"`
	Args         *payload          `json:"args,omitempty" doc:"not in lists, nor for who may not see payloads"`
	Result       *payload          `json:"result,omitempty" doc:"as args"`
	Headers      map[string]string `json:"headers,omitempty" doc:"as args"`
	Key          string            `json:"key,omitempty"`
	Tags         []string          `json:"tags,omitempty"`
	Needs        []string          `json:"needs,omitempty" doc:"capabilities of a worker"`
	Created      time.Time         `json:"created"`
	Due          time.Time         `json:"due"`
	Started      time.Time         `json:"started,omitzero" doc:"of the last run"`
	Finished     time.Time         `json:"finished,omitzero"`
	Expires      time.Time         `json:"expires,omitzero" doc:"when the archive drops it"`
	Deadline     time.Time         `json:"deadline,omitzero"`
	Timeout      string            `json:"timeout,omitempty" doc:"of one attempt"`
	Run          int64             `json:"run" doc:"number of the newest claim"`
	Attempt      int               `json:"attempt" doc:"that runs, or is next"`
	Used         int               `json:"used" doc:"attempts"`
	MaxAttempts  int               `json:"max_attempts"`
	Lost         int               `json:"lost,omitempty" doc:"runs that ended with their process"`
	Snoozes      int               `json:"snoozes,omitempty"`
	Throttles    int               `json:"throttles,omitempty"`
	Worker       int64             `json:"worker,omitempty" doc:"who runs it, or ran it last"`
	CancelAsked  bool              `json:"cancel_asked,omitempty"`
	Wait         string            `json:"wait,omitempty" doc:"what it waits for while suspended"`
	Reason       string            `json:"reason,omitempty"`
	Progress     *Progress         `json:"progress,omitempty"`
	FailureCount int               `json:"failure_count,omitempty" doc:"that are kept"`
	Failures     []Failure         `json:"failures,omitempty" doc:"not in lists; the oldest first"`
	Unreadable   []string          `json:"unreadable,omitempty" doc:"fields that are stored but cannot be read"`
}

// Progress is how far a job says that it is.
type Progress struct {
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Note  string `json:"note,omitempty"`
}

// Failure is a run that failed.
type Failure struct {
	Time        time.Time `json:"time,omitzero"`
	Attempt     int       `json:"attempt,omitempty"`
	Run         int64     `json:"run,omitempty"`
	Worker      int64     `json:"worker,omitempty"`
	Label       string    `json:"label,omitempty" doc:"of the process"`
	Version     string    `json:"version,omitempty" doc:"of its build"`
	Started     time.Time `json:"started,omitzero"`
	Message     string    `json:"message"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	Stack       string    `json:"stack,omitempty"`
}

// jobOf is a job for somebody, whole or as in a list.
func jobOf(j *pawl.JobRecord, whole, hidden bool) Job {
	w := Job{
		ID: j.ID.String(), Kind: j.Kind, Queue: j.Queue, State: j.State.String(), Priority: j.Priority, Version: j.Version,
		Key: j.Key, Tags: j.Tags, Needs: j.Capabilities, Created: j.Created, Due: j.Due, Started: j.Started, Finished: j.Finished,
		Expires: j.Expires, Deadline: j.Deadline, Run: j.Run, Attempt: j.Attempt(), Used: j.Used, MaxAttempts: j.MaxAttempts, Lost: j.Lost,
		Snoozes: j.Snoozes, Throttles: j.Throttles(), Worker: int64(j.Worker), CancelAsked: j.CancelAsked, Reason: j.Reason,
		Unreadable: j.Unreadable,
	}
	if j.Timeout > 0 {
		w.Timeout = j.Timeout.String()
	}
	if j.State == job.Suspended {
		w.Wait = j.Wait.String()
	}
	if j.Progress != (job.Progress{}) {
		w.Progress = &Progress{j.Progress.Done, j.Progress.Total, j.Progress.Note}
	}
	failures := j.Failures.List()
	w.FailureCount = len(failures)
	if !whole {
		return w
	}
	for _, f := range failures {
		w.Failures = append(w.Failures, Failure{
			Time: f.Time, Attempt: f.Attempt, Run: f.Run, Worker: int64(f.Worker), Label: f.Label, Version: f.Version, Started: f.Started,
			Message: f.Message, Fingerprint: f.Fingerprint, Stack: f.Stack,
		})
	}
	if !hidden {
		w.Args, w.Result, w.Headers = payloadOf(j.Args), payloadOf(j.Result), j.Headers()
	}
	return w
}

// JobFilter chooses jobs, in the parameters of a list or in a body.
type JobFilter struct {
	States         []string  `query:"state" json:"state,omitempty" doc:"one or more, with commas" enum:"blocked,waiting,running,suspended,done,dead,cancelled,skipped"`
	Queue          string    `query:"queue" json:"queue,omitempty" maxLength:"200"`
	Kind           string    `query:"kind" json:"kind,omitempty" maxLength:"200" doc:"exactly, or the beginning of several: mail.*"`
	Key            string    `query:"key" json:"key,omitempty" maxLength:"1024"`
	Tag            string    `query:"tag" json:"tag,omitempty" maxLength:"200"`
	Worker         int64     `query:"worker" json:"worker,omitempty" doc:"who runs it; only running jobs match" minimum:"0"`
	Fingerprint    string    `query:"fingerprint" json:"fingerprint,omitempty" maxLength:"64" doc:"of the last failure"`
	DueBefore      time.Time `query:"due_before" json:"due_before,omitzero"`
	DueAfter       time.Time `query:"due_after" json:"due_after,omitzero"`
	CreatedBefore  time.Time `query:"created_before" json:"created_before,omitzero"`
	CreatedAfter   time.Time `query:"created_after" json:"created_after,omitzero"`
	FinishedBefore time.Time `query:"finished_before" json:"finished_before,omitzero"`
	FinishedAfter  time.Time `query:"finished_after" json:"finished_after,omitzero"`
}

func (f *JobFilter) of() (pawl.Filter, error) {
	out := pawl.Filter{
		Queue: f.Queue, Kind: f.Kind, Key: f.Key, Tag: f.Tag, Worker: job.WorkerID(f.Worker), Fingerprint: f.Fingerprint,
		DueBefore: f.DueBefore, DueAfter: f.DueAfter, CreatedBefore: f.CreatedBefore, CreatedAfter: f.CreatedAfter,
		FinishedBefore: f.FinishedBefore, FinishedAfter: f.FinishedAfter,
	}
	for _, name := range f.States {
		s, err := job.ParseState(strings.TrimSpace(name))
		if err != nil {
			return out, err
		}
		out.States = append(out.States, s)
	}
	return out, nil
}

// filterOf is a filter as it is shown.
func filterOf(f *pawl.Filter) JobFilter {
	out := JobFilter{
		Queue: f.Queue, Kind: f.Kind, Key: f.Key, Tag: f.Tag, Worker: int64(f.Worker), Fingerprint: f.Fingerprint,
		DueBefore: f.DueBefore, DueAfter: f.DueAfter, CreatedBefore: f.CreatedBefore, CreatedAfter: f.CreatedAfter,
		FinishedBefore: f.FinishedBefore, FinishedAfter: f.FinishedAfter,
	}
	for _, s := range f.States {
		out.States = append(out.States, s.String())
	}
	return out
}
