package pawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/internal/keeper"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// QueueHandle is one queue, to operate on.
type QueueHandle struct {
	engine *Engine
	name   string
}

// Queue names a queue to operate on. Set and Reset take a pattern, too ("*",
// "mail.*"): it holds for every queue that it names.
func (e *Engine) Queue(name string) QueueHandle { return QueueHandle{e, name} }

// Set puts the fields that are not zero over what code declares for the queue, in
// the whole cluster and for good: until Reset, also past a deploy. Those that it
// does not name stay as they are. Processes follow within a second.
func (q QueueHandle) Set(ctx context.Context, s QueueSettings) error {
	if err := job.CheckPattern("queue", q.name); err != nil {
		return err
	}
	if err := s.Check("QueueSettings"); err != nil {
		return err
	}
	value, err := patchOf("QueueSettings", s)
	if err != nil {
		return err
	}
	return q.engine.override(ctx, queueSetting(q.name), value)
}

// patchOf is what puts the fields of settings that are not zero over what is declared.
func patchOf(field string, settings any) (json.RawMessage, error) {
	value, err := json.Marshal(settings)
	if err == nil && string(value) == "{}" {
		err = job.Invalid(field, "nothing", "must set a field; Reset takes back what was set")
	}
	return value, err
}

// Reset takes back what was set: the fields that are named, as JSON names them
// ("total", "keep_done"), else all of them. What code declares holds again.
func (q QueueHandle) Reset(ctx context.Context, fields ...string) error {
	if err := job.CheckPattern("queue", q.name); err != nil {
		return err
	}
	value, err := takeBack(fields, queueFields)
	if err != nil {
		return err
	}
	return q.engine.override(ctx, queueSetting(q.name), value)
}

// queueFields are the fields of QueueSettings as JSON names them.
var queueFields = []string{"total", "attempts", "keep_done", "keep_dead", "keep_cancelled", "aging", "backoff"}

// Pause stops claims from the queue in the whole cluster. Running jobs go on. A queue
// that nobody serves, declares or has jobs in can be paused, too; it is logged as a
// warning, because mostly it is mistyped.
func (q QueueHandle) Pause(ctx context.Context) error {
	if err := q.engine.setPaused(ctx, store.OfQueue(q.name), true); err != nil {
		return err
	}
	q.warnUnknown(ctx)
	return nil
}

// warnUnknown warns of a queue that nobody knows.
func (q QueueHandle) warnUnknown(ctx context.Context) {
	e := q.engine
	reader, ok := e.store.(store.QueueReader)
	if !ok || job.MatchesAny(e.cfg.queueNames(), q.name) {
		return
	}
	states, err := reader.Queues(ctx, []string{q.name})
	if err != nil || len(states) != 1 || states[0].Known() {
		return
	}
	if reply, err := e.store.Settings(ctx); err != nil || slices.ContainsFunc(reply.Declared, func(d store.Declared) bool { return d.Setting == queueSetting(q.name) }) {
		return
	}
	e.cfg.Logger.Warn("a queue was paused that no worker serves, no code declares and no job waits in: is its name right?", "queue", q.name)
}

// Resume allows claims again.
func (q QueueHandle) Resume(ctx context.Context) error {
	return q.engine.setPaused(ctx, store.OfQueue(q.name), false)
}

// ResetCoolDown ends the cool-down of the queue in the whole cluster, and forgets how
// often it was throttled.
func (q QueueHandle) ResetCoolDown(ctx context.Context) error {
	if err := q.engine.usable(ctx); err != nil {
		return err
	}
	kept, ok := q.engine.store.(store.CoolDowns)
	if !ok {
		return fmt.Errorf("reset a cool-down: %w", errors.ErrUnsupported)
	}
	if err := kept.ResetCoolDown(ctx, q.name, operatorOf(ctx)); err != nil {
		return err
	}
	q.engine.hub.Ready(store.Hint{Subject: store.SubjectSetting}, store.Hint{Subject: store.SubjectQueue, Name: q.name})
	return nil
}

