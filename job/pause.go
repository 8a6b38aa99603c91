package job

import (
	"fmt"
	"time"
)

// Pause is what is paused, since when, by whom and why.
type Pause struct {
	Scope PauseScope `json:"scope"`
	Name  string     `json:"name,omitempty"` // of the queue or kind; empty for everything
	Since time.Time  `json:"since"`
	By    string     `json:"by,omitempty"`
	Note  string     `json:"note,omitempty"`
}

// PauseScope says what a pause stops. The numbers are stored: never renumber.
type PauseScope uint8

// The scopes. A paused kind is not looked for by claims: each process takes it out
// of its offer as soon as it has heard of it.
const (
	PauseQueue PauseScope = 1
	PauseKind  PauseScope = 2
	PauseAll   PauseScope = 3
)

var pauseScopeNames = [...]string{PauseQueue: "queue", PauseKind: "kind", PauseAll: "all"}

func (s PauseScope) String() string {
	if s < PauseQueue || int(s) >= len(pauseScopeNames) {
		return fmt.Sprintf("scope(%d)", uint8(s))
	}
	return pauseScopeNames[s]
}

// Check refuses a pause of something that cannot be paused.
func (p *Pause) Check() error {
	switch p.Scope {
	case PauseQueue, PauseKind:
		return CheckName(p.Scope.String(), p.Name)
	case PauseAll:
		if p.Name != "" {
			return Invalid("name", p.Name, "must be empty where everything is paused")
		}
		return nil
	}
	return Invalid("scope", p.Scope, "must be queue (1), kind (2) or all (3)")
}

func (p *Pause) String() string {
	var text string
	switch p.Scope {
	case PauseAll:
		text = "everything is frozen"
	default:
		text = fmt.Sprintf("%s %s is paused", p.Scope, p.Name)
	}
	if p.By != "" {
		text += " by " + p.By
	}
	text += " since " + stamp(p.Since)
	if p.Note != "" {
		text += ": " + clip(p.Note, 200)
	}
	return text
}

// code is what a job waits for that the pause stops.
func (p *Pause) code() WhyCode {
	switch p.Scope {
	case PauseAll:
		return WhyFrozen
	case PauseKind:
		return WhyKindPaused
	}
	return WhyPaused
}

// blocker is what has to be resumed.
func (p *Pause) blocker() string {
	if p.Scope == PauseAll {
		return p.Scope.String()
	}
	return p.Scope.String() + " " + p.Name
}
