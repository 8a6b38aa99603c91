package schedules

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/job/cron"
	"github.com/pawlwork/pawl/store"
)

// Entry is one schedule as it holds.
type Entry struct {
	Name     string
	Settings job.ScheduleSettings
	// Fault is why it cannot be fired; it costs this one only (P8).
	Fault error

	expression *cron.Expression // nil with a fault
}

// errUndeclared is the fault of what is only a rest of settings.
var errUndeclared = errors.New("nobody declares it: only some fields are set")

// Read makes entries of what is declared and set.
func Read(known *store.Effective) (list []Entry) {
	for i := range known.Settings {
		s := &known.Settings[i]
		if s.Kind != store.SettingSchedule {
			continue
		}
		e := ReadOne(s.Name, s.Value)
		if len(list) >= store.MaxSchedules {
			e.expression, e.Fault = nil, job.Invalid("schedule", s.Name, fmt.Sprintf("is one of more than %d, which is the most", store.MaxSchedules))
		}
		list = append(list, e)
	}
	return list
}

// ReadOne makes an entry of one value.
func ReadOne(name string, value json.RawMessage) Entry {
	e := Entry{Name: name}
	if e.Fault = json.Unmarshal(value, &e.Settings); e.Fault != nil {
		return e
	}
	if e.Settings.Kind == "" && e.Settings.Cron == "" {
		e.Fault = errUndeclared
		return e
	}
	zone, err := cron.Zone(e.Settings.Zone)
	if err != nil {
		e.Fault = errors.Join(err, e.Settings.Check("schedule "+name))
		return e
	}
	expression, err := cron.Parse(e.Settings.Cron, zone)
	if e.Fault = errors.Join(err, e.Settings.Check("schedule "+name)); e.Fault == nil {
		e.expression = expression
	}
	return e
}
