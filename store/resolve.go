package store

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/stream"
)

// Effective is what holds: of everything that is declared and set, what each name
// comes to.
type Effective struct {
	Revision int64
	Settings []EffectiveSetting // by kind and name
	Pauses   []Pause
}

// EffectiveSetting is what one name comes to, and why.
type EffectiveSetting struct {
	Setting
	// Value is what is declared with the fields over it that operators have set: a
	// JSON object.
	Value json.RawMessage
	// Declared is what code declares, with whose it is; empty when nobody does.
	Declared       json.RawMessage
	Owner, Version string
	// Pattern is the name under which that is declared, where it is not the
	// queue's or topic's own; only Effective.Queue and Topic fill it.
	Pattern string
	// Overridden names the fields that operators have set; Override says who, when
	// and why, and is nil without.
	Overridden []string
	Override   *Override
	// Conflicts are other owners that declare the name differently. They came later,
	// and count for nothing while the first holds it.
	Conflicts []Conflict
}

// Conflict is an owner that declares a name which another one holds.
type Conflict struct {
	Owner, Version string
	Value          json.RawMessage
	Since          time.Time
}

// Resolve says what holds, from what is declared and set. It is the one rule:
//
//  1. Of one owner's versions that declare a name and have a live worker, the one
//     that was seen last counts: so a deploy takes over with its first worker, and
//     a rollback too, because a version that comes back is seen anew.
//  2. Of several owners, the one that has held the name longest.
//  3. Over that, field by field, what operators have set.
func Resolve(r SettingsReply) Effective {
	e := Effective{Revision: r.Revision, Pauses: r.Pauses}
	named := map[Setting]map[string]claimant{}
	for i := range r.Declared {
		d := &r.Declared[i]
		if named[d.Setting] == nil {
			named[d.Setting] = map[string]claimant{}
		}
		c, known := named[d.Setting][d.Owner]
		if !known || d.Since.Before(c.since) {
			c.since = d.Since
		}
		if !known || cmp.Or(d.Seen.Compare(c.Seen), cmp.Compare(d.Version, c.Version)) > 0 {
			c.Declared = d
		}
		named[d.Setting][d.Owner] = c
	}
	overrides := map[Setting]*Override{}
	for i := range r.Overrides {
		o := &r.Overrides[i]
		overrides[o.Setting] = o
		if named[o.Setting] == nil {
			named[o.Setting] = nil
		}
	}
	for s, owners := range named {
		e.Settings = append(e.Settings, settle(s, owners, overrides[s]))
	}
	slices.SortFunc(e.Settings, func(a, b EffectiveSetting) int { return a.Setting.compare(b.Setting) })
	return e
}

// claimant is an owner that declares a name, with what counts of its versions.
type claimant struct {
	*Declared
	since time.Time
}

// settle says what one name comes to.
func settle(s Setting, owners map[string]claimant, o *Override) EffectiveSetting {
	e := EffectiveSetting{Setting: s, Override: o}
	var list []claimant
	for _, c := range owners {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b claimant) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.Owner, b.Owner)) })
	for i, c := range list {
		switch {
		case i == 0:
			e.Declared, e.Owner, e.Version = c.Value, c.Owner, c.Version
		case !same(c.Value, e.Declared):
			e.Conflicts = append(e.Conflicts, Conflict{c.Owner, c.Version, c.Value, c.since})
		}
	}
	e.Value = e.Declared
	e.lay(o)
	return e
}

// lay puts what operators have set over the value.
func (e *EffectiveSetting) lay(o *Override) {
	if o == nil {
		return
	}
	over, err := ParseObject(o.Value)
	if err != nil {
		return // what cannot be read sets nothing (P8)
	}
	e.Overridden = append(e.Overridden, over.Names()...)
	slices.Sort(e.Overridden)
	e.Overridden = slices.Compact(e.Overridden)
	under, err := ParseObject(e.Value)
	if err != nil {
		under = nil
	}
	if merged, err := over.Over(under).Text(); err == nil {
		e.Value = merged
	}
}

// compare puts settings in the order of their kind and name.
func (s Setting) compare(t Setting) int {
	return cmp.Or(cmp.Compare(s.Kind, t.Kind), cmp.Compare(s.Name, t.Name))
}

