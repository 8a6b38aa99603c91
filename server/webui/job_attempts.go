package webui

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// attempt is one run of a job that came to something, or goes on.
type attempt struct {
	Number  int
	Run     int64
	Outcome string // a state as people see it
	Started time.Time
	Ended   time.Time // zero while it runs
	Waited  time.Duration
	Ran     time.Duration
	Worker  string
	Message string
	Print   string
	Stack   string
	Open    bool // its error is shown
}

// attemptsOf are the runs that are known: the failures that are kept, and the last run.
func attemptsOf(j *pawl.JobRecord, now time.Time) (list []attempt) {
	from := j.Created
	for _, f := range j.Failures.List() {
		a := attempt{
			Number: f.Attempt, Run: f.Run, Outcome: "retried", Started: f.Started, Ended: f.Time, Worker: workerName(f.By.Label, f.By.Version,
				f.Worker),
			Message: f.Message, Print: f.Fingerprint, Stack: f.Stack,
		}
		if wasLost(&f) {
			a.Outcome = "lost"
		}
		if !f.Started.IsZero() {
			a.Ran, a.Waited = f.Time.Sub(f.Started), f.Started.Sub(from)
		}
		if !f.Time.IsZero() {
			from = f.Time
		}
		list = append(list, a)
	}
	if n := len(list); n > 0 && j.State == job.Dead && list[n-1].Run == j.Run {
		list[n-1].Outcome = "dead"
		return list
	}
	last := attempt{Number: j.Used, Run: j.Run, Started: j.Started, Ended: j.Finished, Outcome: j.State.String(),
		Worker: workerName("", "", j.Worker)}
	switch {
	case j.Started.IsZero():
		return list
	case j.State == job.Running:
		last.Number, last.Ended, last.Outcome = j.Attempt(), time.Time{}, "running"
		last.Ran = now.Sub(j.Started)
	case j.State == job.Done || j.State == job.Cancelled && j.Finished.After(j.Started):
		last.Ran = j.Finished.Sub(j.Started)
		last.Number = max(j.Attempt(), 1)
		if j.State == job.Done && j.Used > 0 && len(list) == 0 {
			last.Number = j.Used
		}
	default:
		return list
	}
	last.Waited = max(j.Started.Sub(from), 0)
	return append(list, last)
}

// lostPrint is of what a store says of a run whose worker was lost.
var lostPrint = job.Fingerprint("the worker was lost while it ran the job")

// wasLost reports whether a run ended with its worker: no attempt of the job failed, so nobody is named.
func wasLost(f *pawl.Failure) bool { return f.Fingerprint == lostPrint && f.By == job.By{} }

func workerName(label, version string, id pawl.WorkerID) string {
	switch {
	case label != "":
		if _, short, ok := strings.Cut(label, "-worker-"); ok {
			return short
		}
		return label
	case version != "":
		return version
	case id != 0:
		return fmt.Sprintf("worker %d", id)
	}
	return ""
}

// Glyph is of its outcome, in the life strip.
func (a *attempt) Glyph() string {
	switch a.Outcome {
	case "done":
		return "check"
	case "running":
		return "running"
	case "retried":
		return "g-r"
	}
	return "g-x"
}

// Shown are the attempts of the table, the newest first; of more than 12 the first 3 and the last 9.
func (d *jobData) Shown() (list []attempt) {
	for i := len(d.Attempts) - 1; i >= 0; i-- {
		if n := len(d.Attempts); n > 12 && i >= 3 && i < n-9 {
			continue
		}
		list = append(list, d.Attempts[i])
	}
	return list
}

// Unlisted says that a job was taken more often than it has attempts: the store counts every run, and keeps what came of those that
// failed and of the last one. A run that was given back leaves nothing else.
func (d *jobData) Unlisted() string {
	n := int(d.Job.Run) - len(d.Attempts)
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("%s without a row here: given back, snoozed or throttled, or long ago", plural(exactly(n), "run", "runs"))
}

// Left is how many attempts the table leaves out.
func (d *jobData) Left() int { return max(len(d.Attempts)-12, 0) }

// piece of a life: a wait or a run.
type piece struct {
	wait   bool
	length time.Duration
	run    *attempt
}

// life draws waits and runs one after the other, widths by the logarithm of their lengths: a run of milliseconds beside a wait of hours
// would not be seen. The table below has the same as text.
func (v *view) life(j *pawl.JobRecord, attempts []attempt) template.HTML {
	if len(attempts) == 0 {
		return ""
	}
	shown := attempts
	if len(shown) > 12 {
		shown = shown[len(shown)-12:]
	}
	var pieces []piece
	for i := range shown {
		pieces = append(pieces, piece{wait: true, length: shown[i].Waited}, piece{length: shown[i].Ran, run: &shown[i]})
	}
	if !j.State.Final() && j.State != job.Running {
		pieces = append(pieces, piece{wait: true, length: v.Now.Sub(shown[len(shown)-1].Ended)})
	}
	weight := func(p piece) float64 {
		w := math.Log10(10 + float64(p.length.Milliseconds()))
		if p.wait {
			return w
		}
		return .55 + w*.28
	}
	total := 0.0
	for _, p := range pieces {
		total += weight(p)
	}
	var b strings.Builder
	words := fmt.Sprintf("Created %s, %s", j.Created.UTC().Format("15:04:05"), plural(exactly(len(attempts)), "attempt", "attempts"))
	if j.State.Final() {
		words += ", " + j.State.String() + " at " + j.Finished.UTC().Format("15:04:05") + " UTC"
	}
	fmt.Fprintf(&b, `<svg class="life" role="img" aria-label="%s"><circle class="born" cx="5" cy="28" r="4"/>`,
		template.HTMLEscapeString(words))
	const from, to = 1.2, 99.6
	x := from
	for _, p := range pieces {
		wide := weight(p) / total * (to - from)
		switch {
		case p.wait:
			fmt.Fprintf(&b, `<line class="wait" x1="%[1]s%%" x2="%[2]s%%" y1="28" y2="28"/>`, decimal(x), decimal(x+wide))
			if wide > 5 {
				fmt.Fprintf(&b, `<text class="w" x="%s%%" y="17">%s</text>`, decimal(x+wide/2), duration(p.length))
			}
		default:
			fmt.Fprintf(&b, `<rect class="run r-%s" x="%s%%" y="19" width="%s%%" height="18" rx="3"/>`, p.run.Outcome, decimal(x), decimal(wide))
			fmt.Fprintf(&b, `<svg x="%s%%" y="22" width="12" height="12" overflow="visible">`+
				`<use class="g" href="%s#%s" x="-6" width="12" height="12"/></svg>`,
				decimal(x+wide/2), v.app.asset("icons.svg"), p.run.Glyph())
			fmt.Fprintf(&b, `<text class="n" x="%s%%" y="51">%d</text>`, decimal(x+wide/2), p.run.Number)
		}
		x += wide
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}
