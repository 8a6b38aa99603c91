package webui

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

var jobPages = []page{{
	path: "/jobs/{id}", name: "job", title: "Job", under: "jobs", load: loadJob,
	regions: []region{
		{name: "head", every: time.Second},
		{name: "progress", every: time.Second},
		{name: "attempts", every: time.Second},
		{name: "attempt-error", every: 2 * time.Second},
		{name: "log-head", every: 2 * time.Second, tag: "header", load: loadLogHead, fails: "Logs"},
		{name: "log", every: time.Second, tag: "div", class: "code log", attrs: `tabindex="0" role="log" aria-label="Log"`, items: loadLog,
			grows: true, fails: "Logs"},
		{name: "result", every: 2 * time.Second},
		{name: "facts", every: 2 * time.Second},
		{name: "near", load: loadNear, fails: "What is near it"},
	},
}}

var jobDownloads = []download{
	{"/jobs/{id}/args", func(v *view) (string, []byte, error) {
		j, err := v.theJob()
		return "args.txt", j.Args, err
	}},
	{"/jobs/{id}/result", func(v *view) (string, []byte, error) {
		j, err := v.theJob()
		return "result.txt", j.Result, err
	}},
}

// theJob reads the job that the address names.
func (v *view) theJob() (pawl.JobRecord, error) {
	id, err := pawl.ParseID(v.params["id"])
	if err != nil {
		return pawl.JobRecord{}, &fault{http.StatusNotFound, "There is no such job.", fmt.Sprintf("%.60q is no id of a job.", v.params["id"])}
	}
	j, err := v.app.e.Get(v.ctx, id)
	if errors.Is(err, pawl.ErrNotFound) {
		return j, &fault{http.StatusNotFound, "No job " + id.String() + ".",
			"It may have been purged: jobs are kept for a while after they ended, done ones for 7 days unless their queue says otherwise. " +
				"Or it was deleted; the audit log says so then."}
	}
	return j, err
}

// jobData is what all parts of the page share.
type jobData struct {
	Job      pawl.JobRecord
	State    string
	Why      pawl.Why
	Attempts []attempt
	Life     template.HTML
	Chosen   *attempt // whose error is shown
	Level    string
	Attempt  string // of which logs are shown
	Gone     bool   // it was deleted while somebody looks
	log      *logRead
}

// nameWorker says by its label who ran the last run, while that is known.
func (v *view) nameWorker(d *jobData) {
	n := len(d.Attempts)
	if l, err := v.look(); err == nil && n > 0 && d.Attempts[n-1].Run == d.Job.Run {
		for i := range l.Workers {
			if w := &l.Workers[i]; w.ID == d.Job.Worker {
				d.Attempts[n-1].Worker = workerName(w.Worker.Label, w.Worker.Version, w.ID)
			}
		}
	}
}

// Kept is how long it is kept after its end.
func (d *jobData) Kept() time.Duration { return d.Job.Expires.Sub(d.Job.Finished) }

// sameError is how many jobs are dead of the error that a job died of, and how many of those are of its kind: counted at most four
// times a minute, since it walks an index.
func (v *view) sameError(j *pawl.JobRecord) (all, ofKind pawl.Counted) {
	last, ok := j.Failures.Last()
	if !ok || last.Fingerprint == "" {
		return all, ofKind
	}
	counts, err := cached(v, "same error "+last.Fingerprint+"\n"+j.Kind, 15*time.Second, func(ctx context.Context) ([2]pawl.Counted, error) {
		f := pawl.Filter{Fingerprint: last.Fingerprint, States: []pawl.State{job.Dead}}
		all, err := v.app.e.Count(ctx, f, 1000)
		if err != nil {
			return [2]pawl.Counted{}, err
		}
		f.Kind = j.Kind
		ofKind, err := v.app.e.Count(ctx, f, 1000)
		return [2]pawl.Counted{all, ofKind}, err
	})
	if err != nil {
		return all, ofKind // it is only a hint
	}
	return counts[0], counts[1]
}

func loadJob(v *view) (any, error) {
	j, err := v.theJob()
	if err != nil {
		if f := (*fault)(nil); v.live && errors.As(err, &f) {
			return &jobData{Gone: true}, nil
		}
		return nil, err
	}
	d := &jobData{Job: j, State: stateOf(&j, v.Now), Level: v.query.Get("level"), Attempt: v.query.Get("attempt")}
	if d.Why, err = v.app.e.Why(v.ctx, j.ID); err != nil && !errors.Is(err, pawl.ErrNotFound) {
		return nil, err
	}
	d.Attempts = attemptsOf(&j, v.Now)
	v.nameWorker(d)
	d.Life = v.life(&j, d.Attempts)
	chosen, _ := strconv.Atoi(d.Attempt)
	for i := range d.Attempts {
		a := &d.Attempts[i]
		if a.Message != "" && (chosen == 0 || a.Number == chosen) {
			d.Chosen = a // the last that fits
		}
	}
	if d.Chosen != nil {
		d.Chosen.Open = true
	}
	v.Title, v.Crumb = j.Kind, []anchor{{"Jobs", v.app.link("/jobs")}}
	return d, nil
}

