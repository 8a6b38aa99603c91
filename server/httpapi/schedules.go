package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
)

// schedules adds the routes of schedules.
func (a *api) schedules() {
	route(a, operation{
		method: http.MethodGet, path: "/schedules", id: "list-schedules", tag: "schedules", role: auth.Viewer,
		summary: "List schedules by name; without arguments and headers of their jobs",
	}, a.listSchedules)
	route(a, operation{
		method: http.MethodPost, path: "/schedules", id: "create-schedule", tag: "schedules", role: auth.Operator, status: http.StatusCreated,
		summary: "Create a schedule that no code declares",
	}, a.createSchedule)
	route(a, operation{
		method: http.MethodGet, path: "/schedules/{name}", id: "get-schedule", tag: "schedules", role: auth.Viewer,
		summary: "Read a schedule: what holds, where it comes from, when it is due",
	}, func(ctx context.Context, in *NamePath) (*body[Schedule], error) { return a.schedule(ctx, in.Name) })
	route(a, operation{
		method: http.MethodDelete, path: "/schedules/{name}", id: "delete-schedule", tag: "schedules", role: auth.Operator, status: http.StatusNoContent,
		summary: "Remove a schedule that no code declares",
	}, func(ctx context.Context, in *NamePath) (*struct{}, error) {
		return nil, a.e.Schedule(in.Name).Delete(ctx)
	})
	route(a, operation{
		method: http.MethodPatch, path: "/schedules/{name}/settings", id: "set-schedule", tag: "schedules", role: auth.Operator,
		summary: "Put settings over what holds for a schedule",
	}, a.setSchedule)
	route(a, operation{
		method: http.MethodDelete, path: "/schedules/{name}/settings", id: "reset-schedule", tag: "schedules", role: auth.Operator,
		summary: "Take back what was set, or some fields of it",
	}, a.resetSchedule)
	for _, v := range []struct {
		name, summary string
		do            func(pawl.ScheduleHandle, context.Context) error
	}{
		{"pause", "Stop a schedule; due times that pass are not made up for", pawl.ScheduleHandle.Pause},
		{"resume", "Let a schedule go on, from now", pawl.ScheduleHandle.Resume},
	} {
		route(a, operation{
			method: http.MethodPost, path: "/schedules/{name}/" + v.name, id: v.name + "-schedule", tag: "schedules", role: auth.Operator,
			summary: v.summary,
		}, func(ctx context.Context, in *NamePath) (*body[Schedule], error) {
			if err := v.do(a.e.Schedule(in.Name), ctx); err != nil {
				return nil, err
			}
			return a.schedule(ctx, in.Name)
		})
	}
	route(a, operation{
		method: http.MethodPost, path: "/schedules/{name}/trigger", id: "trigger-schedule", tag: "schedules", role: auth.Operator,
		status: http.StatusCreated, summary: "Enqueue a schedule's job now, also while it is paused; repeated, it enqueues another",
	}, func(ctx context.Context, in *NamePath) (*body[Receipt], error) {
		r, err := a.e.Schedule(in.Name).Trigger(ctx)
		if err != nil {
			return nil, err
		}
		return answer(Receipt{r.ID.String(), r.Duplicate}), nil
	})
}

// Schedule is a schedule as it holds, where that comes from, and how far it has come.
type Schedule struct {
	Name     string           `json:"name"`
	Paused   bool             `json:"paused"`
	Next     time.Time        `json:"next,omitzero" doc:"when it is due; none while it is paused or has a fault"`
	Last     time.Time        `json:"last,omitzero" doc:"the newest due time that was fired or skipped"`
	LastJob  string           `json:"last_job,omitempty" format:"uuid"`
	Fires    int64            `json:"fires" doc:"jobs that were enqueued for due times"`
	Skips    int64            `json:"skips" doc:"due times at which a job of the schedule was live"`
	Fault    string           `json:"fault,omitempty" doc:"why it is not fired"`
	Holds    ScheduleSettings `json:"holds" doc:"what is declared, with the fields over it that operators have set"`
	Declared ScheduleSettings `json:"declared" doc:"what code says; empty for a schedule that an operator has created"`
	Source
}

// ScheduleSettings are when a schedule is due, and the job of each due time.
type ScheduleSettings struct {
	Cron         string            `json:"cron,omitempty"`
	Zone         string            `json:"zone,omitempty"`
	Kind         string            `json:"kind,omitempty"`
	Version      int               `json:"version,omitempty" doc:"of the arguments"`
	Args         *payload          `json:"args,omitempty" doc:"not in lists, nor for who may not see payloads"`
	Headers      map[string]string `json:"headers,omitempty" doc:"as args"`
	Queue        string            `json:"queue,omitempty"`
	Priority     int               `json:"priority,omitempty"`
	Attempts     int               `json:"attempts,omitempty"`
	Timeout      string            `json:"timeout,omitempty" doc:"of one attempt"`
	Key          string            `json:"key,omitempty"`
	Tags         []string          `json:"tags,omitempty"`
	Needs        []string          `json:"needs,omitempty" doc:"capabilities of a worker"`
	Unique       bool              `json:"unique,omitempty" doc:"its jobs are"`
	SkipIfActive *bool             `json:"skip_if_active,omitempty" doc:"skip due times while a job of the schedule is live"`
	CatchUp      string            `json:"catch_up,omitempty" enum:"one,none,all" doc:"what becomes of due times that nobody was there for; one without it"`
}

