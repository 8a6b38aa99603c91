package httpapi

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

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
	CatchUp      string            `json:"catch_up,omitempty" enum:"one,none,all" doc:"which missed due times are made up for; one without it"`
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

// ScheduleFields are what can be set of a schedule: the fields that are there.
type ScheduleFields struct {
	Cron         string            `json:"cron,omitempty" minLength:"1" maxLength:"1000" doc:"five fields, six with seconds, @hourly, @every 90s"`
	Zone         string            `json:"zone,omitempty" minLength:"1" maxLength:"100" doc:"an IANA name, Europe/Berlin; UTC without it"`
	Kind         string            `json:"kind,omitempty" minLength:"1" maxLength:"128"`
	Args         json.RawMessage   `json:"args,omitempty" doc:"any JSON value"`
	Headers      map[string]string `json:"headers,omitempty" minProperties:"1" doc:"set as a whole"`
	Queue        string            `json:"queue,omitempty" minLength:"1" maxLength:"128"`
	Priority     int               `json:"priority,omitempty" minimum:"1" maximum:"9"`
	Attempts     int               `json:"attempts,omitempty" minimum:"1" maximum:"10000"`
	Timeout      string            `json:"timeout,omitempty" minLength:"1" maxLength:"32" doc:"of one attempt, such as 90s"`
	Key          string            `json:"key,omitempty" minLength:"1" maxLength:"255"`
	Tags         []string          `json:"tags,omitempty" minItems:"1" maxItems:"32" nullable:"false" doc:"set as a whole"`
	Needs        []string          `json:"needs,omitempty" minItems:"1" maxItems:"32" nullable:"false" doc:"capabilities; set as a whole"`
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
	Fields []string `query:"field" doc:"all without it" enum:"cron,zone,kind,version,args,headers,queue,priority,attempts,timeout,key,tags,needs,budget,unique,skip_if_active,catch_up,paused"`
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
		Queue: d.Queue, Priority: d.Priority, Attempts: d.Attempts, Key: d.Key, Tags: d.Tags, Needs: d.Needs, Headers: d.Headers,
		Unique: d.Unique,
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
