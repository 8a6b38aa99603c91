package webui

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
)

// bulkActions are done to many jobs: those of the fields ids, or, with the field all, those that the query in the other fields matches.
var bulkActions = []action{
	{noun: "jobs", verb: "retry", role: auth.Operator, label: "Retry…", ask: askBulk("retry"), do: doBulk("retry")},
	{noun: "jobs", verb: "run", role: auth.Operator, label: "Run now…", ask: askBulk("run"), do: doBulk("run")},
	{noun: "jobs", verb: "cancel", role: auth.Operator, label: "Cancel…", ask: askBulk("cancel"), do: doBulk("cancel")},
	{noun: "jobs", verb: "requeue", role: auth.Operator, label: "Requeue to…", ask: askBulk("requeue"), do: doBulk("requeue")},
	{noun: "jobs", verb: "priority", role: auth.Operator, label: "Priority…", ask: askBulk("priority"), do: doBulk("priority")},
	{noun: "jobs", verb: "delete", role: auth.Operator, label: "Delete…", class: "bad", ask: askBulk("delete"), do: doBulk("delete")},
	{noun: "jobs", verb: "all", role: auth.Operator, label: "All that match…", ask: askAll,
		do: func(*act) (*outcome, error) { return &outcome{Text: "Nothing changed."}, nil }},
	{noun: "operation", verb: "stop", role: auth.Operator, label: "Stop", do: stopOperation},
}

// bulkWords are how dialogs and toasts say it.
var bulkWords = map[string]struct{ ask, done, can string }{
	"retry": {"Retry", "Retried", "can be retried"}, "run": {"Run", "Made due", "are made due"}, "cancel": {"Cancel", "Cancelled",
		"are cancelled"},
	"requeue": {"Move", "Moved", "are moved"}, "priority": {"Set the priority of", "Set the priority of",
		"get the new priority"}, "delete": {"Delete", "Deleted", "are deleted"},
}

// Bounds of operations over many jobs.
const (
	typedOver  = 500    // jobs, from which on their number has to be typed
	dryRunMost = 10_000 // jobs that a dry run looks at
	promptly   = 3 * time.Second
)

