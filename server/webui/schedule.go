package webui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
)

// cronSetting is one field: what code declares, and what holds.
type cronSetting struct {
	Name, Declared, Now string
	Changed             bool
}

// scheduleData is one schedule.
type scheduleData struct {
	Row      *cronRow
	Settings []cronSetting
	Args     string
	Newest   []fire // the newest first
	Audit    []pawl.AuditEntry
}

func loadSchedule(v *view) (any, error) {
	name := v.params["name"]
	v.Title, v.Crumb = name, []anchor{{"Cron", v.app.link("/cron")}}
	all, err := v.schedules()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(s pawl.ScheduleStatus) bool { return s.Name == name })
	if i < 0 {
		return nil, &fault{404, "There is no such schedule.", "It is not declared by any code that runs, and no operator has created it."}
	}
	rows := []cronRow{rowOf(&all[i], v.Now)}
	if err := v.fires(rows); err != nil {
		return nil, err
	}
	r := &rows[0]
	r.Nexts = cronTimes(&r.Holds, r.Next, 5)
	d := &scheduleData{Row: r, Settings: cronSettings(r), Newest: slices.Clone(r.Fires)}
	slices.Reverse(d.Newest)
	if !v.Hidden() {
		d.Args = string(r.Holds.Args)
	}
	log, err := cached(v, "audit of "+name, 2*time.Second, func(ctx context.Context) (pawl.AuditList, error) {
		return v.app.e.Audit(ctx, pawl.AuditFilter{Target: name}, pawl.AuditPage{Limit: 5})
	})
	d.Audit = log.Entries
	return d, err
}

// cronSettings are the fields of a schedule that are set.
func cronSettings(r *cronRow) (list []cronSetting) {
	yes := func(b *bool) string {
		if b == nil {
			return ""
		}
		return map[bool]string{true: "yes", false: "no"}[*b]
	}
	of := func(s *pawl.ScheduleSettings) []string {
		timeout := ""
		if s.Timeout > 0 {
			timeout = duration(s.Timeout)
		}
		number := func(n int) string {
			if n == 0 {
				return ""
			}
			return fmt.Sprint(n)
		}
		return []string{
			s.Cron, s.Zone, s.Kind, s.Queue, number(s.Priority), number(s.Attempts), timeout, s.Key,
			strings.Join(s.Tags, ", "), yes(s.SkipIfActive), string(s.CatchUp),
		}
	}
	fields := []struct{ name, field, initial string }{
		{"Expression", "cron", ""}, {"Zone", "zone", "UTC"}, {"Kind", "kind", ""}, {"Queue", "queue", "default"}, {"Priority", "priority", "5"},
		{"Attempts", "attempts", "the queue’s"}, {"Timeout of an attempt", "timeout", "the handler’s"}, {"Key", "key", "none"}, {"Tags", "tags", "none"},
		{"Skip while one is live", "skip_if_active", "no"}, {"Missed due times", "catch_up", "one"},
	}
	declared, holds := of(&r.Declared), of(&r.Holds)
	for i, f := range fields {
		s := cronSetting{Name: f.name, Declared: cmp.Or(declared[i], f.initial), Now: cmp.Or(holds[i], f.initial)}
		s.Changed = slices.Contains(r.Overridden, f.field)
		if r.Owner == "" {
			s.Declared, s.Changed = "", false
		}
		list = append(list, s)
	}
	return list
}
