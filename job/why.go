package job

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Situation is what a store knows about why a job is not running, read in one
// snapshot.
type Situation struct {
	Job Job
	Now time.Time
	// Pause is what stops claims of it: of everything, of its queue, else of its kind.
	Pause *Pause
	// CoolDown is that of its queue; nil while none is running.
	CoolDown *CoolDown
	Workers  []Offer // of the live workers that serve the job's queue
	Label    string  // of the worker that runs it, while running
	// Unheard is that worker when its beats have stopped: its lease still runs.
	Unheard *Unheard
	// Use is how much of the total of the job's queue is used, if it has one.
	Use Use
	// Holding are the workers that share the total of the job's queue and whose
	// beats have stopped: until they are lost, their portions are nobody else's,
	// and nobody new gets one. Those that were lost, or left, hold what they still
	// run until it is taken back.
	Holding []Unheard
	// Gate is how the gate of a job that waits behind one stands, Bound what it allows,
	// by the limits that who asks knows; nil: it knows none.
	Gate  GateUse
	Bound *GateBound
	// Also bounds it beside that gate. How many of those run is not counted.
	Also        []GateBound
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
	run := fmt.Sprintf("%s on %d %s, %d %s it", plural(u.Running, "runs", "run"), u.Workers, plural(u.Workers, "worker", "workers"),
		u.Sharing, plural(u.Sharing, "shares", "share"))
	if u.Running >= u.Total {
		return fmt.Sprintf("its total of %d is used up: %d %s", u.Total, u.Running, run)
	}
	return fmt.Sprintf("%d of its total of %d %s", u.Running, u.Total, run)
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

// Why is what keeps a job from running. Its String is the sentence; the rest is
// for whoever puts jobs that wait for the same thing together.
type Why struct {
	Code  WhyCode   `json:"code"`
	Queue string    `json:"queue"`
	Kind  string    `json:"kind"`
	Until time.Time `json:"until,omitzero"` // when that is over, as far as is known
	// Ahead is how many ready jobs of the queue come first, More that there are
	// more than were counted.
	Ahead int  `json:"ahead,omitempty"`
	More  bool `json:"more,omitempty"`
	// Blocker is who or what is in the way: a worker's label, what nobody has, the
	// reason that was given.
	Blocker string `json:"blocker,omitempty"`
	Text    string `json:"text"`
}

func (w Why) String() string { return w.Text }

// WhyCode tells the things apart that keep a job from running.
type WhyCode string

// What keeps a job from running, in the order in which a claim would meet it.
const (
	WhyRunning      WhyCode = "running"       // nothing: it runs
	WhyUnheard      WhyCode = "unheard"       // it runs on a worker whose beats have stopped
	WhyEnded        WhyCode = "ended"         // it is done, dead or cancelled
	WhyFlow         WhyCode = "flow"          // jobs of its flow come first
	WhySuspended    WhyCode = "suspended"     // it waits for something outside
	WhyParked       WhyCode = "parked"        // its arguments cannot be read by this build
	WhyScheduled    WhyCode = "scheduled"     // it is not due yet
	WhySnoozed      WhyCode = "snoozed"       // its handler put it off
	WhyThrottled    WhyCode = "throttled"     // its handler was throttled, and waits for the limit that did
	WhyRetry        WhyCode = "retry"         // it failed, and waits for its next attempt
	WhyFrozen       WhyCode = "frozen"        // everything is paused
	WhyPaused       WhyCode = "paused"        // its queue is paused
	WhyKindPaused   WhyCode = "kind_paused"   // its kind is paused
	WhyCooling      WhyCode = "cooling"       // its queue cools down
	WhyNoWorker     WhyCode = "no_worker"     // nobody serves its queue
	WhyNoKind       WhyCode = "no_kind"       // nobody there knows its kind
	WhyNoVersion    WhyCode = "no_version"    // nobody there knows its version
	WhyNoCapability WhyCode = "no_capability" // nobody there has what it needs
	WhyUnreadable   WhyCode = "unreadable"    // what it needs cannot be read
	WhyGate         WhyCode = "gate"          // it waits behind a gate of which nobody knows the limit
	WhyLimit        WhyCode = "limit"         // its limit, or its key, is at its bound
	WhyOrder        WhyCode = "order"         // another job of its key comes first
	WhyRate         WhyCode = "rate"          // the tokens of its limit are used up
	WhyTotal        WhyCode = "total"         // the total of its queue is used up
	WhySlot         WhyCode = "slot"          // it is ready, and waits for a free slot
)

// Explain names the one thing that keeps the job from running, in the order in
// which a claim would meet it. Nothing waits silently (P5).
func Explain(s Situation) Why {
	w := Why{Queue: s.Job.Queue, Kind: s.Job.Kind}
	w.Code, w.Text = explain(&s, &w)
	return w
}

func explain(s *Situation, w *Why) (WhyCode, string) {
	j := &s.Job
	switch j.State {
	case Running:
		w.Blocker = s.Label
		if s.Unheard != nil {
			w.Blocker, w.Until = s.Unheard.Label, s.Unheard.Until
			return WhyUnheard, fmt.Sprintf("running since %s on %s", stamp(j.Started), s.Unheard)
		}
		if j.CancelAsked {
			return WhyRunning, fmt.Sprintf("running on %s since %s, asked to cancel", s.Label, stamp(j.Started))
		}
		return WhyRunning, fmt.Sprintf("running on %s since %s", s.Label, stamp(j.Started))
	case Blocked:
		return WhyFlow, "blocked by its flow"
	case Suspended:
		w.Blocker = j.Reason
		switch j.Wait {
		case NoWait:
			return WhySuspended, "suspended: " + j.Reason
		case Parked:
			return WhyParked, fmt.Sprintf("%s: %s", j.Wait, j.Reason)
		}
		return WhySuspended, fmt.Sprintf("%s: %s", j.Wait, j.Reason)
	case Waiting:
	default:
		w.Blocker = j.Reason
		return WhyEnded, ended(j)
	}
	if j.Due.After(s.Now) {
		w.Until = j.Due
		code, why := postponed(j, w)
		return code, "not due until " + stamp(j.Due) + why
	}
	if s.Pause != nil {
		w.Blocker = s.Pause.blocker()
		return s.Pause.code(), s.Pause.String()
	}
	if s.CoolDown != nil {
		w.Blocker, w.Until = "queue "+j.Queue, s.CoolDown.Until
		return WhyCooling, s.CoolDown.String()
	}
	if code, why := noWorker(j, s.Workers, w); code != "" {
		return code, why
	}
	if j.Gate() != 0 {
		if code, why := gated(s, w); code != "" {
			return code, why
		}
	}
	return ready(s, w)
}

// ready says what a job waits for that some worker could take.
func ready(s *Situation, w *Why) (WhyCode, string) {
	j, jobs := &s.Job, plural(s.Ahead, " job", " jobs")
	if s.AheadCapped {
		jobs = "+ jobs"
	}
	w.Ahead, w.More = s.Ahead, s.AheadCapped
	code, text := WhySlot, fmt.Sprintf("ready: waits for a free slot of queue %s behind %d%s", j.Queue, s.Ahead, jobs)
	if j.Suspect() {
		text += "; " + suspected(j)
	}
	if s.Use.Total > 0 {
		text += "; " + s.Use.String()
		if s.Use.Running >= s.Use.Total {
			code = WhyTotal
		}
	}
	for i := range s.Also {
		if b := &s.Also[i]; b.Concurrent > 0 {
			text += fmt.Sprintf("; %s bounds it too, at most %d at once", b.whose(), b.Concurrent)
		}
	}
	n := len(s.Holding)
	if n == 0 {
		return code, text
	}
	w.Blocker, w.Until = s.Holding[0].Label, s.Holding[0].Until
	if n == 1 {
		return WhyTotal, fmt.Sprintf("%s; a portion of its total belongs to %s", text, &s.Holding[0])
	}
	return WhyTotal, fmt.Sprintf("%s; portions of its total belong to %d workers that are lost or not heard of, such as %s", text, n, &s.Holding[0])
}

// suspected says how a suspect is run.
func suspected(j *Job) string {
	if j.Alone() {
		return fmt.Sprintf("it was lost with its process %s, so it runs alone in its process, one such job at a time (deferred %d of %d times)",
			times(j.Lost), j.Deferred, MaxDeferred)
	}
	return fmt.Sprintf("it was lost with its process %s and deferred %s, so it runs beside others, one such job in a process", times(j.Lost), times(j.Deferred))
}

// NoWorker says why none of the live workers of its queue takes a job; empty when
// one does.
func NoWorker(j *Job, workers []Offer) string {
	_, why := noWorker(j, workers, &Why{})
	return why
}

func noWorker(j *Job, workers []Offer, w *Why) (WhyCode, string) {
	if len(workers) == 0 {
		return WhyNoWorker, fmt.Sprintf("no live worker serves queue %s", j.Queue)
	}
	if slices.Contains(j.Unreadable, "capabilities") {
		return WhyUnreadable, "what it needs of a worker cannot be read, so none takes it"
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
		return WhyNoKind, fmt.Sprintf("no live worker of queue %s knows kind %s", j.Queue, j.Kind)
	case !knows:
		return WhyNoVersion, fmt.Sprintf("no live worker of queue %s knows version %d of kind %s", j.Queue, j.Version, j.Kind)
	case !takes:
		w.Blocker = strings.Join(j.Capabilities, ", ")
		return WhyNoCapability, fmt.Sprintf("no live worker of queue %s that knows kind %s has %v", j.Queue, j.Kind, j.Capabilities)
	}
	return "", ""
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
func postponed(j *Job, w *Why) (WhyCode, string) {
	if j.Reason != "" {
		w.Blocker = clip(j.Reason, 200)
		if j.Throttles() > 0 {
			return WhyThrottled, ": " + w.Blocker
		}
		return WhySnoozed, ": snoozed: " + w.Blocker
	}
	last, failed := j.Failures.Last()
	if failed {
		w.Blocker = clip(last.Message, 200)
	}
	if failed && last.Store && last.Run == j.Run {
		return WhyRetry, fmt.Sprintf(": the store failed its run, which burned no attempt (%s)", w.Blocker)
	}
	if failed && j.Used > 0 {
		return WhyRetry, fmt.Sprintf(": attempt %d failed (%s)", j.Used, w.Blocker)
	}
	w.Blocker = ""
	if j.Suspect() && j.Deferred > 0 {
		return WhyRetry, ": " + suspected(j)
	}
	return WhyScheduled, ""
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 MST") }
