package webui

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/cron"
	"github.com/pawlwork/pawl/server/auth"
)

// cronActions are done to schedules: the field name names one, names several.
var cronActions = []action{
	{noun: "schedule", verb: "trigger", role: auth.Operator, label: "Trigger", class: "s", do: triggerSchedule},
	{noun: "schedule", verb: "pause", role: auth.Operator, label: "Pause", class: "s", key: "p", do: pauseSchedule},
	{noun: "schedule", verb: "resume", role: auth.Operator, label: "Resume", class: "s", key: "p", do: resumeSchedule},
	{noun: "schedule", verb: "edit", role: auth.Operator, label: "Edit…", class: "s", ask: askEditSchedule, do: editSchedule},
	{noun: "schedule", verb: "reset", role: auth.Operator, label: "Set back", class: "s", do: resetSchedule},
	{noun: "schedule", verb: "create", role: auth.Operator, label: "Create…", ask: askCreateSchedule, do: createSchedule},
	{noun: "schedule", verb: "delete", role: auth.Operator, label: "Delete…", class: "s bad", ask: askDeleteSchedule, do: deleteSchedule},
	{noun: "schedules", verb: "pause", role: auth.Operator, label: "Pause", ask: askPauseSchedules, do: pauseSchedules},
	{noun: "schedules", verb: "resume", role: auth.Operator, label: "Resume", ask: askResumeSchedules, do: resumeSchedules},
}

func (a *act) schedule() pawl.ScheduleHandle { return a.app.e.Schedule(a.get("name")) }

// scheduleStatus is the schedule that an action is about.
func (a *act) scheduleStatus() (s pawl.ScheduleStatus, err error) {
	name := a.get("name")
	if err := job.CheckName("schedule", name); err != nil {
		return s, err
	}
	all, err := a.app.e.Schedules(a.ctx)
	if err != nil {
		return s, err
	}
	i := slices.IndexFunc(all, func(s pawl.ScheduleStatus) bool { return s.Name == name })
	if i < 0 {
		return s, job.NotFound("schedule", name)
	}
	return all[i], nil
}

func triggerSchedule(a *act) (*outcome, error) {
	r, err := a.schedule().Trigger(a.ctx)
	if err != nil {
		return nil, err
	}
	link := anchor{"See the job", a.app.link("/jobs/{}", r.ID)}
	if r.Duplicate {
		return &outcome{Text: fmt.Sprintf("Nothing changed: job %s of %s has not ended.", tail(r.ID), a.get("name")), Link: link}, nil
	}
	text := fmt.Sprintf("Triggered %s. Job %s is ready.", a.get("name"), tail(r.ID))
	return &outcome{Text: text, More: "Its due times stay as they are.", Link: link}, nil
}

func pauseSchedule(a *act) (*outcome, error) {
	if err := a.schedule().Pause(a.ctx); err != nil {
		return nil, err
	}
	return &outcome{
		Text: a.get("name") + " is paused. Jobs that it has enqueued go on; due times pass without one.",
		Undo: &call{"schedule", "resume", map[string]string{"name": a.get("name")}},
	}, nil
}

func resumeSchedule(a *act) (*outcome, error) {
	if err := a.schedule().Resume(a.ctx); err != nil {
		return nil, err
	}
	out := &outcome{Text: a.get("name") + " goes on, from now.", Undo: &call{"schedule", "pause", map[string]string{"name": a.get("name")}}}
	if s, err := a.scheduleStatus(); err == nil && !s.Next.IsZero() {
		out.Text = fmt.Sprintf("%s goes on. It is due %s.", s.Name, relative(s.Next, a.Now))
	}
	return out, nil
}

// catchUps are what can become of due times that nobody was there for.
var catchUps = []string{string(job.CatchUpOne), string(job.CatchUpNone), string(job.CatchUpAll)}

