package job

import (
	"fmt"
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
		return "suspended: " + j.Reason
	case Waiting:
	default:
		if j.Reason != "" {
			return fmt.Sprintf("%s since %s: %s", j.State, stamp(j.Finished), j.Reason)
		}
		return fmt.Sprintf("%s since %s", j.State, stamp(j.Finished))
	}
	if j.Due.After(s.Now) {
		if n := len(j.Failures); n > 0 && j.Used > 0 {
			return fmt.Sprintf("not due until %s: attempt %d failed (%s)", stamp(j.Due), j.Used, clip(j.Failures[n-1].Message, 200))
		}
		return "not due until " + stamp(j.Due)
	}
	if s.QueuePaused {
		return fmt.Sprintf("queue %s is paused", j.Queue)
	}
	if why := NoWorker(j, s.Workers); why != "" {
		return why
	}
	more := ""
	if s.AheadCapped {
		more = "+"
	}
	return fmt.Sprintf("ready: waits for a free slot of queue %s behind %d%s jobs", j.Queue, s.Ahead, more)
}

// NoWorker says why none of the live workers of its queue takes a job; empty when
// one does.
func NoWorker(j *Job, workers []Offer) string {
	if len(workers) == 0 {
		return fmt.Sprintf("no live worker serves queue %s", j.Queue)
	}
	knows, known, takes := false, false, false
	for _, o := range workers {
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
	return ""
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 MST") }
