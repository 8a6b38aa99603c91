package main

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlwork/pawl/server/httpapi"
)

// scheduleFields can be set of a schedule.
var scheduleFields = []field{
	{"cron", "`expression`: five fields, or six with seconds first, or @hourly and the like, or @every 90s", nil},
	{"zone", "`name` of the zone, such as Europe/Berlin", nil},
	{"kind", "`name` of the kind of its jobs", nil},
	{"args", "`JSON` of their arguments", asJSON},
	{"headers", "`name=value,…`", asPairs(asText)},
	{"queue", "`name` of the queue", nil},
	{"priority", "`number`, 1 first, 9 last", asInt},
	{"attempts", "`number` at most", asInt},
	{"timeout", "`time` of one attempt at most", nil},
	{"key", "`key`", nil},
	{"tags", "`tags`, with commas", asList},
	{"needs", "`capabilities` of a worker, with commas", asList},
	{"skip_if_active", "`true`: skip due times while a job of the schedule is live", asBool},
	{"catch_up", "`one`, none or all of the due times that nobody was there for", nil},
}

// scheduleCommand has the verbs of schedules.
func (a *app) scheduleCommand() *cobra.Command {
	create := fieldFlags(a.verb("create NAME", "Create a schedule that no code declares", counted(1, 1), (*call).scheduleCreate), scheduleFields)
	cmd := group("schedule", "Schedules: jobs at due times", "",
		pageFlags(a.verb("list", "List schedules", counted(0, 0), (*call).scheduleList), 1000),
		a.verb("get NAME", "Show a schedule: what holds, where it comes from, when it is due", counted(1, 1), func(c *call) error {
			return c.shown(request{method: http.MethodGet, path: "/schedules/" + url.PathEscape(c.args[0])}, showSchedule)
		}),
		create,
		a.setCommand("/schedules/", "Put settings over what holds for a schedule", scheduleFields, showSchedule),
		a.resetCommand("/schedules/", scheduleFields, showSchedule),
		a.eachVerb("pause", "Stop schedules; due times that pass are not made up for", "/schedules/", "paused"),
		a.eachVerb("resume", "Let schedules go on, from now", "/schedules/", "resumed"),
		keyFlag(a.verb("trigger NAME", "Enqueue a schedule's job now, also while it is paused", counted(1, 1), (*call).scheduleTrigger),
			"`key`: a repetition within 24 hours enqueues nothing"),
		a.verb("delete NAME…", "Remove schedules that no code declares", counted(1, -1), (*call).scheduleDelete),
	)
	cmd.Aliases = []string{"cron"}
	return cmd
}

func (c *call) scheduleList() error {
	t := newTable("schedule", "cron", "zone", "kind", "next", "last", "fires", "skips", "state")
	return pages(c, "/schedules", nil, t, func(l *httpapi.ScheduleList) string {
		for i := range l.Schedules {
			s := &l.Schedules[i]
			t.row(s.Name, s.Holds.Cron, s.Holds.Zone, s.Holds.Kind, c.when(s.Next), c.when(s.Last), s.Fires, s.Skips, scheduleState(s))
		}
		return l.Next
	})
}

func scheduleState(s *httpapi.Schedule) string {
	switch {
	case s.Fault != "":
		return "fault: " + s.Fault
	case s.Paused:
		return "paused"
	}
	return ""
}

func showSchedule(c *call, text []byte) error {
	var s httpapi.Schedule
	if err := decode(text, &s); err != nil {
		return err
	}
	p := &pairs{}
	p.add("schedule", s.Name)
	p.add("state", scheduleState(&s))
	p.add("next", c.when(s.Next))
	p.add("last", c.when(s.Last))
	p.add("last job", s.LastJob)
	p.add("fires", s.Fires)
	p.add("skips", s.Skips)
	c.sourcePairs(p, settingsText(s.Holds), settingsText(s.Declared), &s.Source)
	return p.write(c.out)
}

func (c *call) scheduleCreate() error {
	body, err := c.fieldsGiven(scheduleFields)
	if err != nil {
		return err
	}
	body["name"] = c.args[0]
	return c.shown(request{method: http.MethodPost, path: "/schedules", body: body}, showSchedule)
}

func (c *call) scheduleTrigger() error {
	var r httpapi.Receipt
	if done, err := c.post("/schedules/"+url.PathEscape(c.args[0])+"/trigger", nil, &r); done || err != nil {
		return err
	}
	c.print("%s", strings.TrimSpace(r.ID))
	return nil
}

func (c *call) scheduleDelete() error {
	return c.each(c.args, func(name string) error {
		if _, err := c.send(http.MethodDelete, "/schedules/"+url.PathEscape(name), nil, nil); err != nil {
			return err
		}
		told := struct {
			Name    string `json:"name"`
			Deleted bool   `json:"deleted"`
		}{name, true}
		return c.tellDone(told, "%s  deleted", clean(name))
	})
}
