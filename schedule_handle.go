package pawl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/internal/schedules"
	"github.com/pawlwork/pawl/internal/wake"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// ScheduleStatus is one schedule as it holds, where that comes from, and how far it
// has come.
type ScheduleStatus struct {
	Name string
	// Holds is what is declared, with the fields over it that operators have set.
	Holds ScheduleSettings
	// Declared is what code says, and whose it is; empty for a schedule that an
	// operator has created.
	Declared       ScheduleSettings
	Owner, Version string
	// Overridden names the fields that operators have set, By, Note and Since who
	// was the last of them.
	Overridden []string
	By, Note   string
	Since      time.Time
	// Conflicts are other owners that declare it differently, and do not count.
	Conflicts []Conflict

	Paused  bool
	Next    time.Time // when it is due; zero while it is paused or has a fault
	Last    time.Time // the newest due time that was fired or skipped; zero: none yet
	LastJob ID
	Fires   int64 // jobs that were enqueued for due times
	Skips   int64 // due times at which a job of the schedule was live
	// Fault is why it is not fired: its expression, its zone, or why its job was not
	// accepted, as this process knows it. Only the last is tried again by itself.
	Fault string
}

// Schedules lists all schedules, in the order of their names.
func (e *Engine) Schedules(ctx context.Context) ([]ScheduleStatus, error) {
	st, err := e.schedulesStore(ctx)
	if err != nil {
		return nil, err
	}
	known, err := e.settingsNow(ctx)
	if err != nil {
		return nil, err
	}
	return e.scheduleList(ctx, st, known)
}

// scheduleList is how the schedules stand that are declared and set.
func (e *Engine) scheduleList(ctx context.Context, st store.Schedules, known *store.Effective) ([]ScheduleStatus, error) {
	entries := schedules.Read(known)
	if len(entries) == 0 {
		return nil, nil
	}
	states, err := st.ScheduleStates(ctx)
	if err != nil {
		return nil, err
	}
	by := make(map[string]*store.ScheduleState, len(states.List))
	for i := range states.List {
		by[states.List[i].Name] = &states.List[i]
	}
	var list []ScheduleStatus
	for _, entry := range entries {
		s, _ := known.Of(scheduleSetting(entry.Name))
		list = append(list, e.scheduleStatus(&entry, &s, by[entry.Name], states.Now))
	}
	return list, nil
}

func (e *Engine) scheduleStatus(entry *schedules.Entry, s *store.EffectiveSetting, state *store.ScheduleState, now time.Time) ScheduleStatus {
	by := store.Override{}
	if s.Override != nil {
		by = *s.Override
	}
	status := ScheduleStatus{
		Name: s.Name, Holds: entry.Settings, Owner: s.Owner, Version: s.Version, Overridden: s.Overridden,
		By: by.By, Note: by.Note, Since: by.Since, Conflicts: s.Conflicts, Paused: entry.Settings.IsPaused(),
		Next: schedules.NextOf(entry, state, now),
	}
	if s.Declared != nil {
		_ = json.Unmarshal(s.Declared, &status.Declared) // what cannot be read is shown as not set (P8)
	}
	if state != nil {
		status.Last, status.LastJob, status.Fires, status.Skips = state.Last, state.LastJob, state.Fires, state.Skips
	}
	fault := entry.Fault
	if fault == nil {
		fault = e.firingFailure(s.Name)
	}
	if fault != nil {
		status.Fault = fault.Error()
	}
	return status
}

// firingFailure is why this process could not fire a schedule the last time.
func (e *Engine) firingFailure(name string) error {
	e.followed.mu.Lock()
	defer e.followed.mu.Unlock()
	if e.followed.scheduler == nil {
		return nil
	}
	return e.followed.scheduler.Failure(name)
}

// ScheduleHandle is one schedule, to operate on.
type ScheduleHandle struct {
	engine *Engine
	name   string
}

// Schedule names a schedule to operate on.
func (e *Engine) Schedule(name string) ScheduleHandle { return ScheduleHandle{e, name} }

// Pause stops the schedule in the whole cluster and for good: until Resume, also past
// a deploy. Due times that pass meanwhile are not made up for. Once it has returned
// nothing is fired any more; jobs that were go on.
func (h ScheduleHandle) Pause(ctx context.Context) error {
	return h.override(ctx, json.RawMessage(`{"paused":true}`))
}

