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
	// Unheard is that worker when its beats have stopped: its lease still runs.
	Unheard *Unheard
	// Use is how much of the total of the job's queue is used, if it has one.
	Use Use
	// Holding are the workers that share the total of the job's queue and whose
	// beats have stopped: until they are lost, their portions are nobody else's,
	// and nobody new gets one. Those that were lost, or left, hold what they still
	// run until it is taken back.
	Holding     []Unheard
	Ahead       int // ready jobs of the queue that come first, capped
	AheadCapped bool
}

// Use is how much of the total of a queue is used.
type Use struct {
	Total   int // how many of its jobs may run in the cluster; 0 means no bound
	Sharing int // live workers between which it is split
	Running int // its jobs that run on workers with a total
	Workers int // that run them
}

func (u *Use) String() string {
	if u.Running >= u.Total {
		return fmt.Sprintf("its total of %d is used up: %d run on %d workers, %d share it", u.Total, u.Running, u.Workers, u.Sharing)
	}
	return fmt.Sprintf("%d of its total of %d run on %d workers, %d share it", u.Running, u.Total, u.Workers, u.Sharing)
}

// Unheard is a worker that has stopped to beat.
type Unheard struct {
	Label string
	Since time.Time // of its last beat
	Until time.Time // when it may be declared lost
	Lost  bool      // it was declared lost, or has left
	Runs  int       // that it holds, of the queue, when it is lost
}

func (u *Unheard) String() string {
	if u.Lost {
		return fmt.Sprintf("%s, which is lost or has left, and holds %d of its runs until they are taken back", u.Label, u.Runs)
	}
	return fmt.Sprintf("%s, not heard of since %s (its lease ends %s)", u.Label, stamp(u.Since), stamp(u.Until))
}

// Explain names the one thing that keeps the job from running, in the order in
// which a claim would meet it. Nothing waits silently (P5).
func Explain(s Situation) string {
	j := &s.Job
	switch j.State {
	case Running:
		if s.Unheard != nil {
			return fmt.Sprintf("running since %s on %s", stamp(j.Started), s.Unheard)
		}
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
	if why := NoWorker(j, s.Workers); why != "" {
		return why
	}
	return ready(&s)
}

// ready says what a job waits for that some worker could take.
func ready(s *Situation) string {
	j, more := &s.Job, ""
	if s.AheadCapped {
		more = "+"
	}
	text := fmt.Sprintf("ready: waits for a free slot of queue %s behind %d%s jobs", j.Queue, s.Ahead, more)
	if j.Suspect() {
		text += "; " + suspected(j)
	}
	if s.Use.Total > 0 {
		text += "; " + s.Use.String()
	}
	switch n := len(s.Holding); n {
	case 0:
		return text
	case 1:
		return fmt.Sprintf("%s; a portion of its total belongs to %s", text, &s.Holding[0])
	default:
		return fmt.Sprintf("%s; portions of its total belong to %d workers that are lost or not heard of, such as %s", text, n, &s.Holding[0])
	}
}

// suspected says how a suspect is run.
func suspected(j *Job) string {
	if j.Alone() {
		return fmt.Sprintf("it was lost with its process %d times, so it runs alone in its process, one such job at a time (deferred %d of %d times)",
			j.Lost, j.Deferred, MaxDeferred)
	}
	return fmt.Sprintf("it was lost with its process %d times and deferred %d times, so it runs beside others, one such job in a process", j.Lost, j.Deferred)
}

// NoWorker says why none of the live workers of its queue takes a job; empty when
// one does.
func NoWorker(j *Job, workers []Offer) string {
	if len(workers) == 0 {
		return fmt.Sprintf("no live worker serves queue %s", j.Queue)
	}
	if slices.Contains(j.Unreadable, "capabilities") {
		return "what it needs of a worker cannot be read, so none takes it"
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
	last, failed := j.Failures.Last()
	if failed && last.Store && last.Run == j.Run {
		return fmt.Sprintf(": the store failed its run, which burned no attempt (%s)", clip(last.Message, 200))
	}
	if failed && j.Used > 0 {
		return fmt.Sprintf(": attempt %d failed (%s)", j.Used, clip(last.Message, 200))
	}
	if j.Suspect() && j.Deferred > 0 {
		return ": " + suspected(j)
	}
	return ""
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 MST") }
