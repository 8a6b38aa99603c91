package webui

import (
	"html/template"
	"time"

	"github.com/pawlwork/pawl"
)

// whyBox is the sentence of a job, what follows from it, and what can be done.
type whyBox struct {
	State, Glyph string
	Text, Hint   template.HTML
	Actions      []template.HTML
}

// WhyBox says what is with a job.
func (v *view) WhyBox() (*whyBox, error) {
	d := v.data.(*jobData)
	j := &d.Job
	w := &whyBox{State: d.State, Glyph: d.State}
	var err error
	add := func(noun, verb string, pairs ...any) {
		if err != nil {
			return
		}
		var b template.HTML
		if b, err = v.Optional(noun, verb, pairs...); b != "" {
			w.Actions = append(w.Actions, b)
		}
	}
	id := j.ID.String()
	switch d.State {
	case "dead":
		w.Text = v.deadText(j)
		w.Hint = v.deadHint(j)
		add("job", "retry", "id", id, "class", "pri")
		if _, n := v.sameError(j); n.Jobs > 1 {
			last, _ := j.Failures.Last()
			add("jobs", "retry", "all", "1", "view", "dead", "error", last.Fingerprint, "kind", j.Kind, "label", "Retry all "+counted(n)+"…")
		}
		add("job", "delete", "id", id)
	case "running":
		worker := d.Why.Blocker
		if worker == "" {
			worker = "a worker"
		}
		w.Text = says("Running on ", said(worker), " for ", since(v.Now, j.Started), ", since ", at(v.Now, j.Started), ".")
		if d.Why.Code == pawl.WhyUnheard {
			w.State, w.Glyph = "unserved", "unserved"
			w.Text = says("Running on ", said(worker), ", which has not been heard of; its lease ends ", ago(v.Now, d.Why.Until), ".")
		}
		if j.CancelAsked {
			w.Text = says("Asked to stop. It has been running on ", said(worker), " for ", since(v.Now, j.Started), ".")
		}
		w.Hint = v.usual(j)
		if !j.CancelAsked {
			add("job", "cancel", "id", id)
		}
	case "done":
		w.Text = says("Done at ", at(v.Now, j.Finished), ", ", ago(v.Now, j.Finished), ".")
		if !j.Started.IsZero() {
			w.Hint = says("Its last run took ", duration(j.Finished.Sub(j.Started)), "; from enqueue to end it was ",
				duration(j.Finished.Sub(j.Created)), ".")
		}
		add("job", "delete", "id", id)
	case "cancelled":
		w.Text = says("Cancelled at ", at(v.Now, j.Finished), ", ", ago(v.Now, j.Finished), ".")
		if j.Reason != "" {
			w.Text = says("Cancelled at ", at(v.Now, j.Finished), ", ", ago(v.Now, j.Finished), ": ", said(j.Reason), ".")
		}
		w.Hint = says("Retry lets it wait again, with all its attempts.")
		add("job", "retry", "id", id, "class", "pri")
		add("job", "delete", "id", id)
	case "ready":
		v.readyBox(d, w, add)
	case "scheduled", "retrying", "throttled":
		w.Text = v.laterText(d)
		add("job", "run", "id", id, "class", "pri")
		add("job", "cancel", "id", id)
		add("job", "requeue", "id", id)
	case "suspended":
		w.Text = says(capital(d.Why.Text), ".")
		add("job", "retry", "id", id)
		add("job", "cancel", "id", id)
	default:
		w.Text = says(capital(d.Why.Text), ".")
		if !j.State.Final() {
			add("job", "cancel", "id", id)
		}
	}
	return w, err
}

func (v *view) deadText(j *pawl.JobRecord) template.HTML {
	when := says("Dead since ", at(v.Now, j.Finished), ", ", ago(v.Now, j.Finished))
	switch {
	case j.Used >= j.MaxAttempts:
		return says(when, ": attempt ", count(j.MaxAttempts), " of ", count(j.MaxAttempts), " failed, and no attempts are left.")
	case j.Reason != "":
		return says(when, ": ", said(j.Reason), ".")
	}
	return says(when, ": its handler gave up at attempt ", count(max(j.Used, 1)), " of ", count(j.MaxAttempts), ".")
}