// Resume lets it go on, from now.
func (h ScheduleHandle) Resume(ctx context.Context) error {
	return h.override(ctx, json.RawMessage(`{"paused":null}`))
}

// Set puts the fields that are not zero over what holds, in the whole cluster and for
// good: until Reset, also past a deploy. An expression, a zone or a job that could not
// be fired is refused. Another expression or zone begins anew, now.
func (h ScheduleHandle) Set(ctx context.Context, s ScheduleSettings) error {
	value, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if string(value) == "{}" {
		return job.Invalid("ScheduleSettings", "nothing", "must set a field; Reset takes back what was set")
	}
	return h.override(ctx, value)
}

// Reset takes back what was set: the fields that are named, as JSON names them
// ("cron", "catch_up"), else all of them. What code declares holds again.
func (h ScheduleHandle) Reset(ctx context.Context, fields ...string) error {
	var value json.RawMessage
	if len(fields) > 0 {
		back := map[string]any{}
		for _, f := range fields {
			if !slices.Contains(job.ScheduleFields, f) {
				return job.Invalid("field", f, fmt.Sprintf("must be one of %v", job.ScheduleFields))
			}
			back[f] = nil
		}
		var err error
		if value, err = json.Marshal(back); err != nil {
			return err
		}
	}
	return h.override(ctx, value)
}

// Create makes a schedule that no code declares. Its Name is the handle's.
func (h ScheduleHandle) Create(ctx context.Context, s Schedule) error {
	known, found, err := h.holds(ctx)
	if err != nil {
		return err
	}
	if found {
		if entry := schedules.ReadOne(h.name, known.Value); known.Owner != "" || entry.Settings.Kind != "" {
			return job.Invalid("schedule", h.name, "is there already; Set changes it")
		}
	}
	if all, err := h.engine.settingsNow(ctx); err != nil {
		return err
	} else if n := len(schedules.Read(all)); n >= store.MaxSchedules {
		return job.Invalid("schedule", h.name, fmt.Sprintf("there are %d already, and may be %d", n, store.MaxSchedules))
	}
	s.Name = cmp.Or(s.Name, h.name)
	if s.Name != h.name {
		return job.Invalid("schedule", s.Name, fmt.Sprintf("must be %q, as the handle's", h.name))
	}
	set, err := s.settings(&h.engine.cfg)
	if err != nil {
		return err
	}
	value, err := json.Marshal(set)
	if err != nil {
		return err
	}
	if entry := schedules.ReadOne(h.name, value); entry.Fault != nil {
		return entry.Fault
	}
	return h.engine.override(ctx, scheduleSetting(h.name), value)
}

// Delete removes a schedule that an operator has created. One that code declares
// cannot be removed: Pause stops it.
func (h ScheduleHandle) Delete(ctx context.Context) error {
	known, found, err := h.holds(ctx)
	switch {
	case err != nil:
		return err
	case !found:
		return h.notFound()
	case known.Owner != "":
		return job.Invalid("schedule", h.name, fmt.Sprintf("is declared by code of %s: Pause stops it", known.Owner))
	}
	if err := h.engine.override(ctx, scheduleSetting(h.name), nil); err != nil {
		return err
	}
	st, err := h.engine.schedulesStore(ctx)
	if err != nil {
		return err
	}
	return st.ForgetSchedule(ctx, h.name) // one of that name begins anew
}