// bulkOf is what the fields of a form name: some jobs, or a query.
func (a *act) bulkOf() (ids []pawl.ID, q *jobsQuery, err error) {
	if a.get("all") != "" {
		path := "/jobs"
		values := url.Values{}
		for name, v := range a.form {
			values[name] = v
		}
		values.Set("state", a.get("view"))
		switch a.get("view") {
		case "scheduled", "retries", "dead":
			path += "/" + a.get("view")
		}
		return nil, readJobs(path, values), nil
	}
	for _, text := range a.form["ids"] {
		id, err := pawl.ParseID(text)
		if err != nil {
			return nil, nil, err
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil, nil, &fault{422, "Nothing is selected.", "Tick some jobs first."}
	}
	if len(ids) > maxRows {
		return nil, nil, &fault{422, "Too many are selected.", fmt.Sprintf("At most %d can be ticked; select all that match instead.", maxRows)}
	}
	return ids, nil, nil
}

// bulk is the engine's operation for a verb and a query.
func (a *act) bulk(verb string, q *jobsQuery) (pawl.Bulk, error) {
	f := q.filter(a.Now)
	f.CreatedBefore = a.Now // those that come later are not meant
	if q.Text != "" || q.View == "retries" {
		return pawl.Bulk{}, &fault{422, "This list cannot be changed as a whole.",
			"Text and retries are found row by row: tick the jobs instead."}
	}
	switch verb {
	case "retry":
		return pawl.BulkRetry(f), nil
	case "cancel":
		return pawl.BulkCancel(f), nil
	case "delete":
		return pawl.BulkDelete(f), nil
	case "requeue":
		return pawl.BulkRequeue(f, a.get("to")), nil
	case "priority":
		n, err := readPriority(a.get("priority"))
		return pawl.BulkPriority(f, n), err
	}
	return pawl.Bulk{}, &fault{422, "This cannot be done to all that match.", "Tick the jobs instead."}
}

func askBulk(verb string) func(*act) (*dialog, error) {
	return func(a *act) (*dialog, error) {
		ids, q, err := a.bulkOf()
		if err != nil {
			return nil, err
		}
		d := &dialog{Bad: verb == "delete", Note: "optional"}
		switch verb {
		case "requeue":
			d.Fields = []field{{Name: "to", Label: "Queue to move them to", Value: a.get("to")}}
		case "priority":
			d.Fields = []field{{Name: "priority", Label: "Priority", Value: "5", Options: priorities, Hint: "1 comes first, 9 last."}}
		case "delete":
			d.Text = "Arguments, errors and logs go with them."
		}
		n, looked := pawl.Counted{Jobs: len(ids)}, int64(0)
		if q != nil {
			if n, looked, err = a.foresee(verb, q, d); err != nil {
				return nil, err
			}
		}
		if n.Jobs == 0 {
			nothing := &dialog{Title: "There is nothing to do.", Text: "No job matches.", Facts: d.Facts[:min(len(d.Facts), 1)]}
			if looked > 0 {
				nothing.Text = "None of the jobs that match can be changed in this way."
			}
			return nothing, nil
		}
		jobs := plural(n, "job", "jobs")
		d.Title = bulkWords[verb].ask + " " + jobs + "?"
		switch d.Button = bulkWords[verb].ask + " " + jobs; verb {
		case "run":
			d.Title, d.Button = "Run "+jobs+" now?", "Run "+jobs+" now"
		case "delete":
			d.Title = "Delete " + jobs + " for good?"
		case "priority":
			d.Button = "Set the priority"
		}
		if n.Jobs > typedOver {
			d.Type, d.Note = strconv.Itoa(n.Jobs), "required"
		}
		return d, nil
	}
}

// foresee counts what would change of the jobs that it looks at, and says it.
func (a *act) foresee(verb string, q *jobsQuery, d *dialog) (n pawl.Counted, looked int64, err error) {
	d.Facts = append(d.Facts, fact{"Which", a.words(q)})
	try := *a
	try.form = url.Values{"to": {"default"}, "priority": {"5"}} // any will do to count
	b, err := try.bulk(verb, q)
	if err != nil {
		return n, 0, err
	}
	op, err := a.app.e.Bulk(a.ctx, b, pawl.DryRun(), pawl.Most(dryRunMost))
	if err != nil && !errors.Is(err, pawl.ErrMore) {
		return n, 0, err
	}
	c := op.Counts
	n = pawl.Counted{Jobs: int(c.Changed + c.Asked), More: c.Looked >= dryRunMost}
	if verb == "requeue" || verb == "priority" {
		n.Jobs = int(c.Looked) // the place that was tried may be theirs already
	}
	text := counted(n) + " " + bulkWords[verb].can
	if c.Asked > 0 {
		text = fmt.Sprintf("%s are cancelled at once, %s run and are asked to stop", count(c.Changed), count(c.Asked))
	}
	if c.Duplicate > 0 {
		text += fmt.Sprintf(", %s have a live twin and stay as they are", count(c.Duplicate))
	}
	d.Facts = append(d.Facts, fact{"Dry run", text})
	if verb == "retry" {
		if about := a.estimate(q, n.Jobs); about != "" {
			d.Facts = append(d.Facts, fact{"Takes", about})
		}
	}
	return n, c.Looked, nil
}

// estimate is how long jobs of one queue take, by what they took in the last hour; empty where too little is known.
func (a *act) estimate(q *jobsQuery, n int) string {
	l, err := a.look()
	if err != nil {
		return ""
	}
	m, err := a.app.e.Metrics(a.ctx, pawl.MetricQuery{Queue: q.Queue, Kind: q.Kind})
	if err != nil || len(m.Series) != 1 {
		return ""
	}
	total := m.Total()
	for i := range l.Queues {
		if s := &l.Queues[i]; s.Name == m.Series[0].Queue && s.Slots > 0 && total.RunTime.Count() >= 10 {
			return fmt.Sprintf("queue %s runs %d at a time: about %s", s.Name, s.Slots,
				duration(roughly(total.RunTime.Mean()*time.Duration(n)/time.Duration(s.Slots))))
		}
	}
	return ""
}

func doBulk(verb string) func(*act) (*outcome, error) {
	return func(a *act) (*outcome, error) {
		ids, q, err := a.bulkOf()
		if err != nil {
			return nil, err
		}
		if q == nil {
			return a.each(verb, ids)
		}
		b, err := a.bulk(verb, q)
		if err != nil {
			return nil, err
		}
		if err := a.confirmed(verb, q); err != nil {
			return nil, err
		}
		op, err := a.app.e.Bulk(a.ctx, b)
		if err != nil {
			return nil, err
		}
		a.app.told.add(op.ID) // by the answer, unless it takes long
		waiting, cancel := context.WithTimeout(a.ctx, promptly)
		defer cancel()
		if now, err := a.app.e.WaitOperation(waiting, op.ID); err == nil {
			return &outcome{Text: operationText(&now)}, nil
		}
		a.app.told.drop(op.ID)
		return &outcome{Text: "It goes on by itself, also when this page is closed.",
			More: "How far it is, and a button to stop it, are shown on every page."}, nil
	}
}

// confirmed wants the number that was typed, and a note, where there are many.
func (a *act) confirmed(verb string, q *jobsQuery) error {
	d := &dialog{}
	n, _, err := a.foresee(verb, q, d)
	if err != nil || n.Jobs <= typedOver {
		return err
	}
	typed, err := strconv.Atoi(strings.ReplaceAll(strings.TrimSpace(a.get("typed")), ",", ""))
	if err != nil || typed < n.Jobs*9/10 || typed > n.Jobs*11/10 { // they come and go meanwhile
		return &fault{422, "Not confirmed.", fmt.Sprintf("Type %d: so many jobs are meant now.", n.Jobs)}
	}
	if strings.TrimSpace(a.get("note")) == "" {
		return &fault{422, "Not confirmed.", fmt.Sprintf("Over %d jobs need a note for the audit log.", typedOver)}
	}
	return nil
}

// each does something to jobs one by one.
func (a *act) each(verb string, ids []pawl.ID) (*outcome, error) {
	do := map[string]func(context.Context, pawl.ID) (pawl.Change, error){
		"retry": a.app.e.Retry, "run": a.app.e.RunNow, "cancel": a.app.e.Cancel, "delete": a.app.e.Delete,
		"requeue": func(ctx context.Context, id pawl.ID) (pawl.Change, error) {
			return a.app.e.Requeue(ctx, id, a.get("to"))
		},
	}[verb]
	if verb == "priority" {
		n, err := readPriority(a.get("priority"))
		if err != nil {
			return nil, err
		}
		do = func(ctx context.Context, id pawl.ID) (pawl.Change, error) { return a.app.e.SetPriority(ctx, id, n) }
	}
	came := map[pawl.Change]int{}
	for _, id := range ids {
		c, err := do(a.ctx, id)
		if err != nil {
			return nil, err
		}
		came[c]++
	}
	out := &outcome{Text: bulkWords[verb].done + " " + plural(exactly(came[pawl.Changed]), "job", "jobs") + "."}
	if n := came[pawl.Asked]; n > 0 {
		out.Text = strings.TrimSuffix(out.Text, ".") + ", asked " + count(n) + " to stop."
	}
	if came[pawl.Changed]+came[pawl.Asked] == 0 {
		out.Text = "Nothing changed."
	}
	var rest []string
	for _, w := range []struct {
		c    pawl.Change
		text string
	}{
		{pawl.Ended, "had ended already"}, {pawl.Duplicate, "have a live twin"}, {pawl.Active, "were running or ready already"},
		{pawl.Busy, "are held by an open transaction"}, {pawl.Same, "were so already"}, {pawl.NotFound, "were gone"},
	} {
		if n := came[w.c]; n > 0 {
			rest = append(rest, count(n)+" "+w.text)
		}
	}
	if len(rest) > 0 {
		out.More = sentence(strings.Join(rest, ", "))
	}
	return out, nil
}
