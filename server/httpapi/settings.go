package httpapi

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/server/auth"
)

// settings adds the route of everything that is declared and set.
func (a *api) settings() {
	route(a, operation{
		method: http.MethodGet, path: "/settings", id: "get-settings", tag: "settings", role: auth.Viewer,
		summary: "Read what is declared and set: queues, patterns of them, limits, upkeep, pauses, versions of code; no schedules",
	}, a.getSettings)
}

// Source says where settings come from: code, and over it, field by field, operators.
type Source struct {
	Owner      string     `json:"owner,omitempty" doc:"whose code declares it; none: operators alone say something"`
	Version    string     `json:"version,omitempty" doc:"of that code"`
	Overridden []string   `json:"overridden" nullable:"false" doc:"the fields that operators have set"`
	By         string     `json:"by,omitempty" doc:"who was the last of them"`
	Note       string     `json:"note,omitempty" doc:"theirs"`
	Since      time.Time  `json:"since,omitzero"`
	Conflicts  []Conflict `json:"conflicts,omitempty" doc:"other owners that declare it differently, and do not count"`
}

// Conflict is an owner who declares what another one holds.
type Conflict struct {
	Owner   string    `json:"owner"`
	Version string    `json:"version,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

func sourceOf(owner, version string, overridden []string, by, note string, since time.Time, conflicts []pawl.Conflict) Source {
	s := Source{Owner: owner, Version: version, Overridden: slices.Clone(overridden), By: by, Note: note, Since: since}
	if s.Overridden == nil {
		s.Overridden = []string{}
	}
	for _, c := range conflicts {
		s.Conflicts = append(s.Conflicts, Conflict{c.Owner, c.Version, c.Since})
	}
	return s
}

// Pause is what is paused, since when, by whom and why.
type Pause struct {
	Scope string    `json:"scope" enum:"queue,kind,all"`
	Name  string    `json:"name,omitempty" doc:"of the queue or kind"`
	Since time.Time `json:"since"`
	By    string    `json:"by,omitempty"`
	Note  string    `json:"note,omitempty"`
}

func pauseOf(p *pawl.Pause) Pause { return Pause{p.Scope.String(), p.Name, p.Since, p.By, p.Note} }

// Version is one version of an owner's code.
type Version struct {
	Owner   string    `json:"owner"`
	Version string    `json:"version"`
	Seen    time.Time `json:"seen" doc:"when its last worker came"`
	Live    bool      `json:"live" doc:"one of its workers lives"`
}

// Settings is everything that is declared and set, and what it comes to.
type Settings struct {
	Revision int64            `json:"revision" doc:"another one with each change"`
	Queues   []EffectiveQueue `json:"queues" nullable:"false" doc:"by name; patterns are among them"`
	Limits   []Limit          `json:"limits" nullable:"false"`
	Topics   []EffectiveTopic `json:"topics" nullable:"false"`
	Upkeep   []Upkeep         `json:"upkeep" nullable:"false" doc:"rounds whose time operators have set"`
	Pauses   []Pause          `json:"pauses" nullable:"false"`
	Versions []Version        `json:"versions" nullable:"false" doc:"of the code that declares, also of what no longer runs"`
}

func (a *api) getSettings(ctx context.Context, _ *struct{}) (*body[Settings], error) {
	s, err := a.e.Settings(ctx)
	if err != nil {
		return nil, err
	}
	return answer(Settings{
		Revision: s.Revision, Queues: wireOf(s.Queues, effectiveQueueOf), Limits: wireOf(s.Limits, limitOf),
		Topics: wireOf(s.Topics, effectiveTopicOf), Upkeep: wireOf(s.Upkeep, upkeepOf),
		Pauses: wireOf(s.Pauses, pauseOf),
		Versions: wireOf(s.Versions, func(v *pawl.VersionInfo) Version {
			return Version{v.Owner, v.Version, v.Seen, v.Live}
		}),
	}), nil
}

// none is how a time that settings have not is written.
const none = "none"

// settingTime is a time of settings as text; empty where it is not set.
func settingTime(d time.Duration) string {
	switch d {
	case 0:
		return ""
	case job.KeepNone:
		return none
	}
	return d.String()
}

// readSettingTime reads one. Zero would mean that it is not set, so it is refused.
func readSettingTime(field, text string) (time.Duration, error) {
	switch text {
	case "":
		return 0, nil
	case none:
		return job.KeepNone, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, job.Invalid(field, text, "must be none, or a time such as 30s or 1h30m")
	}
	return d, nil
}

// noNull refuses fields that are null, but for one: in a patch they read as if they took
// something back.
func noNull(text []byte, but string) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if string(fields[name]) == "null" && name != but {
			return job.Invalid(name, "null", "must be a value; DELETE takes back what was set")
		}
	}
	return nil
}

// readSetting reads a number of settings. Zero would mean that it is not set, so it is
// refused.
func readSetting[N int | float64](field string, n *N, bound string) (N, error) {
	switch {
	case n == nil:
		return 0, nil
	case *n == 0:
		return 0, job.Invalid(field, *n, bound+"; DELETE takes back what was set")
	}
	return *n, nil
}