// Of is what one name comes to; false when nobody declares it or has set anything.
func (e *Effective) Of(s Setting) (EffectiveSetting, bool) {
	i, found := slices.BinarySearchFunc(e.Settings, s, func(x EffectiveSetting, s Setting) int { return x.Setting.compare(s) })
	if !found {
		return EffectiveSetting{Setting: s}, false
	}
	return e.Settings[i], true
}

// Queue is what one queue comes to, with what patterns say for it; false when nobody
// says anything. Settings lists patterns as they are; what they come to for a queue
// is this rule:
//
//  1. Declared is the queue's own declaration, else that of the longest pattern that
//     names it; of two that are as long, the first by name.
//  2. Over that, field by field, lies what operators have set: for the patterns that
//     name it, the longer over the shorter, then for the queue itself. It lies over
//     the queue's own declaration, too: what operators set stays whatever is
//     deployed, also when code begins to name a queue that a pattern had served.
func (e *Effective) Queue(name string) (EffectiveSetting, bool) {
	own, found := e.Of(Setting{SettingQueue, name})
	if job.IsPattern(name) {
		return own, found // a pattern is no queue that another one names
	}
	return layPatterns(own, found, e.patternsOf(name))
}

// Topic is what one topic comes to, with what patterns say for it, by the same rule as a
// queue; of two patterns the more specific counts (stream.TopicPattern.CompareSpecific).
func (e *Effective) Topic(name string) (EffectiveSetting, bool) {
	own, found := e.Of(Setting{SettingTopic, name})
	if stream.CheckTopic("topic", name) != nil {
		return own, found // a pattern
	}
	return layPatterns(own, found, e.topicPatternsOf(name))
}

// layPatterns is what a name comes to by itself and by patterns, the first of which counts
// most.
func layPatterns(own EffectiveSetting, found bool, patterns []*EffectiveSetting) (EffectiveSetting, bool) {
	if len(patterns) == 0 {
		return own, found
	}
	holds, from := EffectiveSetting{Setting: own.Setting}, &own
	if own.Owner == "" {
		if i := slices.IndexFunc(patterns, func(p *EffectiveSetting) bool { return p.Owner != "" }); i >= 0 {
			from, holds.Pattern = patterns[i], patterns[i].Name
		}
	}
	holds.Declared, holds.Owner, holds.Version, holds.Conflicts = from.Declared, from.Owner, from.Version, from.Conflicts
	holds.Value = holds.Declared
	for _, p := range slices.Backward(append([]*EffectiveSetting{&own}, patterns...)) {
		if p.Override != nil {
			holds.lay(p.Override)
			holds.Override = p.Override
		}
	}
	return holds, true
}

// topicPatternsOf are the patterns that name a topic, the most specific first.
func (e *Effective) topicPatternsOf(name string) (list []*EffectiveSetting) {
	parsed := map[*EffectiveSetting]stream.TopicPattern{}
	for i := range e.Settings {
		s := &e.Settings[i]
		if s.Kind != SettingTopic || s.Name == name {
			continue
		}
		if p, err := stream.ParsePattern("topic", s.Name); err == nil && p.Match(name) {
			parsed[s] = p
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *EffectiveSetting) int { return parsed[a].CompareSpecific(parsed[b]) })
	return list
}

// patternsOf are the patterns that name a queue, the longest first.
func (e *Effective) patternsOf(name string) (list []*EffectiveSetting) {
	for i := range e.Settings {
		s := &e.Settings[i]
		if s.Kind == SettingQueue && s.Name != name && job.IsPattern(s.Name) && job.Matches(s.Name, name) {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b *EffectiveSetting) int { return len(b.Name) - len(a.Name) }) // they are in order of name
	return list
}

// PauseOf is what stops claims of a kind from a queue: the pause of everything, of
// the queue, else of the kind; nil when nothing does.
func (e *Effective) PauseOf(queue, kind string) *Pause { return PauseOf(e.Pauses, queue, kind) }

// PauseOf is the first of the pauses that stops claims of a kind from a queue.
func PauseOf(pauses []Pause, queue, kind string) *Pause {
	for _, p := range []Pause{{Scope: PauseAll}, {Scope: PauseQueue, Name: queue}, {Scope: PauseKind, Name: kind}} {
		for i := range pauses {
			if pauses[i].Scope == p.Scope && pauses[i].Name == p.Name {
				return &pauses[i]
			}
		}
	}
	return nil
}
