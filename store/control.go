package store

import (
	"context"
	"encoding/json"
	"time"
)

// Control is what code declares and operators set. What code declares comes with
// Register (Worker.Declares).
type Control interface {
	// Settings reads everything that is declared and set, with its revision.
	Settings(ctx context.Context) (SettingsReply, error)
	// Override replaces what operators have set for one name, field by field of a
	// JSON object; nil takes it all back. Its audit entry commits with it.
	Override(ctx context.Context, s Setting, value json.RawMessage, op Operator) error
	// SetPaused stops or allows claims: from a queue, of a kind, or all of them.
	// Running jobs go on. Pausing again changes neither time nor note.
	SetPaused(ctx context.Context, p Pause, paused bool, op Operator) error
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
// that has neither left nor been lost; only those of live versions are listed.
type Declared struct {
	Declaration
	Owner, Version string
	// Since is when this owner began to hold the name: it passes from one version
	// to the next while one of them is live. Of two owners the first keeps the name.
	Since time.Time
	// Seen is when the version was first seen: anew when it comes back after it had
	// no live worker. Of two versions of an owner the one seen last counts.
	Seen time.Time
}

// Override is what operators have set for one name.
type Override struct {
	Setting
	Value json.RawMessage
	By    string
	Note  string
	Since time.Time
}

// Pause is what is paused, since when, by whom and why.
type Pause struct {
	Scope PauseScope
	Name  string // of the queue or kind; empty for everything
	Since time.Time
	By    string
	Note  string
}

// PauseScope says what a pause stops. The numbers are stored: never renumber.
type PauseScope uint8

// The scopes. A paused kind is not looked for: each process takes it out of its
// offer as soon as it has heard of it.
const (
	PauseQueue PauseScope = 1
	PauseKind  PauseScope = 2
	PauseAll   PauseScope = 3
)

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