// ReasonText is why it was put off or stopped, where that is known.
func (d *jobData) ReasonText() string {
	if last, ok := d.Job.Failures.Last(); ok && last.Message == d.Job.Reason {
		return ""
	}
	return d.Job.Reason
}

// Number is that of the attempt that runs, comes next or was the last.
func (d *jobData) Number() int { return attemptNumber(&d.Job) }

// attemptNumber is which attempt of a job runs or comes next, or was its last.
func attemptNumber(j *pawl.JobRecord) int {
	n := j.Attempt()
	if j.State == job.Dead || j.State == job.Cancelled {
		n = j.Used
	}
	return min(max(n, 1), max(j.MaxAttempts, 1))
}

// Running reports whether it runs.
func (d *jobData) Running() bool { return d.Job.State == job.Running }

// Ended reports whether it has.
func (d *jobData) Ended() bool { return d.Job.State.Final() }

// EndWord is what its end is called.
func (d *jobData) EndWord() string {
	return map[pawl.State]string{job.Done: "Done", job.Dead: "Died", job.Cancelled: "Cancelled", job.Skipped: "Skipped"}[d.Job.State]
}

// Percent is how far it says that it is; below 0: it does not.
func (d *jobData) Percent() float64 {
	if d.Job.Progress.Total <= 0 {
		return -1
	}
	return float64(d.Job.Progress.Done) / float64(d.Job.Progress.Total) * 100
}

// PercentText is the same as text.
func (d *jobData) PercentText() string {
	return percent(float64(d.Job.Progress.Done), float64(d.Job.Progress.Total))
}

// Pace is how many steps a minute it makes, and about how long it goes on at that pace; empty before it has run a while.
func (d *jobData) Pace(now time.Time) (list []fact) {
	ran := now.Sub(d.Job.Started)
	if !d.Running() || d.Job.Progress.Done < 10 || ran < 10*time.Second {
		return nil
	}
	pace := float64(d.Job.Progress.Done) / ran.Minutes()
	number, unit := rate(uint64(d.Job.Progress.Done), ran)
	list = append(list, fact{"Pace", number + map[bool]string{true: " a minute", false: " an hour"}[unit == "/min"]})
	if left := d.Job.Progress.Total - d.Job.Progress.Done; left > 0 {
		d := time.Duration(float64(left) / pace * float64(time.Minute))
		list = append(list, fact{"Left", "about " + duration(d.Round(max(time.Second, d/20)))})
	}
	return list
}

// Trace is the trace that it was enqueued in.
func (d *jobData) Trace() string { return d.Job.Headers()["traceparent"] }

// near is one line of what is near a job.
type near struct {
	Count, Text, Link string
}

func loadNear(v *view) (any, error) {
	d := v.data.(*jobData)
	j := &d.Job
	var list []near
	add := func(f pawl.Filter, text, link string) error {
		n, err := v.app.e.Count(v.ctx, f, 1000)
		if err == nil && n.Jobs > 0 {
			list = append(list, near{counted(n), text, link})
		}
		return err
	}
	if all, _ := v.sameError(j); all.Jobs > 0 {
		last, _ := j.Failures.Last()
		list = append(list, near{counted(all), "dead of the same error", v.app.link("/jobs/dead", "error", last.Fingerprint)})
	}
	if j.Key != "" {
		f := pawl.Filter{Key: j.Key, States: []pawl.State{job.Waiting, job.Running, job.Suspended, job.Blocked}}
		if err := add(f, "live with the same key", v.app.link("/jobs", "key", j.Key)); err != nil {
			return nil, err
		}
	}
	f := pawl.Filter{Kind: j.Kind, States: []pawl.State{job.Done}, FinishedAfter: v.Now.Add(-time.Hour)}
	if err := add(f, "done of this kind, last hour", v.app.link("/jobs", "kind", j.Kind, "state", "done")); err != nil {
		return nil, err
	}
	audit, err := v.app.e.Audit(v.ctx, pawl.AuditFilter{Target: j.ID.String()}, pawl.AuditPage{Limit: 100})
	if err != nil {
		return nil, err
	}
	if n := len(audit.Entries); n > 0 {
		list = append(list, near{counted(pawl.Counted{Jobs: n, More: audit.More}), "operator actions on it",
			v.PageLink("audit", "/audit", "target", j.ID)})
	}
	return list, nil
}

// Unique says until when nobody else may be the same as it.
func (d *jobData) Unique() string {
	if !d.Job.Ties.Has(job.TieUnique) {
		return ""
	}
	return "no other like it while it lives"
}