// deadHint says what a retry would do, and who else died of it.
func (v *view) deadHint(j *pawl.JobRecord) template.HTML {
	hint := says("Retry gives it ", plural(exactly(j.MaxAttempts), "fresh attempt", "fresh attempts"), ".")
	last, ok := j.Failures.Last()
	if !ok || last.Fingerprint == "" {
		return hint
	}
	n, _ := v.sameError(j)
	if n.Jobs < 2 {
		return hint
	}
	n.Jobs--
	hint = says(hint, " ", anchored(v.app.link("/jobs/dead", "error", last.Fingerprint), plural(n, "more job", "more jobs"),
		" died of this error"))
	groups, err := v.failures(j.Kind)
	if err == nil {
		for i := range groups {
			if groups[i].Fingerprint == last.Fingerprint {
				f, _ := v.flow("", "")
				var marks []mark
				if f != nil {
					marks = f.Marks
				}
				hint = says(hint, ", ", failureRows{Marks: marks}.Common(v.Now, &groups[i]))
			}
		}
	}
	return says(hint, ".")
}

// usual says how long such jobs take, where enough is known.
func (v *view) usual(j *pawl.JobRecord) (hint template.HTML) {
	if f, err := v.flow(j.Queue, j.Kind); err == nil && f.Total.RunTime.Count() >= 10 {
		hint = says("It usually takes ", duration(f.Total.RunTime.Quantile(.5)), " (median of ", count(f.Total.RunTime.Count()), " runs in the ",
			f.words(), "). ")
	}
	if j.Timeout > 0 {
		hint = says(hint, "Its timeout is ", duration(j.Timeout), " an attempt. ")
	}
	if !j.Deadline.IsZero() {
		hint = says(hint, "Its deadline is ", at(v.Now, j.Deadline), ".")
	}
	return hint
}

func (v *view) readyBox(d *jobData, w *whyBox, add func(noun, verb string, pairs ...any)) {
	j := &d.Job
	waits := says("It has been ready for ", since(v.Now, j.Due), ". ")
	w.Hint = waits
	switch d.Why.Code {
	case pawl.WhyPaused, pawl.WhyFrozen, pawl.WhyKindPaused, pawl.WhyCooling:
		w.State, w.Glyph = "paused", "paused"
		v.pausedText(d, w)
		switch d.Why.Code {
		case pawl.WhyPaused:
			add("queue", "resume", "name", j.Queue, "class", "pri")
		case pawl.WhyCooling:
			w.State, w.Glyph = "cooling", "cooling"
			add("queue", "reset", "name", j.Queue)
		case pawl.WhyFrozen:
			add("queue", "unfreeze")
		case pawl.WhyKindPaused:
			add("kind", "resume", "name", j.Kind, "class", "pri")
		}
	case pawl.WhyNoWorker, pawl.WhyNoKind, pawl.WhyNoVersion, pawl.WhyNoCapability, pawl.WhyUnreadable:
		w.State, w.Glyph = "unserved", "unserved"
		w.Text = says(capital(d.Why.Text), ".")
		w.Hint = says(waits, "It starts when a worker comes that takes it, or when it is moved to another queue.")
		add("job", "requeue", "id", j.ID.String())
	default:
		w.Text = says(capital(d.Why.Text), ".")
	}
	add("job", "cancel", "id", j.ID.String())
}

func (v *view) pausedText(d *jobData, w *whyBox) {
	w.Text = says(capital(whyShort(&d.Why)), ".")
	l, err := v.look()
	if err != nil {
		return
	}
	for i := range l.Queues {
		q := &l.Queues[i]
		if q.Name != d.Job.Queue {
			continue
		}
		if q.Pause != nil {
			w.Text = says(capital(whyShort(&d.Why)), byWhom(q.Pause), ", since ", at(v.Now, q.Pause.Since), ".")
		}
		if q.CoolDown != nil && d.Why.Code == pawl.WhyCooling {
			w.Text = says("Queue ", said(q.Name), " cools down until ", at(v.Now, q.CoolDown.Until), ", throttled ", times(q.CoolDown.Throttles),
				".")
		}
	}
}

func (v *view) laterText(d *jobData) template.HTML {
	j := &d.Job
	due := says("due ", ago(v.Now, j.Due), ", at ", at(v.Now, j.Due))
	last, failed := j.Failures.Last()
	switch {
	case d.Why.Code == pawl.WhySnoozed:
		text := says("Its handler put it off: it is ", due, ".")
		if j.Reason != "" {
			text = says("Its handler put it off (", said(j.Reason), "): it is ", due, ".")
		}
		return text
	case d.State == "throttled":
		return says("It was throttled ", times(j.Throttles()), ", and is ", due, ".")
	case failed && last.Time.After(j.Created):
		return says("Attempt ", count(last.Attempt), " of ", count(j.MaxAttempts), " failed ", ago(v.Now, last.Time), "; the next is ", due, ".")
	}
	return says("It is ", due, ".")
}

// Lived is how long it was from enqueue to end, or is by now.
func (d *jobData) Lived(now time.Time) time.Duration {
	if d.Job.State.Final() {
		return d.Job.Finished.Sub(d.Job.Created)
	}
	return now.Sub(d.Job.Created)
}