func scheduleSettingsOf(s *pawl.ScheduleSettings, payloads bool) ScheduleSettings {
	w := ScheduleSettings{
		Cron: s.Cron, Zone: s.Zone, Kind: s.Kind, Version: s.Version, Queue: s.Queue, Priority: s.Priority, Attempts: s.Attempts,
		Timeout: settingTime(s.Timeout), Key: s.Key, Tags: s.Tags, Needs: s.Capabilities, Unique: s.Unique.Hash != nil,
		SkipIfActive: s.SkipIfActive, CatchUp: string(s.CatchUp),
	}
	if payloads {
		w.Args, w.Headers = payloadOf(s.Args), s.Headers
	}
	return w
}

// fieldsOf names the fields of a schedule that are stored for one over the wire, where
// that is not the field itself.
var fieldsOf = map[string][]string{"args": {"args", "args_as"}, "needs": {"capabilities"}, "unique": {"unique", "unique_period"}}

// wireField is the other way; empty for what is no field of its own.
func wireField(stored string) string {
	for name, fields := range fieldsOf {
		if i := slices.Index(fields, stored); i >= 0 {
			if i == 0 {
				return name
			}
			return ""
		}
	}
	return stored
}

func scheduleOf(s *pawl.ScheduleStatus, payloads bool) Schedule {
	var overridden []string
	for _, f := range s.Overridden {
		if name := wireField(f); name != "" {
			overridden = append(overridden, name)
		}
	}
	w := Schedule{
		Name: s.Name, Paused: s.Paused, Next: s.Next, Last: s.Last, Fires: s.Fires, Skips: s.Skips, Fault: s.Fault,
		Holds: scheduleSettingsOf(&s.Holds, payloads), Declared: scheduleSettingsOf(&s.Declared, payloads),
		Source: sourceOf(s.Owner, s.Version, overridden, s.By, s.Note, s.Since, s.Conflicts),
	}
	if s.LastJob != (pawl.ID{}) {
		w.LastJob = s.LastJob.String()
	}
	return w
}

// ScheduleList is one page of schedules.
type ScheduleList struct {
	Schedules []Schedule `json:"schedules" nullable:"false"`
	Next      string     `json:"next,omitempty" doc:"the next page begins behind it; none: this is the last"`
}

func (a *api) listSchedules(ctx context.Context, in *Paging) (*body[ScheduleList], error) {
	all, err := a.e.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(in, all, func(s *pawl.ScheduleStatus) string { return s.Name })
	if err != nil {
		return nil, err
	}
	return answer(ScheduleList{wireOf(page, func(s *pawl.ScheduleStatus) Schedule { return scheduleOf(s, false) }), next}), nil
}

// schedule reads one.
func (a *api) schedule(ctx context.Context, name string) (*body[Schedule], error) {
	if err := job.CheckName("schedule", name); err != nil {
		return nil, err
	}
	all, err := a.e.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(s pawl.ScheduleStatus) bool { return s.Name == name })
	if i < 0 {
		return nil, job.NotFound("schedule", name)
	}
	return answer(scheduleOf(&all[i], !auth.From(ctx).Hidden)), nil
}

// ScheduleFields are what can be set of a schedule: the fields that are there.
type ScheduleFields struct {
	Cron         string            `json:"cron,omitempty" minLength:"1" maxLength:"1000" doc:"five fields, or six with seconds first, or @hourly and the like, or @every 90s"`
	Zone         string            `json:"zone,omitempty" minLength:"1" maxLength:"100" doc:"an IANA name such as Europe/Berlin; UTC without it"`
	Kind         string            `json:"kind,omitempty" minLength:"1" maxLength:"128"`
	Args         json.RawMessage   `json:"args,omitempty" doc:"any JSON value"`
	Headers      map[string]string `json:"headers,omitempty" minProperties:"1" doc:"set as a whole"`
	Queue        string            `json:"queue,omitempty" minLength:"1" maxLength:"128"`
	Priority     int               `json:"priority,omitempty" minimum:"1" maximum:"9"`
	Attempts     int               `json:"attempts,omitempty" minimum:"1" maximum:"10000"`
	Timeout      string            `json:"timeout,omitempty" minLength:"1" maxLength:"32" doc:"of one attempt, such as 90s"`
	Key          string            `json:"key,omitempty" minLength:"1" maxLength:"255"`
	Tags         []string          `json:"tags,omitempty" minItems:"1" maxItems:"32" nullable:"false" doc:"set as a whole"`
	Needs        []string          `json:"needs,omitempty" minItems:"1" maxItems:"32" nullable:"false" doc:"capabilities of a worker; set as a whole"`
	SkipIfActive *bool             `json:"skip_if_active,omitempty" doc:"skip due times while a job of the schedule is live"`
	CatchUp      string            `json:"catch_up,omitempty" enum:"one,none,all" doc:"what becomes of due times that nobody was there for"`
}

