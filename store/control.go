package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Control is what code declares and operators set. What code declares comes with
// Register (Worker.Declares).
type Control interface {
	// Settings reads everything that is declared and set, with its revision.
	Settings(ctx context.Context) (SettingsReply, error)
	// Override puts the fields of a JSON object over what operators have set for one
	// name: those that it does not name stay, one that is null is taken back, and nil
	// takes all of it back. Its audit entry commits with it.
	Override(ctx context.Context, s Setting, value json.RawMessage, op Operator) error
	// SetPaused stops or allows claims: from a queue, of a kind, or all of them. The
	// scope and name of p say which; who does it is the operator. Running jobs go on.
	// Pausing again changes neither time nor note.
	SetPaused(ctx context.Context, p Pause, paused bool, op Operator) error
	// Record writes an audit entry by itself, of what was done in transactions of their
	// own: every other entry commits with its change.
	Record(ctx context.Context, op Operator, action, target, detail string) error
}

// Setting names something that has settings.
type Setting struct {
	Kind SettingKind `json:"kind"`
	Name string      `json:"name"`
}

// SettingKind is the kind of thing that has settings. The names are stored.
type SettingKind string

// The kinds. Those of later builds are kept and passed over.
const (
	SettingQueue    SettingKind = "queue"
	SettingUpkeep   SettingKind = "upkeep" // a round
	SettingSchedule SettingKind = "schedule"
	SettingLimit    SettingKind = "limit"
	SettingTopic    SettingKind = "topic"
	SettingBudget   SettingKind = "budget"
)

// Declaration is one thing that code declares: a JSON object.
type Declaration struct {
	Setting
	Value json.RawMessage `json:"value"`
}

// Declared is a declaration as it is kept. A version is live while it has a worker
// that has neither left nor been lost; only those of live versions are listed. A
// version declares what any of its workers has declared since it was last seen
// anew; of two values for one name, the newest.
type Declared struct {
	Declaration
	Owner   string `json:"owner"`
	Version string `json:"version"`
	// Since is when this owner began to hold the name: it passes from one version
	// to the next while one of them is live. Of two owners the first keeps the name.
	Since time.Time `json:"since"`
	// Seen is when the version was first seen: anew when it comes back after it had
	// no live worker. Of two versions of an owner the one seen last counts. No two
	// versions are seen at one moment, and a later one never before an earlier one,
	// whatever the clock does.
	Seen time.Time `json:"seen"`
}

// Override is what operators have set for one name.
type Override struct {
	Setting
	Value json.RawMessage
	By    string
	Note  string
	Since time.Time
}

// What is paused. The words are those of job, which says why a job waits.
type (
	// Pause is what is paused, since when, by whom and why.
	Pause = job.Pause
	// PauseScope says what a pause stops.
	PauseScope = job.PauseScope
)

// The scopes.
const (
	PauseQueue = job.PauseQueue
	PauseKind  = job.PauseKind
	PauseAll   = job.PauseAll
)

// OfQueue is the pause of a queue.
func OfQueue(name string) Pause { return Pause{Scope: PauseQueue, Name: name} }

// VersionInfo is one version of an owner's code.
type VersionInfo struct {
	Owner, Version string
	Seen           time.Time
	Live           bool
}

// SettingsReply is everything that is declared and set.
type SettingsReply struct {
	// Revision changes whenever any of it does, and never comes again. It rides in
	// the answers of beats and claims, so that nobody has to ask.
	Revision  int64
	Declared  []Declared
	Overrides []Override
	Pauses    []Pause
	Versions  []VersionInfo
}

// SortSettings puts the lists in the order of their names, as every store gives them.
func SortSettings(r *SettingsReply) {
	slices.SortFunc(r.Declared, func(a, b Declared) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), a.Setting.compare(b.Setting), cmp.Compare(a.Version, b.Version))
	})
	slices.SortFunc(r.Overrides, func(a, b Override) int { return a.Setting.compare(b.Setting) })
	slices.SortFunc(r.Pauses, func(a, b Pause) int { return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Name, b.Name)) })
	slices.SortFunc(r.Versions, func(a, b VersionInfo) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Version, b.Version))
	})
}
