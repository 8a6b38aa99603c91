package pawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Limit bounds how many jobs run at once, or how often something is done, in the
// whole cluster. It is declared with the code (Config.Limits), and operators can
// change it while it runs (LimitHandle.Set). The fields are those of LimitSettings.
type Limit struct {
	Name string
	// Queue and Kind say which jobs it is about: those of a queue, of a kind or of the
	// kinds that a pattern names ("render.*"). Without both it is a rate to acquire
	// from (Acquire).
	Queue, Kind string
	// PerKey bounds each key of these jobs by itself.
	PerKey bool
	// Concurrent is how many of these jobs run at once [no bound].
	Concurrent int
	// Ordered keeps the jobs of a key in order, also past a retry: with PerKey and
	// Concurrent 1.
	Ordered bool
	// Weights say how much more often than others a key is served [1].
	Weights map[string]int
	// Burst is how many tokens a full bucket holds [as many as come in a second, at
	// least 1], PerSecond how many come in a second [no bound].
	Burst     int
	PerSecond float64
}

func (l *Limit) settings() LimitSettings {
	return LimitSettings{
		Queue: l.Queue, Kind: l.Kind, PerKey: l.PerKey, Concurrent: l.Concurrent, Ordered: l.Ordered, Weights: l.Weights,
		Burst: l.Burst, PerSecond: l.PerSecond,
	}
}

func limitSetting(name string) store.Setting {
	return store.Setting{Kind: store.SettingLimit, Name: name}
}

// checkLimits reports every fault of the declared limits.
func (c *Config) checkLimits() error {
	var errs []error
	seen, settings := map[string]bool{}, map[string]LimitSettings{}
	for i := range c.Limits {
		l := &c.Limits[i]
		at := fmt.Sprintf("Config.Limits[%d]", i)
		errs = append(errs, job.CheckName(at+".Name", l.Name))
		if seen[l.Name] {
			errs = append(errs, job.Invalid(at+".Name", l.Name, "must be there once"))
		}
		seen[l.Name] = true
		s := l.settings()
		errs = append(errs, s.Check(at))
		settings[l.Name] = s
	}
	for _, fault := range job.NewGateRules(settings).Faults() {
		errs = append(errs, job.Invalid("Config.Limits", fmt.Sprintf("%d limits", len(c.Limits)), "must not have two that bound one job where only one rate can hold: "+fault))
	}
	return errors.Join(errs...)
}

// limitRules are the limits that hold as this process knows it. They are replaced,
// never changed.
type limitRules struct {
	holds    map[string]LimitSettings // by name
	revision int64                    // of what is declared and set; 0 before that is known
	gates    *job.GateRules           // of those that are about jobs; nil for none
}

// limitRulesOf reads what holds, of what is known; nil before that. A limit of this
// process's code holds also while nobody has declared it: an engine that only
// enqueues declares nothing.
func (c *Config) limitRulesOf(known *store.Effective) *limitRules {
	r := &limitRules{holds: make(map[string]LimitSettings, len(c.Limits))}
	for i := range c.Limits {
		r.holds[c.Limits[i].Name] = c.Limits[i].settings()
	}
	defer func() { r.gates = job.NewGateRules(r.holds) }()
	if known == nil {
		return r
	}
	r.revision = known.Revision
	for _, s := range known.Settings {
		if s.Kind != store.SettingLimit {
			continue
		}
		holds := LimitSettings{}
		if s.Owner == "" { // only operators say something: the rest is the code's own
			holds = r.holds[s.Name]
		}
		if err := json.Unmarshal(s.Value, &holds); err != nil { // those fields only (P8)
			c.Logger.Warn("settings of a limit cannot be read", "limit", s.Name, "error", err)
		}
		r.holds[s.Name] = holds
	}
	return r
}

// find is the limit of this name.
func (r *limitRules) find(name string) (LimitSettings, bool) {
	s, ok := r.holds[name]
	return s, ok
}

// LimitHandle is one limit, to operate on.
type LimitHandle struct {
	engine    *Engine
	name, key string
}

// Limit names a limit to operate on.
func (e *Engine) Limit(name string) LimitHandle { return LimitHandle{engine: e, name: name} }

// Set puts the fields that are not zero over what code declares for the limit, in the
// whole cluster and for good: until Reset, also past a deploy. Those that it does not
// name stay as they are. Processes follow within a second.
func (l LimitHandle) Set(ctx context.Context, s LimitSettings) error {
	if err := job.CheckName("limit", l.name); err != nil {
		return err
	}
	if err := s.CheckFields("LimitSettings"); err != nil {
		return err
	}
	value, err := patchOf("LimitSettings", s)
	if err != nil {
		return err
	}
	if err := l.goesWith(ctx, value); err != nil {
		return err
	}
	return l.engine.override(ctx, limitSetting(l.name), value)
}

// goesWith refuses fields that make no limit together with those that hold now, as the
// store has them: who operates may know of no limit itself.
func (l LimitHandle) goesWith(ctx context.Context, value json.RawMessage) error {
	limits, err := l.engine.Limits(ctx)
	if err != nil {
		return err
	}
	merged, known := l.engine.followed.limits.Load().find(l.name) // one of its own code, that nobody has declared yet
	if i := slices.IndexFunc(limits, func(s EffectiveLimit) bool { return s.Name == l.name }); i >= 0 {
		merged, known = limits[i].Holds, true
	}
	if err := json.Unmarshal(value, &merged); err != nil {
		return err
	}
	if err := merged.Check("limit " + l.name); err != nil {
		return err
	}
	if !known {
		l.engine.cfg.Logger.WarnContext(ctx, "a limit is set that nobody declares", "limit", l.name)
	}
	return nil
}

// Reset takes back what was set: the fields that are named, as JSON names them
// ("burst", "per_second"), else all of them. What code declares holds again.
func (l LimitHandle) Reset(ctx context.Context, fields ...string) error {
	if err := job.CheckName("limit", l.name); err != nil {
		return err
	}
	value, err := takeBack(fields, job.LimitFields())
	if err != nil {
		return err
	}
	return l.engine.override(ctx, limitSetting(l.name), value)
}

// takeBack is what takes fields back that were set: nil takes back all of them.
func takeBack(fields, known []string) (json.RawMessage, error) {
	if len(fields) == 0 {
		return nil, nil
	}
	back := map[string]any{}
	for _, f := range fields {
		if !slices.Contains(known, f) {
			return nil, job.Invalid("field", f, fmt.Sprintf("must be one of %v", known))
		}
		back[f] = nil
	}
	return json.Marshal(back)
}

// EffectiveLimit is what holds for one limit, and where it comes from.
type EffectiveLimit struct {
	Name string
	// Holds is what is declared, with the fields over it that operators have set.
	Holds LimitSettings
	// Declared is what code says, and whose it is; empty when none does.
	Declared       LimitSettings
	Owner, Version string
	// Overridden names the fields that operators have set, By, Note and Since who
	// was the last of them.
	Overridden []string
	By, Note   string
	Since      time.Time
	// Conflicts are other owners that declare the limit differently, and do not count.
	Conflicts []Conflict
}

// Limits shows the limits that are declared and set, as they hold now, by name.
func (e *Engine) Limits(ctx context.Context) ([]EffectiveLimit, error) {
	s, err := e.Settings(ctx)
	return s.Limits, err
}
