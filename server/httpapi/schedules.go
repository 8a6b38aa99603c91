package httpapi

import (
	"context"
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
		method: http.MethodDelete, path: "/schedules/{name}", id: "delete-schedule", tag: "schedules", role: auth.Operator,
		status: http.StatusNoContent, summary: "Remove a schedule that no code declares",
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
		status: http.StatusCreated, summary: "Enqueue a schedule's job now, also while it is paused; repeated without a key, it enqueues another",
	}, func(ctx context.Context, in *NamePath) (*body[Receipt], error) {
		var rules []pawl.UniqueRule
		if keyFrom(ctx) != "" {
			rules = []pawl.UniqueRule{pawl.ByKey(storedKey(ctx, "trigger", in.Name)), pawl.HeldFor(keptFor)}
		}
		r, err := a.e.Schedule(in.Name).Trigger(ctx, rules...)
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
