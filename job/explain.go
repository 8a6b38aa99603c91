package job

import (
	"fmt"
	"slices"
	"time"
)

// Situation is what a store knows about why a job is not running, read in one
// snapshot.
type Situation struct {
	Job         Job
	Now         time.Time
	QueuePaused bool
	Workers     []Offer // of the live workers that serve the job's queue
	Label       string  // of the worker that runs it, while running
	Ahead       int     // ready jobs of the queue that come first, capped
	AheadCapped bool
}

// Explain names the one thing that keeps the job from running, in the order in
// which a claim would meet it. Nothing waits silently (P5).
func Explain(s Situation) string {
	j := &s.Job
	switch j.State {
	case Running:
		if j.CancelAsked {
			return fmt.Sprintf("running on %s since %s, asked to cancel", s.Label, stamp(j.Started))
		}
		return fmt.Sprintf("running on %s since %s", s.Label, stamp(j.Started))
	case Blocked:
		return "blocked by its flow"
	case Suspended:
		if j.Wait == NoWait {
			return "suspended: " + j.Reason
		}
		return fmt.Sprintf("%s: %s", j.Wait, j.Reason)
	case Waiting:
	default:
		return ended(j)
	}
	if j.Due.After(s.Now) {
		return "not due until " + stamp(j.Due) + postponed(j)
	}
	if s.QueuePaused {
		return fmt.Sprintf("queue %s is paused", j.Queue)
	}
	if len(s.Workers) == 0 {
		return fmt.Sprintf("no live worker serves queue %s", j.Queue)
	}
	if slices.Contains(j.Unreadable, "capabilities") {
		return "what it needs of a worker cannot be read, so none takes it"
	}
	knows, known, takes := false, false, false
	for _, o := range s.Workers {
		if _, ok := o.Kinds[j.Kind]; ok {
			known = true
		}
		if o.Knows(j.Kind, j.Version) {
			knows = true
		}
		if o.Takes(j.Kind, j.Version, j.Capabilities) {
			takes = true
		}
	}
	switch {
	case !known:
		return fmt.Sprintf("no live worker of queue %s knows kind %s", j.Queue, j.Kind)
	case !knows:
		return fmt.Sprintf("no live worker of queue %s knows version %d of kind %s", j.Queue, j.Version, j.Kind)
	case !takes:
		return fmt.Sprintf("no live worker of queue %s that knows kind %s has %v", j.Queue, j.Kind, j.Capabilities)
	}
	more := ""
	if s.AheadCapped {
		more = "+"
	}
	return fmt.Sprintf("ready: waits for a free slot of queue %s behind %d%s jobs", j.Queue, s.Ahead, more)
}

// ended says how a job ended and, of one that died, what its last failure was.
func ended(j *Job) string {
	text := fmt.Sprintf("%s since %s", j.State, stamp(j.Finished))
	if j.Reason != "" {
		text += ": " + j.Reason
	}
	if last, ok := j.Failures.Last(); ok && j.State == Dead {
		text += fmt.Sprintf(" (%s)", clip(last.Message, 200))
	}
	return text
}

// postponed says why a job is to run later: it was put off, or has failed.
func postponed(j *Job) string {
	if j.Reason != "" {
		return ": snoozed: " + clip(j.Reason, 200)
	}
	if last, ok := j.Failures.Last(); ok && j.Used > 0 {
		return fmt.Sprintf(": attempt %d failed (%s)", j.Used, clip(last.Message, 200))
	}
	return ""
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 MST") }
