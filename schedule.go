package pawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/internal/schedules"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Schedule is a job for each due time of a cron expression. It is declared for the
// whole cluster, like a queue: it goes with the last worker of the code that declares
// it, and operators can change it while it runs (ScheduleHandle). See docs/cron.md.
type Schedule struct {
	Name string
	// Cron has five fields, or six with seconds first, or is @hourly, @daily and the
	// like, or "@every 90s". One that cannot be read is logged and shown by
	// Engine.Schedules, and costs this schedule only.
	Cron string
	Zone string // an IANA name such as Europe/Berlin [UTC]
	// Job is what is enqueued, with Options. Those that name a time or an id mean
	// nothing here: At, In, Deadline and WithID are refused.
	Job     Args
	Options []EnqueueOption
	// SkipIfActive skips a due time while a job of the schedule is live.
	SkipIfActive bool
	// CatchUp says what becomes of due times that nobody was there for [CatchUpOne].
	CatchUp CatchUp
}

// settings is what a schedule says, as data. Its cron expression and zone are not
// looked at.
func (s *Schedule) settings(c *Config) (ScheduleSettings, error) {
	kind, err := kindOf(s.Job)
	if err != nil {
		return ScheduleSettings{}, err
	}
	if err := checkMethods(reflect.TypeOf(s.Job)); err != nil {
		return ScheduleSettings{}, err
	}
	d := draftBuilder{Draft: job.Draft{Kind: kind, Version: versionOf(s.Job)}}
	if raw, ok := s.Job.(rawArgs); ok {
		d.Args = raw.payload
	} else if d.Args, err = c.Codec.Marshal(s.Job); err != nil {
		return ScheduleSettings{}, fmt.Errorf("%s: %w", kind, err)
	}
	options := s.Options
	if def, ok := s.Job.(ArgsWithDefaults); ok {
		options = slices.Concat(def.Defaults(), options)
	}
	for _, o := range options {
		if o == nil {
			return ScheduleSettings{}, job.Invalid("option", "nil", "must not be nil")
		}
		o.enqueue(&d)
	}
	if !d.At.IsZero() || d.In != 0 || !d.Deadline.IsZero() || d.Resend {
		d.errs = append(d.errs, job.Invalid("option", "At, In, Deadline or WithID", "must not be given: the schedule says when, and makes the id"))
	}
	if d.Queue == "" {
		d.Queue = job.RouteKind(c.Routes, kind)
	}
	if d.unique != nil {
		d.hashUnique()
	}
	set := ScheduleSettings{
		Cron: s.Cron, Zone: s.Zone, CatchUp: s.CatchUp,
		Kind: kind, Version: d.Version, Args: d.Args, Queue: d.Queue, Priority: d.Priority, Attempts: d.Attempts, Timeout: d.Timeout,
		Key: d.Key, Tags: d.Tags, Capabilities: d.Capabilities, Budget: d.Budget, Headers: d.Headers(), Unique: d.Draft.Unique,
	}
	if s.SkipIfActive {
		set.SkipIfActive = &s.SkipIfActive
	}
	return set, errors.Join(append(d.errs, set.Check("schedule "+s.Name))...)
}

// checkSchedules reports what is wrong with the schedules of a configuration, but for
// expressions and zones: those cost one schedule, not the process.
func (c *Config) checkSchedules() error {
	var errs []error
	names := map[string]bool{}
	for i := range c.Schedules {
		s := &c.Schedules[i]
		at := fmt.Sprintf("Config.Schedules[%d]", i)
		errs = append(errs, job.CheckName(at+".Name", s.Name))
		if names[s.Name] {
			errs = append(errs, job.Invalid(at+".Name", s.Name, "is declared twice"))
		}
		names[s.Name] = true
		set, err := s.settings(c)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
			continue
		}
		if value, err := json.Marshal(set); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
		} else if len(value) > store.MaxSetting {
			errs = append(errs, job.Invalid(at, sizeText(len(value)), fmt.Sprintf("must have at most %d bytes with its arguments", store.MaxSetting)))
		}
	}
	if n := len(c.Schedules) + len(c.Queues); len(c.Schedules) > 0 && n > store.MaxDeclarations {
		errs = append(errs, job.Invalid("Config.Schedules", fmt.Sprintf("%d queues and schedules", n), fmt.Sprintf("must be at most %d", store.MaxDeclarations)))
	}
	return errors.Join(errs...)
}

// declaredSchedules is what this process declares of them.
func (c *Config) declaredSchedules() (list []store.Declaration) {
	for i := range c.Schedules {
		set, err := c.Schedules[i].settings(c)
		if err != nil {
			continue // check has refused it, or will
		}
		value, err := json.Marshal(set)
		if err != nil {
			continue
		}
		list = append(list, store.Declaration{Setting: scheduleSetting(c.Schedules[i].Name), Value: value})
	}
	return list
}

func scheduleSetting(name string) store.Setting {
	return store.Setting{Kind: store.SettingSchedule, Name: name}
}

// scheduler fires schedules while a runner runs; nil where the store keeps none.
func (e *Engine) scheduler(r *runner.Runner) *schedules.Scheduler {
	st, ok := e.store.(store.Schedules)
	if !ok {
		return nil
	}
	return schedules.New(schedules.Config{
		Store: st, Begin: r, Logger: e.cfg.Logger, Known: e.followed.mirror.Known, Look: e.followed.mirror.Look,
		Leads: r.Member().Leads, Drafts: e.scheduledDrafts,
	})
}

// scheduledDrafts makes the jobs of due times, as Enqueue would.
func (e *Engine) scheduledDrafts(ctx context.Context, s *schedules.Entry, due []time.Time) ([]job.Draft, error) {
	items := make([]Item, len(due))
	for i, at := range due {
		items[i] = scheduledItem(s, func(d *draftBuilder) {
			d.ID, d.At = job.ScheduledID(s.Name, at), at
			if err := d.SetHeader(job.HeaderDue, at.UTC().Format(time.RFC3339Nano)); err != nil {
				d.errs = append(d.errs, err)
			}
		})
	}
	drafts, end, err := e.drafts(ctx, items)
	if err == nil {
		end(nil)
	}
	for i := range drafts {
		drafts[i].At = time.Time{} // it has come, by the store's clock
	}
	return drafts, err
}

// scheduledItem is a job of a schedule.
func scheduledItem(s *schedules.Entry, edit func(*draftBuilder)) Item {
	set := &s.Settings
	return NewItem(RawArgs(set.Kind, set.Args), enqueueOption(func(d *draftBuilder) {
		made, err := set.Draft(job.ID{})
		if err != nil {
			d.errs = append(d.errs, err)
		}
		d.Draft, d.attempts = made, set.Attempts > 0
		if set.Skips() {
			d.Draft.Unique = job.Unique{Hash: job.ScheduleUnique(s.Name)}
		}
		if err := d.SetHeader(job.HeaderSchedule, s.Name); err != nil {
			d.errs = append(d.errs, err)
		}
		edit(d)
	}))
}

// What becomes of due times that nobody was there for.
const (
	CatchUpOne  = job.CatchUpOne  // the newest is made up for, the others are not
	CatchUpNone = job.CatchUpNone // none, unless it is the newest and at most a minute ago
	CatchUpAll  = job.CatchUpAll  // the newest 100 are
)
