package webui

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// errorMessage is what an error says that jobs failed of, by its fingerprint: as the newest of the last 30 days said it. Empty where that
// is not known, or still being read. The groups of dead jobs are read alike.
func (v *view) errorMessage(fingerprint string) string {
	month := *v
	month.query = url.Values{"range": {"30d"}}
	groups, err := month.failures("")
	if err != nil {
		return "" // it is only a name
	}
	for i := range groups {
		if groups[i].Fingerprint == fingerprint {
			return groups[i].Message
		}
	}
	return ""
}

// errorOf is errorMessage of an error of which jobs match: the first of them has it.
func (v *view) errorOf(q *jobsQuery) string {
	list, err := v.app.e.List(v.ctx, q.filter(v.Now), pawl.Page{Limit: 1})
	if err == nil && len(list.Jobs) > 0 {
		if last, ok := list.Jobs[0].Failures.Last(); ok {
			return last.Message
		}
	}
	return v.errorMessage(q.Error)
}

// errorWords names an error for people, to whom its fingerprint says nothing.
func errorWords(fingerprint, message string) string {
	if message == "" {
		return "one error (" + fingerprint + ")"
	}
	return "error “" + message + "”"
}

// words says which jobs a query means, for dialogs.
func (v *view) words(q *jobsQuery) string {
	var parts []string
	for _, c := range q.chips() {
		switch c.Name {
		case "q":
			parts = append(parts, "text "+c.Text)
		case "error":
			parts = append(parts, errorWords(q.Error, v.errorOf(q)))
		default:
			parts = append(parts, c.Name+" "+c.Text)
		}
	}
	text := "all jobs"
	if q.View != "" {
		text = "all " + strings.ToLower(q.view().Text) + " jobs"
	}
	if q.View == "retries" {
		text = "all jobs that wait for another attempt"
	}
	return with(text, parts)
}

func with(text string, parts []string) string {
	if len(parts) == 0 {
		return text
	}
	return text + " with " + strings.Join(parts, ", ")
}

// filterWords says which jobs a filter means, for the audit log: as words says it of a query.
func (v *view) filterWords(f *pawl.Filter) string {
	var parts, states []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" "+value)
		}
	}
	add("kind", f.Kind)
	add("queue", f.Queue)
	add("key", f.Key)
	add("tag", f.Tag)
	if f.Worker > 0 {
		add("worker", strconv.FormatInt(int64(f.Worker), 10))
	}
	if f.Fingerprint != "" {
		parts = append(parts, errorWords(f.Fingerprint, v.errorMessage(f.Fingerprint)))
	}
	for _, s := range f.States {
		word := s.String()
		switch {
		case s == job.Waiting && !f.DueBefore.IsZero():
			word = "ready"
		case s == job.Waiting && !f.DueAfter.IsZero():
			word = "scheduled"
		}
		states = append(states, word)
	}
	text := "all jobs"
	if len(states) > 0 {
		text = "all " + strings.Join(states, " and ") + " jobs"
	}
	if !f.CreatedAfter.IsZero() {
		text += " created since " + dated(f.CreatedAfter, v.Now) + " UTC"
	}
	if !f.FinishedAfter.IsZero() {
		text += " that ended since " + dated(f.FinishedAfter, v.Now) + " UTC"
	}
	if !f.FinishedBefore.IsZero() {
		text += " that ended before " + dated(f.FinishedBefore, v.Now) + " UTC"
	}
	return with(text, parts)
}