// Trigger enqueues the job of the schedule now, beside its due times, also while it is
// paused. With SkipIfActive the receipt is a duplicate while a job of it is live.
//
// Rules make the job unique, so that a call whose answer was lost can be repeated:
// Trigger(ctx, ByKey("release-7"), HeldFor(24*time.Hour)). They say nothing where the
// schedule's jobs are unique already, by SkipIfActive or by Unique.
func (h ScheduleHandle) Trigger(ctx context.Context, rules ...UniqueRule) (Receipt, error) {
	e := h.engine
	st, err := e.schedulesStore(ctx)
	if err != nil {
		return Receipt{}, err
	}
	known, found, err := h.holds(ctx)
	if err != nil {
		return Receipt{}, err
	}
	if !found {
		return Receipt{}, h.notFound()
	}
	entry := schedules.ReadOne(h.name, known.Value)
	if err := entry.Settings.Check("schedule " + h.name); err != nil {
		return Receipt{}, err
	}
	drafts, end, err := e.drafts(ctx, []Item{scheduledItem(&entry, func(d *draftBuilder) {
		if len(rules) > 0 && d.Draft.Unique.Hash == nil {
			Unique(rules...).enqueue(d)
		}
	})})
	if err != nil {
		return Receipt{}, err
	}
	receipt, err := st.TriggerSchedule(ctx, h.name, drafts[0], operatorOf(ctx))
	end(err)
	if err != nil && !errors.Is(err, ErrOutcomeUnknown) {
		return Receipt{}, err
	}
	e.hub.Ready(wake.Hints(drafts)...)
	return receipt, err
}

// override changes what is set, if the schedule is there and can be fired after it.
func (h ScheduleHandle) override(ctx context.Context, value json.RawMessage) error {
	known, found, err := h.holds(ctx)
	if err != nil {
		return err
	}
	if !found {
		if found, err = h.wasThere(ctx); err != nil {
			return err
		}
		if !found {
			return h.notFound()
		}
		return h.engine.override(ctx, scheduleSetting(h.name), value)
	}
	if value == nil && known.Owner == "" {
		return job.Invalid("schedule", h.name, "is declared by no code: Delete removes it")
	}
	before := schedules.ReadOne(h.name, known.Value)
	after, err := afterOverride(&known, value)
	if err != nil {
		return err
	}
	if entry := schedules.ReadOne(h.name, after); entry.Fault != nil && before.Fault == nil {
		return entry.Fault
	}
	return h.engine.override(ctx, scheduleSetting(h.name), value)
}

// wasThere reports whether the schedule was there while somebody ran: it can be paused
// before anybody does again.
func (h ScheduleHandle) wasThere(ctx context.Context) (bool, error) {
	st, err := h.engine.schedulesStore(ctx)
	if err != nil {
		return false, err
	}
	states, err := st.ScheduleStates(ctx)
	return slices.ContainsFunc(states.List, func(s store.ScheduleState) bool { return s.Name == h.name }), err
}

// afterOverride is what a schedule comes to when an operator sets something.
func afterOverride(known *store.EffectiveSetting, value json.RawMessage) (json.RawMessage, error) {
	var set json.RawMessage
	if known.Override != nil {
		set = known.Override.Value
	}
	set, err := known.Patch(set, value)
	if err != nil {
		return nil, err
	}
	under := store.Object{}
	if known.Declared != nil {
		if under, err = store.ParseObject(known.Declared); err != nil {
			return nil, err
		}
	}
	over := store.Object{}
	if set != nil {
		if over, err = store.ParseObject(set); err != nil {
			return nil, err
		}
	}
	return over.Over(under).Text()
}

func (h ScheduleHandle) notFound() error { return job.NotFound("schedule", h.name) }

// holds is what the schedule comes to, now.
func (h ScheduleHandle) holds(ctx context.Context) (store.EffectiveSetting, bool, error) {
	if err := job.CheckName("schedule", h.name); err != nil {
		return store.EffectiveSetting{}, false, err
	}
	if _, err := h.engine.schedulesStore(ctx); err != nil {
		return store.EffectiveSetting{}, false, err
	}
	known, err := h.engine.settingsNow(ctx)
	if err != nil {
		return store.EffectiveSetting{}, false, err
	}
	s, found := known.Of(scheduleSetting(h.name))
	return s, found, nil
}

// settingsNow reads what is declared and set.
func (e *Engine) settingsNow(ctx context.Context) (*store.Effective, error) {
	answer, err := e.store.Settings(ctx)
	if err != nil {
		return nil, err
	}
	known := store.Resolve(answer)
	return &known, nil
}

// schedulesStore is the store, if it keeps schedules.
func (e *Engine) schedulesStore(ctx context.Context) (store.Schedules, error) {
	if err := e.usable(ctx); err != nil {
		return nil, err
	}
	st, ok := e.store.(store.Schedules)
	if !ok {
		return nil, fmt.Errorf("%w: the store keeps no schedules", errors.ErrUnsupported)
	}
	return st, nil
}