// of is what was sent.
func (w *ScheduleFields) of() (s pawl.ScheduleSettings, err error) {
	s = pawl.ScheduleSettings{
		Cron: w.Cron, Zone: w.Zone, Kind: w.Kind, Args: w.Args, Headers: w.Headers, Queue: w.Queue, Priority: w.Priority,
		Attempts: w.Attempts, Key: w.Key, Tags: w.Tags, Capabilities: w.Needs, SkipIfActive: w.SkipIfActive, CatchUp: job.CatchUp(w.CatchUp),
	}
	s.Timeout, err = readTimeout(w.Timeout)
	return s, err
}

// readTimeout reads that of an attempt. Unlike times of queues, there is no "none".
func readTimeout(text string) (time.Duration, error) {
	d, err := readSettingTime("timeout", text)
	if d < 0 {
		return 0, job.Invalid("timeout", text, "must be a time such as 30s or 1h30m")
	}
	return d, err
}

// SchedulePatch sets some of them.
type SchedulePatch struct {
	ScheduleFields
}

// UnmarshalJSON refuses null, but as arguments.
func (w *SchedulePatch) UnmarshalJSON(text []byte) error {
	if err := noNull(text, "args"); err != nil {
		return err
	}
	return json.Unmarshal(text, &w.ScheduleFields)
}

type setScheduleInput struct {
	NamePath
	Body SchedulePatch
}

func (a *api) setSchedule(ctx context.Context, in *setScheduleInput) (*body[Schedule], error) {
	s, err := in.Body.of()
	if err != nil {
		return nil, err
	}
	if err := a.e.Schedule(in.Name).Set(ctx, s); err != nil {
		return nil, err
	}
	return a.schedule(ctx, in.Name)
}

type resetScheduleInput struct {
	NamePath
	Fields []string `query:"field" maxItems:"18" enum:"cron,zone,kind,version,args,headers,queue,priority,attempts,timeout,key,tags,needs,budget,unique,skip_if_active,catch_up,paused" doc:"one or more, with commas; all without it"`
}

func (a *api) resetSchedule(ctx context.Context, in *resetScheduleInput) (*body[Schedule], error) {
	var fields []string
	for _, f := range in.Fields {
		if stored, ok := fieldsOf[f]; ok {
			fields = append(fields, stored...)
		} else {
			fields = append(fields, f)
		}
	}
	if err := a.e.Schedule(in.Name).Reset(ctx, fields...); err != nil {
		return nil, err
	}
	return a.schedule(ctx, in.Name)
}

// ScheduleDraft is a schedule to be created.
type ScheduleDraft struct {
	Name string `json:"name" minLength:"1" maxLength:"128"`
	ScheduleFields
	Unique *Unique `json:"unique,omitempty" doc:"accept its job only if no live one of its kind is the same"`
}

type createScheduleInput struct {
	Body ScheduleDraft
}

func (a *api) createSchedule(ctx context.Context, in *createScheduleInput) (*body[Schedule], error) {
	d := &in.Body
	timeout, err := readTimeout(d.Timeout)
	if err != nil {
		return nil, err
	}
	draft := Draft{
		Queue: d.Queue, Priority: d.Priority, Attempts: d.Attempts, Key: d.Key, Tags: d.Tags, Needs: d.Needs, Headers: d.Headers, Unique: d.Unique,
	}
	opts, err := draft.options()
	if err != nil {
		return nil, err
	}
	if timeout > 0 {
		opts = append(opts, pawl.Timeout(timeout))
	}
	args := d.Args
	if len(args) == 0 {
		args = json.RawMessage("null")
	}
	s := pawl.Schedule{
		Name: d.Name, Cron: d.Cron, Zone: d.Zone, Job: pawl.RawArgs(d.Kind, args), Options: opts,
		SkipIfActive: d.SkipIfActive != nil && *d.SkipIfActive, CatchUp: job.CatchUp(d.CatchUp),
	}
	if err := a.e.Schedule(d.Name).Create(ctx, s); err != nil {
		return nil, err
	}
	return a.schedule(ctx, d.Name)
}
