package webui

import (
	"html/template"
	"strings"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// row is a job as a list shows it.
type row struct {
	ID       string
	State    string
	Kind     string
	Queue    string
	Key      string
	Detail   template.HTML
	Title    string // of the detail
	Attempt  int
	Attempts int
	Time     template.HTML
	Last     template.HTML
	Worker   template.HTML
	Progress float64 // in percent; below 0: none
	Can      string  // verbs that fit its state
	Columns  columns
	RunNow   bool
	Cancel   bool
}

// rows are jobs with why those wait that could run: what they share is read once.
func (v *view) rows(jobs []pawl.JobRecord, c columns) ([]row, error) {
	var ready []pawl.ID
	for i := range jobs {
		if stateOf(&jobs[i], v.Now) == "ready" {
			ready = append(ready, jobs[i].ID)
		}
	}
	why := map[pawl.ID]string{}
	if len(ready) > 0 {
		groups, err := v.app.e.WhyAll(v.ctx, ready)
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			if g.Why.Code == pawl.WhySlot || g.Why.Code == pawl.WhyRunning || g.Why.Code == pawl.WhyEnded {
				continue // it is simply in line, or went on meanwhile
			}
			for _, id := range g.Jobs {
				why[id] = whyShort(&g.Why)
			}
		}
	}
	labels := map[pawl.WorkerID]string{}
	if l, err := v.look(); err == nil && c.Worker {
		for i := range l.Workers {
			labels[l.Workers[i].ID] = l.Workers[i].Worker.Label
		}
	}
	list := make([]row, len(jobs))
	for i := range jobs {
		list[i] = v.row(&jobs[i], why[jobs[i].ID], c)
		if c.Worker {
			list[i].Worker = show(strings.TrimPrefix(labels[jobs[i].Worker], "pawl-worker-"), 40)
		}
	}
	return list, nil
}

// whyShort is why a job waits, without times: they move.
func whyShort(w *pawl.Why) string {
	switch w.Code {
	case pawl.WhyPaused:
		return "queue " + w.Queue + " is paused"
	case pawl.WhyKindPaused:
		return "kind " + w.Kind + " is paused"
	case pawl.WhyFrozen:
		return "everything is frozen"
	case pawl.WhyCooling:
		return "queue " + w.Queue + " cools down"
	}
	return w.Text
}

func (v *view) row(j *pawl.JobRecord, why string, c columns) row {
	r := row{
		ID: j.ID.String(), State: stateOf(j,
			v.Now), Kind: j.Kind, Queue: j.Queue, Key: j.Key, Attempts: j.MaxAttempts, Attempt: attemptNumber(j), Columns: c, Progress: -1,
	}
	r.Can, r.Cancel = can(j), j.State == job.Running
	r.RunNow = j.State == job.Waiting && j.Due.After(v.Now)
	detail, own := v.detail(j, why)
	if c.Detail == "Last error" && (own || c.left(j)) { // the head says what it is: nothing else stands below it
		detail, own = lastError(j), false
	}
	r.Title = plain(detail, 300)
	if r.Detail = show(detail, 200); own && v.Hidden() {
		r.Detail, r.Title = `<span class="zero">hidden</span>`, ""
	}
	if p := j.Progress; j.State == job.Running && p.Total > 0 {
		r.Progress = float64(p.Done) / float64(p.Total) * 100
	}
	r.Time, r.Last = v.rowTimes(j, r.State, c)
	return r
}

// detail is what says most about a job: why it waits, how far it is, its error, or what it was given; own says that it is the last.
func (v *view) detail(j *pawl.JobRecord, why string) (text string, own bool) {
	last, failed := j.Failures.Last()
	switch {
	case why != "":
		return why, false
	case j.State == job.Running && j.Progress.Total > 0:
		text = percent(float64(j.Progress.Done), float64(j.Progress.Total)) + ", " + count(j.Progress.Done) + " of " + count(j.Progress.Total)
		if j.Progress.Note != "" {
			text += ": " + j.Progress.Note
		}
		return text, false
	case j.State == job.Running && j.CancelAsked:
		return "asked to stop", false
	case j.State == job.Dead && failed:
		return last.Message, false
	case (j.State == job.Suspended || j.State == job.Cancelled || j.State == job.Dead) && j.Reason != "":
		return j.Reason, false
	case j.State == job.Waiting && j.Reason != "" && j.Due.After(v.Now):
		return j.Reason, false
	case j.State == job.Waiting && failed:
		return last.Message, false
	}
	if len(j.Args) == 0 {
		return "–", false
	}
	return string(j.Args), true
}

// lastError is what the last run of a job that failed said.
func lastError(j *pawl.JobRecord) string {
	if last, ok := j.Failures.Last(); ok {
		return last.Message
	}
	return "–"
}

// rowTimes are the last two columns.
func (v *view) rowTimes(j *pawl.JobRecord, state string, c columns) (time, end template.HTML) {
	word := func(w string, t template.HTML) template.HTML {
		if !c.State {
			return t // the head of the column says it
		}
		return says(template.HTML(`<span class="w">`), w, template.HTML(`</span> `), t)
	}
	end = ago(v.Now, j.Created)
	switch {
	case c.Last != "Created" && c.left(j):
		return "", v.app.pill(state)
	case c.Time == "Due" && j.State != job.Waiting: // it was when the page was opened
		time = v.app.pill(state)
	case c.Time == "Due":
		time = due(v.Now, j.Due)
	case state == "running":
		time = word("for", since(v.Now, j.Started))
	case state == "ready":
		time = word("waits", since(v.Now, j.Due))
	case j.State == job.Waiting:
		time = due(v.Now, j.Due)
	case j.State == job.Done && !j.Started.IsZero():
		time = word("took", says(duration(j.Finished.Sub(j.Started))))
	case j.State.Final():
		time = word("after", says(duration(j.Finished.Sub(j.Created))))
	default:
		time = word("waits", since(v.Now, j.Created))
	}
	if c.Last != "Created" && j.State.Final() {
		end = ago(v.Now, j.Finished)
	}
	return time, end
}

// can are the verbs that fit a job's state.
func can(j *pawl.JobRecord) string {
	switch j.State {
	case job.Waiting:
		return "cancel requeue priority delete run"
	case job.Blocked:
		return "cancel requeue priority delete"
	case job.Running:
		return "cancel"
	case job.Suspended:
		return "cancel requeue priority delete retry"
	case job.Dead, job.Cancelled:
		return "retry delete"
	}
	return "delete"
}

// loadRows are the rows of the list: on the page those that were read, in its stream the same jobs as they are now.
func loadRows(v *view) ([]item, error) {
	d := v.data.(*jobsData)
	list := d.Rows
	if v.live {
		jobs, err := v.app.e.Store().Get(v.ctx, d.ids)
		if err != nil {
			return nil, err
		}
		if list, err = v.rows(jobs, d.Columns); err != nil {
			return nil, err
		}
	}
	items := make([]item, len(list))
	for i := range list {
		items[i] = item{list[i].ID, list[i]}
	}
	return items, nil
}