// KindHandle is one kind, to operate on.
type KindHandle struct {
	engine *Engine
	name   string
}

// Kind names a kind to operate on.
func (e *Engine) Kind(name string) KindHandle { return KindHandle{e, name} }

// Pause stops claims of the kind, in every queue: each process takes it out of what
// it asks for within a second. Running jobs go on.
func (k KindHandle) Pause(ctx context.Context) error {
	return k.engine.setPaused(ctx, store.Pause{Scope: store.PauseKind, Name: k.name}, true)
}

// Resume allows claims again.
func (k KindHandle) Resume(ctx context.Context) error {
	return k.engine.setPaused(ctx, store.Pause{Scope: store.PauseKind, Name: k.name}, false)
}

// Freeze stops all claims of the namespace. Running jobs go on, and jobs are
// accepted.
func (e *Engine) Freeze(ctx context.Context) error {
	return e.setPaused(ctx, store.Pause{Scope: store.PauseAll}, true)
}

// Unfreeze allows claims again, but for what is paused by itself.
func (e *Engine) Unfreeze(ctx context.Context) error {
	return e.setPaused(ctx, store.Pause{Scope: store.PauseAll}, false)
}

func (e *Engine) setPaused(ctx context.Context, p store.Pause, paused bool) error {
	if err := e.usable(ctx); err != nil {
		return err
	}
	if err := p.Check(); err != nil {
		return err
	}
	if err := e.store.SetPaused(ctx, p, paused, operatorOf(ctx)); err != nil {
		return err
	}
	e.hub.Ready(store.Hint{Subject: store.SubjectSetting}, store.Hint{Subject: store.SubjectQueue})
	return nil
}

func (e *Engine) override(ctx context.Context, s store.Setting, value json.RawMessage) error {
	if err := e.usable(ctx); err != nil {
		return err
	}
	if err := e.store.Override(ctx, s, value, operatorOf(ctx)); err != nil {
		return err
	}
	e.hub.Ready(store.Hint{Subject: store.SubjectSetting})
	return nil
}

// upkeepSetting is how a round's settings are kept.
type upkeepSetting struct {
	Every string `json:"every"`
}

// Bounds of the time between two rounds of upkeep.
const (
	minEvery = 100 * time.Millisecond
	maxEvery = 24 * time.Hour
)

// SetUpkeep sets how often a round of upkeep is done, in the whole cluster: 100 ms
// to a day; 0 takes it back. The rounds are those of Upkeep.
func (e *Engine) SetUpkeep(ctx context.Context, round string, every time.Duration) error {
	if !slices.Contains(keeper.Names(), round) {
		return job.Invalid("round", round, fmt.Sprintf("must be one of %v", keeper.Names()))
	}
	if every != 0 && (every < minEvery || every > maxEvery) {
		return job.Invalid("every", every, fmt.Sprintf("must be 0 (the default) or %v to %v", minEvery, maxEvery))
	}
	var value json.RawMessage
	if every != 0 {
		var err error
		if value, err = json.Marshal(upkeepSetting{every.String()}); err != nil {
			return err
		}
	}
	return e.override(ctx, store.Setting{Kind: store.SettingUpkeep, Name: round}, value)
}

// upkeepEvery reads what SetUpkeep wrote; 0 when it cannot be read or is out of
// bounds: then the default holds.
func upkeepEvery(value json.RawMessage) time.Duration {
	var s upkeepSetting
	if json.Unmarshal(value, &s) != nil {
		return 0
	}
	d, err := time.ParseDuration(s.Every)
	if err != nil || d < minEvery || d > maxEvery {
		return 0
	}
	return d
}

// Settings is everything that is declared and set, and what it comes to.
type Settings struct {
	Revision int64 // changes with each change
	Queues   []EffectiveQueue
	Limits   []EffectiveLimit
	Topics   []EffectiveTopic
	// Schedules are those of Engine.Schedules.
	Schedules []ScheduleStatus
	Upkeep    []EffectiveUpkeep
	Pauses    []Pause
	Versions  []VersionInfo // of the code that declares, also of what no longer runs

	holds store.Effective
}