func askEditSchedule(a *act) (*dialog, error) {
	s, err := a.scheduleStatus()
	if err != nil {
		return nil, err
	}
	return &dialog{
		Title: "Edit " + s.Name, Text: "It holds in the whole cluster and past deploys, until it is set back.", Note: "optional", Button: "Save",
		Fields: []field{
			{Name: "cron", Label: "Expression", Value: cmp.Or(a.get("cron"), s.Holds.Cron),
				Hint: "Five fields, six with seconds first, @daily and the like, or @every 90s."},
			{Name: "zone", Label: "Zone", Value: cmp.Or(a.get("zone"), s.Holds.Zone, "UTC")},
			{Name: "queue", Label: "Queue", Value: cmp.Or(a.get("queue"), s.Holds.Queue, "default")},
			{Name: "catch_up", Label: "Missed due times that are made up for",
				Value: cmp.Or(a.get("catch_up"), string(s.Holds.CatchUp), "one"), Options: catchUps},
		},
	}, nil
}

func editSchedule(a *act) (*outcome, error) {
	was, err := a.scheduleStatus()
	if err != nil {
		return nil, err
	}
	before := map[string]string{
		"name": was.Name, "cron": was.Holds.Cron, "zone": cmp.Or(was.Holds.Zone, "UTC"), "queue": cmp.Or(was.Holds.Queue, "default"),
		"catch_up": cmp.Or(string(was.Holds.CatchUp), "one"),
	}
	// Only what is another is set: the rest stays with the code.
	changed := func(name string) string {
		if v := strings.TrimSpace(a.get(name)); v != before[name] {
			return v
		}
		return ""
	}
	set := pawl.ScheduleSettings{
		Cron: changed("cron"), Zone: changed("zone"), Queue: changed("queue"), CatchUp: job.CatchUp(changed("catch_up")),
	}
	if set.Cron+set.Zone+set.Queue+string(set.CatchUp) == "" {
		return &outcome{Text: "Nothing changed: " + was.Name + " is so already."}, nil
	}
	if err := a.schedule().Set(a.ctx, set); err != nil {
		return nil, err
	}
	out := &outcome{Text: was.Name + " is changed.", Undo: &call{"schedule", "edit", before}}
	if was.Owner != "" && !slices.ContainsFunc(was.Overridden, func(f string) bool { return f != "paused" }) {
		out.Undo = &call{"schedule", "reset", map[string]string{"name": was.Name}}
	}
	if s, err := a.scheduleStatus(); err == nil {
		words := cmp.Or(cronWords(s.Holds.Cron), "by "+s.Holds.Cron)
		out.Text = fmt.Sprintf("%s is due %s, %s.", s.Name, words, cmp.Or(s.Holds.Zone, "UTC"))
	}
	return out, nil
}

func resetSchedule(a *act) (*outcome, error) {
	was, err := a.scheduleStatus()
	if err != nil {
		return nil, err
	}
	// A pause is no setting of code's: it stays until somebody resumes.
	fields := slices.DeleteFunc(slices.Clone(was.Overridden), func(f string) bool { return f == "paused" })
	if len(fields) == 0 {
		return &outcome{Text: "Nothing changed: " + was.Name + " is as code declares."}, nil
	}
	if err := a.schedule().Reset(a.ctx, fields...); err != nil {
		return nil, err
	}
	return &outcome{
		Text: was.Name + " is as code declares again.",
		Undo: &call{"schedule", "edit", map[string]string{
			"name": was.Name, "cron": was.Holds.Cron, "zone": cmp.Or(was.Holds.Zone, "UTC"), "queue": cmp.Or(was.Holds.Queue, "default"),
			"catch_up": cmp.Or(string(was.Holds.CatchUp), "one"),
		}},
	}, nil
}

func askCreateSchedule(a *act) (*dialog, error) {
	return &dialog{
		Title: "Create a schedule", Text: "No code declares it: it stays until it is deleted.", Note: "optional", Button: "Create",
		Fields: []field{
			{Name: "name", Label: "Name", Value: a.get("name")},
			{Name: "cron", Label: "Expression", Value: a.get("cron"), Hint: "Such as 0 6 * * 1-5, @daily or @every 90s."},
			{Name: "zone", Label: "Zone", Value: cmp.Or(a.get("zone"), "UTC")},
			{Name: "kind", Label: "Kind of its jobs", Value: a.get("kind")},
			{Name: "queue", Label: "Queue", Value: cmp.Or(a.get("queue"), "default")},
			{Name: "args", Label: "Arguments, as JSON", Value: cmp.Or(a.get("args"), "{}")},
		},
	}, nil
}

