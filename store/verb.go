package store

import (
	"cmp"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Verb is what an operator does to jobs.
type Verb struct {
	Name     VerbName `json:"name"`
	Queue    string   `json:"queue,omitempty"`    // of VerbRequeue: where to
	Priority int      `json:"priority,omitempty"` // of VerbPriority: the new one
}

// VerbName tells verbs apart. The names are stored, and are what the audit log calls
// them.
type VerbName string

// The verbs. None touches a running job but VerbCancel and VerbDelete, which ask it to stop.
const (
	VerbCancel   VerbName = "cancel"
	VerbRetry    VerbName = "retry"
	VerbDelete   VerbName = "delete"
	VerbRequeue  VerbName = "requeue"      // into another queue; due time and unique key stay, its gate is that of the new queue
	VerbPriority VerbName = "set priority" // due time, gate and unique key stay
	VerbRunNow   VerbName = "run now"      // due at once, before all others of its queue and priority
)

// Known reports whether this build has the verb.
func (v Verb) Known() bool {
	switch v.Name {
	case VerbCancel, VerbRetry, VerbDelete, VerbRequeue, VerbPriority, VerbRunNow:
		return true
	}
	return false
}

// Check refuses a verb that cannot be done.
func (v Verb) Check() error {
	switch {
	case !v.Known():
		return job.Invalid("verb", string(v.Name), "must be cancel, retry, delete, requeue, set priority or run now")
	case v.Name == VerbRequeue:
		return job.CheckName("queue", v.Queue)
	case v.Name == VerbPriority && (v.Priority < job.MinPriority || v.Priority > job.MaxPriority):
		return job.Invalid("priority", v.Priority, fmt.Sprintf("must be %d..%d", job.MinPriority, job.MaxPriority))
	}
	return nil
}

// Standing is where a job stands among others.
type Standing struct {
	Queue    string
	Priority int
}

// Moved is where a verb puts a job.
func (v Verb) Moved(at Standing) Standing {
	switch v.Name {
	case VerbRequeue:
		at.Queue = v.Queue
	case VerbPriority:
		at.Priority = v.Priority
	}
	return at
}

// PlaceAnswer is Changed for a job that VerbRequeue or VerbPriority is to move, live
// or in the archive, from where a retry brings it back. It is Same where it stands
// there already. Running jobs are left alone.
func PlaceAnswer(v Verb, live *job.Subject, ended job.State, at Standing) Change {
	switch {
	case live == nil && ended != job.Dead && ended != job.Cancelled:
		return goneAnswer(ended)
	case live != nil && live.State == job.Running:
		return Active
	case v.Moved(at) == at:
		return Same
	}
	return Changed
}

// RunNowAnswer is Changed for a job that waits, due or not.
func RunNowAnswer(live *job.Subject, ended job.State) Change {
	switch {
	case live == nil:
		return goneAnswer(ended)
	case live.State != job.Waiting:
		return Active
	}
	return Changed
}

// Answer is what a verb answers for a job that nobody holds, by what is known of it.
// Only the unique key of one that comes back from the archive is left out.
func (v Verb) Answer(live *job.Subject, ended job.State, at Standing, now time.Time) Change {
	switch v.Name {
	case VerbCancel:
		return CancelAnswer(live, ended)
	case VerbDelete:
		return DeleteAnswer(live, ended)
	case VerbRetry:
		answer, _ := RetryAnswer(live, ended, now)
		return answer
	case VerbRunNow:
		return RunNowAnswer(live, ended)
	}
	return PlaceAnswer(v, live, ended, at)
}

// Touches reports whether a verb can do something to a job of a state: one that is as
// ready for it as such a job can be.
func (v Verb) Touches(s job.State) bool {
	now := time.Unix(0, 0)
	live, ended := &job.Subject{State: s, Due: now.Add(1), Wait: job.Parked}, job.State(0)
	if s.Final() {
		live, ended = nil, s
	}
	c := v.Answer(live, ended, Standing{Priority: v.Priority + 1}, now)
	return c == Changed || c == Asked
}

// Detail is what the audit log says that a verb did to a job: what it was, and what
// it is now.
func (v Verb) Detail(c Change, was job.State, at Standing) string {
	if c == Asked {
		return "running, asked to stop"
	}
	switch v.Name {
	case VerbCancel:
		return was.String() + " → cancelled"
	case VerbDelete:
		return was.String() + " → deleted"
	case VerbRetry:
		return was.String() + " → waiting, due"
	case VerbRequeue:
		return "queue " + at.Queue + " → " + v.Queue
	case VerbPriority:
		return fmt.Sprintf("priority %d → %d", at.Priority, v.Priority)
	}
	return "first of queue " + at.Queue + fmt.Sprintf(", priority %d", at.Priority)
}

// StateOf is the state of a job that is live, or has ended.
func StateOf(live *job.Subject, ended job.State) job.State {
	if live == nil {
		return ended
	}
	return cmp.Or(live.State, ended)
}

// Left is the answer for a job that is not what an operation looked for any more.
func Left(was job.State) Change {
	switch {
	case was == 0:
		return NotFound
	case was.Final():
		return Ended
	}
	return Active
}