// Queue is what holds for one queue, with what patterns say for it: its own
// declaration, else that of the longest pattern that names it; over that, field by
// field, what operators have set for such patterns, the longer over the shorter, and
// then for the queue itself.
func (s *Settings) Queue(name string) EffectiveQueue {
	holds, _ := s.holds.Queue(name)
	return effectiveQueue(holds)
}

// EffectiveQueue is what holds for one queue, or is said for a pattern of queues, and
// where it comes from.
type EffectiveQueue struct {
	Name string
	// Pattern is the one whose declaration holds for a queue that has none of its own.
	Pattern string
	// Holds is what is declared, with the fields over it that operators have set.
	Holds QueueSettings
	// Declared is what code says, and whose it is; empty when none does.
	Declared       QueueSettings
	Owner, Version string
	// Overridden names the fields that operators have set, By, Note and Since who
	// was the last of them.
	Overridden []string
	By, Note   string
	Since      time.Time
	// Conflicts are other owners that declare the queue differently, and do not count.
	Conflicts []Conflict
}

// EffectiveUpkeep is how often a round of upkeep is done, where operators have set it.
type EffectiveUpkeep struct {
	Round    string
	Every    time.Duration
	By, Note string
	Since    time.Time
}

// Settings shows what is declared and set, as it holds now.
func (e *Engine) Settings(ctx context.Context) (Settings, error) {
	if err := e.usable(ctx); err != nil {
		return Settings{}, err
	}
	answer, err := e.store.Settings(ctx)
	if err != nil {
		return Settings{}, err
	}
	holds := store.Resolve(answer)
	shown := Settings{Revision: holds.Revision, Pauses: holds.Pauses, Versions: answer.Versions, holds: holds}
	for _, s := range holds.Settings {
		switch s.Kind {
		case store.SettingQueue:
			shown.Queues = append(shown.Queues, shown.Queue(s.Name))
		case store.SettingLimit:
			var by store.Override
			if s.Override != nil {
				by = *s.Override
			}
			l := EffectiveLimit{
				Name: s.Name, Owner: s.Owner, Version: s.Version, Overridden: s.Overridden,
				By: by.By, Note: by.Note, Since: by.Since, Conflicts: s.Conflicts,
			}
			// What cannot be read is shown as not set (P8).
			_ = json.Unmarshal(s.Value, &l.Holds)
			if s.Declared != nil {
				_ = json.Unmarshal(s.Declared, &l.Declared)
			}
			shown.Limits = append(shown.Limits, l)
		case store.SettingTopic:
			shown.Topics = append(shown.Topics, shown.Topic(s.Name))
		case store.SettingUpkeep:
			var by store.Override
			if s.Override != nil {
				by = *s.Override
			}
			shown.Upkeep = append(shown.Upkeep, EffectiveUpkeep{s.Name, upkeepEvery(s.Value), by.By, by.Note, by.Since})
		}
	}
	if st, ok := e.store.(store.Schedules); ok {
		if shown.Schedules, err = e.scheduleList(ctx, st, &holds); err != nil {
			return Settings{}, err
		}
	}
	return shown, nil
}

// effectiveQueue shows what holds. What cannot be read is shown as not set (P8).
func effectiveQueue(s store.EffectiveSetting) EffectiveQueue {
	q := EffectiveQueue{
		Name: s.Name, Pattern: s.Pattern, Owner: s.Owner, Version: s.Version, Overridden: s.Overridden, Conflicts: s.Conflicts,
	}
	if s.Override != nil {
		q.By, q.Note, q.Since = s.Override.By, s.Override.Note, s.Override.Since
	}
	if s.Value != nil {
		_ = json.Unmarshal(s.Value, &q.Holds)
	}
	if s.Declared != nil {
		_ = json.Unmarshal(s.Declared, &q.Declared)
	}
	return q
}