func createSchedule(a *act) (*outcome, error) {
	name, args := strings.TrimSpace(a.get("name")), json.RawMessage(strings.TrimSpace(a.get("args")))
	if !json.Valid(args) {
		return nil, job.Invalid("arguments", string(args), "must be JSON")
	}
	zone, err := cron.Zone(strings.TrimSpace(a.get("zone")))
	if err != nil {
		return nil, err
	}
	if _, err := cron.Parse(a.get("cron"), zone); err != nil {
		return nil, err
	}
	s := pawl.Schedule{
		Name: name, Cron: strings.TrimSpace(a.get("cron")), Zone: strings.TrimSpace(a.get("zone")),
		Job: pawl.RawArgs(strings.TrimSpace(a.get("kind")), args), Options: []pawl.EnqueueOption{pawl.Queue(strings.TrimSpace(a.get("queue")))},
	}
	if err := a.app.e.Schedule(name).Create(a.ctx, s); err != nil {
		return nil, err
	}
	return &outcome{Text: name + " is created.", Goto: a.app.link("/cron/{}", name)}, nil
}

func askDeleteSchedule(a *act) (*dialog, error) {
	s, err := a.scheduleStatus()
	if err != nil {
		return nil, err
	}
	if s.Owner != "" {
		return &dialog{Title: s.Name + " is declared by code of " + s.Owner + ".", Text: "It cannot be deleted here. Pause stops it."}, nil
	}
	return &dialog{
		Title: "Delete " + s.Name + " for good?", Text: "Jobs that it has enqueued go on.", Note: "optional", Button: "Delete the schedule", Bad: true,
	}, nil
}

func deleteSchedule(a *act) (*outcome, error) {
	if err := a.schedule().Delete(a.ctx); err != nil {
		return nil, err
	}
	return &outcome{Text: "Deleted " + a.get("name") + ".", Goto: a.app.link("/cron")}, nil
}

// names are the schedules that a bulk action is about, once each: those that were ticked, or those of an undo.
func (a *act) names() ([]string, error) {
	all, err := a.app.e.Schedules(a.ctx)
	if err != nil {
		return nil, err
	}
	wanted := slices.Concat(a.form["ids"], strings.Split(a.get("names"), "\n"))
	var names []string
	for i := range all {
		if slices.Contains(wanted, all[i].Name) {
			names = append(names, all[i].Name)
		}
	}
	if len(names) == 0 {
		return nil, job.Invalid("ids", strings.Join(a.form["ids"], ", "), "must name schedules that are there")
	}
	return names, nil
}

func (a *act) askSchedules(verb, text string) (*dialog, error) {
	names, err := a.names()
	if err != nil {
		return nil, err
	}
	what := plural(exactly(len(names)), "schedule", "schedules")
	shown := strings.Join(names[:min(len(names), 10)], ", ")
	if len(names) > 10 {
		shown += fmt.Sprintf(" and %d more", len(names)-10)
	}
	return &dialog{
		Title: verb + " " + what + "?", Text: text, Facts: []fact{{"Schedules", shown}}, Note: "optional", Button: verb + " " + what,
	}, nil
}

func askPauseSchedules(a *act) (*dialog, error) {
	return a.askSchedules("Pause", "Due times pass without a job until somebody resumes them.")
}

func askResumeSchedules(a *act) (*dialog, error) {
	return a.askSchedules("Resume", "They go on from now; what they missed is not made up for.")
}

// doSchedules does something to each, and says how far it came.
func (a *act) doSchedules(do func(pawl.ScheduleHandle, context.Context) error, text, undo string) (*outcome, error) {
	names, err := a.names()
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		if err := do(a.app.e.Schedule(name), a.ctx); err != nil {
			return nil, fmt.Errorf("after %d of %d: %w", i, len(names), err)
		}
	}
	what := plural(exactly(len(names)), "schedule is", "schedules are")
	if undo == "pause" {
		what = plural(exactly(len(names)), "schedule goes", "schedules go")
	}
	return &outcome{Text: fmt.Sprintf(text, what), Undo: &call{"schedules", undo, map[string]string{"names": strings.Join(names, "\n")}}}, nil
}

func pauseSchedules(a *act) (*outcome, error) {
	return a.doSchedules(pawl.ScheduleHandle.Pause, "%s paused. Due times pass without a job.", "resume")
}

func resumeSchedules(a *act) (*outcome, error) {
	return a.doSchedules(pawl.ScheduleHandle.Resume, "%s on, from now.", "pause")
}
