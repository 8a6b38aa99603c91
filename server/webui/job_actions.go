package webui

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
)

// jobActions are done to one job: the field id names it.
var jobActions = []action{
	{noun: "job", verb: "retry", role: auth.Operator, label: "Retry", key: "r", do: retryJob},
	{noun: "job", verb: "run", role: auth.Operator, label: "Run now", key: "r", do: runJob},
	{noun: "job", verb: "cancel", role: auth.Operator, label: "Cancel…", key: "c", ask: askCancel, do: cancelJob},
	{noun: "job", verb: "delete", role: auth.Operator, label: "Delete…", class: "bad", key: "#", ask: askDelete, do: deleteJob},
	{noun: "job", verb: "requeue", role: auth.Operator, label: "Requeue…", ask: askRequeue, do: requeueJob},
	{noun: "job", verb: "priority", role: auth.Operator, label: "Priority…", ask: askPriority, do: setJobPriority},
}

// named is a job as sentences call it: invoice.render …d7e6.
func named(j *pawl.JobRecord) string { return j.Kind + " " + tail(j.ID) }

// theJob reads the job that an action is about.
func (a *act) theJob() (pawl.JobRecord, error) {
	id, err := a.jobID()
	if err != nil {
		return pawl.JobRecord{}, err
	}
	return a.app.e.Get(a.ctx, id)
}

// change does something to the job. words say what each answer means; those it has none for say what they say of every action.
func (a *act) change(do func(context.Context, pawl.ID) (pawl.Change, error), words map[pawl.Change]string) (*outcome, error) {
	j, err := a.theJob()
	if err != nil {
		return nil, err
	}
	c, err := do(a.ctx, j.ID)
	if err != nil {
		return nil, err
	}
	if text, ok := words[c]; ok {
		return &outcome{Text: fmt.Sprintf(text, named(&j))}, nil
	}
	text := map[pawl.Change]string{
		pawl.NotFound: "%s is gone already.", pawl.Changed: "Done to %s.", pawl.Asked: "%s was asked to stop.",
		pawl.Ended: "Nothing changed: %s has ended already.", pawl.Duplicate: "Nothing changed: another job holds the unique key of %s.",
		pawl.Active: "Nothing changed: %s is running or ready already.", pawl.Busy: "An open transaction holds %s; try again.",
		pawl.Same: "Nothing changed: %s is so already.",
	}[c]
	return &outcome{Text: fmt.Sprintf(text, named(&j)), Bad: c == pawl.Busy}, nil
}

func retryJob(a *act) (*outcome, error) {
	return a.change(a.app.e.Retry, map[pawl.Change]string{pawl.Changed: "Retried %s. It is ready."})
}

func runJob(a *act) (*outcome, error) {
	return a.change(a.app.e.RunNow, map[pawl.Change]string{pawl.Changed: "%s is due now."})
}

func askCancel(a *act) (*dialog, error) {
	j, err := a.theJob()
	switch {
	case err != nil:
		return nil, err
	case j.State.Final():
		return &dialog{Title: named(&j) + " has ended already.", Text: "There is nothing to cancel."}, nil
	case j.State == job.Running:
		return &dialog{
			Title: "Ask " + named(&j) + " to stop?", Text: "Its handler is told at once; if it succeeds all the same, it is done.",
			Note: "optional", Button: "Ask it to stop",
		}, nil
	}
	d := &dialog{Title: "Cancel " + named(&j) + "?", Text: "It has not run and will not.", Note: "optional", Button: "Cancel the job"}
	if j.Run > 0 {
		d.Text = "It does not run now, and will not run again."
	}
	return d, nil
}

func cancelJob(a *act) (*outcome, error) {
	return a.change(a.app.e.Cancel, map[pawl.Change]string{pawl.Changed: "Cancelled %s.", pawl.Asked: "Asked %s to stop."})
}

func askDelete(a *act) (*dialog, error) {
	j, err := a.theJob()
	if err != nil {
		return nil, err
	}
	d := &dialog{Title: "Delete " + named(&j) + " for good?", Text: "Arguments, errors and logs go with it.", Note: "optional",
		Button: "Delete the job", Bad: true}
	if j.State == job.Running {
		d.Text = "It runs: it is asked to cancel first, and can be deleted when it has ended."
		d.Button = "Ask it to stop"
	}
	return d, nil
}

func deleteJob(a *act) (*outcome, error) {
	out, err := a.change(a.app.e.Delete, map[pawl.Change]string{
		pawl.Changed: "Deleted %s.", pawl.Asked: "%s runs: it was asked to cancel.", pawl.NotFound: "%s was gone already.",
	})
	if err == nil {
		if id, _ := a.jobID(); a.get("back") == a.app.link("/jobs/{}", id) {
			if _, gone := a.app.e.Get(a.ctx, id); gone != nil {
				out.Goto = a.app.link("/jobs")
			}
		}
	}
	return out, err
}

func askRequeue(a *act) (*dialog, error) {
	j, err := a.theJob()
	if err != nil {
		return nil, err
	}
	return &dialog{
		Title: "Move " + named(&j) + " to another queue?", Fields: []field{{Name: "queue", Label: "Queue", Value: a.get("queue"),
			Hint: "It is in " + j.Queue + " now."}},
		Note: "optional", Button: "Move the job",
	}, nil
}

func requeueJob(a *act) (*outcome, error) {
	queue := a.get("queue")
	return a.change(func(ctx context.Context, id pawl.ID) (pawl.Change, error) { return a.app.e.Requeue(ctx, id, queue) },
		map[pawl.Change]string{pawl.Changed: "Moved %s."})
}

func askPriority(a *act) (*dialog, error) {
	j, err := a.theJob()
	if err != nil {
		return nil, err
	}
	return &dialog{
		Title: "Give " + named(&j) + " another priority?", Note: "optional", Button: "Set the priority",
		Fields: []field{{Name: "priority", Label: "Priority", Value: fmt.Sprint(j.Priority), Options: priorities,
			Hint: "1 comes first, 9 last."}},
	}, nil
}

var priorities = []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}

func setJobPriority(a *act) (*outcome, error) {
	priority, err := readPriority(a.get("priority"))
	if err != nil {
		return nil, err
	}
	return a.change(func(ctx context.Context, id pawl.ID) (pawl.Change, error) {
		return a.app.e.SetPriority(ctx, id, priority)
	},
		map[pawl.Change]string{pawl.Changed: "%s has its new priority."})
}

func readPriority(text string) (int, error) {
	n := slices.Index(priorities, text) + 1
	if n == 0 {
		return 0, job.Invalid("priority", text, "must be 1..9")
	}
	return n, nil
}
