package storetest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// controlModel is what is declared and set, told as a story: processes were born and
// died, operators said things. What holds is worked out from the whole story each
// time, and shares nothing with store.Resolve or with any table.
type controlModel struct {
	births []*birth
	said   []saying     // by operators
	events int          // so far; numbers births, deaths and sayings
	lives  map[life]int // what lifeOf has found: what has happened does not change
}

// birth is one process.
type birth struct {
	owner, version string
	declares       map[thing]fields
	born, died     int // numbers of events; died is 0 while it lives
}

// thing is what has settings: a kind and a name.
type thing struct{ kind, name string }

// fields are those of a value.
type fields map[string]int

// saying is what an operator said about a thing, or about a pause.
type saying struct {
	at    int
	about thing
	sets  fields   // fields that are set
	takes []string // fields that are taken back
	reset bool     // all of it is taken back
	// pause and paused: it is about a pause instead, of a scope and name.
	pause  string
	paused bool
}

func (m *controlModel) next() int { m.events++; return m.events }

// alive tells whether a process lived after an event.
func (b *birth) alive(at int) bool { return b.born <= at && (b.died == 0 || b.died > at) }

// lifeOf is the event with which the present life of a version began: the birth of the
// first of its processes after a time in which it had none. It is 0 when it does not
// live after the event.
func (m *controlModel) lifeOf(owner, version string, at int) int {
	if at == 0 {
		return 0
	}
	key := life{owner, version, at}
	if began, known := m.lives[key]; known {
		return began
	}
	began := 0
	if slices.ContainsFunc(m.births, func(b *birth) bool { return b.owner == owner && b.version == version && b.alive(at) }) {
		began = cmp.Or(m.lifeOf(owner, version, at-1), at)
	}
	if m.lives == nil {
		m.lives = map[life]int{}
	}
	m.lives[key] = began
	return began
}

// life is a version after an event.
type life struct {
	owner, version string
	at             int
}

// declaredBy is what a version says about a thing after an event: the last word that
// one of its processes said in this life, also if that process is gone.
func (m *controlModel) declaredBy(owner, version string, about thing, at int) (fields, bool) {
	life := m.lifeOf(owner, version, at)
	if life == 0 {
		return nil, false
	}
	var value fields
	found := false
	for _, b := range m.births { // in the order of their birth
		if b.owner != owner || b.version != version || b.born < life || b.born > at {
			continue
		}
		if v, ok := b.declares[about]; ok {
			value, found = v, true
		}
	}
	return value, found
}

// versions are those of an owner that ever lived.
func (m *controlModel) versions(owner string) []string {
	set := map[string]bool{}
	for _, b := range m.births {
		if b.owner == owner {
			set[b.version] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func (m *controlModel) owners() []string {
	set := map[string]bool{}
	for _, b := range m.births {
		set[b.owner] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// heldSince is the event since which an owner has held a thing without a gap, through
// any of its versions; 0 when it does not.
func (m *controlModel) heldSince(owner string, about thing, at int) int {
	since := 0
	for e := 1; e <= at; e++ {
		held := slices.ContainsFunc(m.versions(owner), func(v string) bool { _, ok := m.declaredBy(owner, v, about, e); return ok })
		switch {
		case !held:
			since = 0
		case since == 0:
			since = e
		}
	}
	return since
}

// holds is what a thing comes to.
type holds struct {
	Value          fields
	Declared       fields // of it, by code
	Owner, Version string
	Overridden     []string
	Conflicts      []string // owners that say something else
}

// effective is what every thing comes to now.
func (m *controlModel) effective() map[thing]holds {
	all := map[thing]bool{}
	for _, b := range m.births {
		for about := range b.declares {
			all[about] = true
		}
	}
	for _, s := range m.said {
		if s.pause == "" {
			all[s.about] = true
		}
	}
	got := map[thing]holds{}
	for about := range all {
		type owned struct {
			owner, version string
			since          int
			value          fields
		}
		var list []owned
		for _, owner := range m.owners() {
			o := owned{owner: owner, since: m.heldSince(owner, about, m.events)}
			if o.since == 0 {
				continue
			}
			newest := 0
			for _, v := range m.versions(owner) {
				value, ok := m.declaredBy(owner, v, about, m.events)
				if life := m.lifeOf(owner, v, m.events); ok && life > newest {
					newest, o.version, o.value = life, v, value
				}
			}
			list = append(list, o)
		}
		slices.SortFunc(list, func(a, b owned) int { return cmp.Compare(a.since, b.since) })
		h := holds{Value: fields{}}
		for i, o := range list {
			if i == 0 {
				h.Owner, h.Version = o.owner, o.version
				maps.Copy(h.Value, o.value)
				h.Declared = o.value
			} else if !maps.Equal(o.value, list[0].value) {
				h.Conflicts = append(h.Conflicts, o.owner)
			}
		}
		set := m.setFor(about)
		maps.Copy(h.Value, set)
		h.Overridden = slices.Sorted(maps.Keys(set))
		if len(list) > 0 || len(set) > 0 {
			got[about] = h
		}
	}
	return got
}

// ofQueue is what a queue comes to with the patterns that name it, from what every
// thing comes to. ok is false when nobody says anything.
func (m *controlModel) ofQueue(name string, all map[thing]holds) (h holds, ok bool) {
	var named []string // who says something for it, the weakest first
	for about := range all {
		if about.kind == "queue" && (about.name == name || names(about.name, name)) {
			named = append(named, about.name)
		}
	}
	slices.SortFunc(named, func(a, b string) int {
		switch {
		case a == name:
			return 1
		case b == name:
			return -1
		}
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(b, a))
	})
	h = holds{Value: fields{}}
	for _, n := range named { // the strongest that is declared stays
		if x := all[thing{"queue", n}]; x.Owner != "" {
			h.Declared, h.Owner, h.Version, h.Conflicts = x.Declared, x.Owner, x.Version, x.Conflicts
		}
	}
	maps.Copy(h.Value, h.Declared)
	set := fields{}
	for _, n := range named {
		maps.Copy(set, m.setFor(thing{"queue", n}))
	}
	maps.Copy(h.Value, set)
	h.Overridden = slices.Sorted(maps.Keys(set))
	return h, len(named) > 0
}

// names tells whether a pattern names a queue: any that begins as it does, or any that
// differs from it in its last letter.
func names(pattern, queue string) bool {
	if begin, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(queue, begin)
	}
	begin, ok := strings.CutSuffix(pattern, "?")
	return ok && len(queue) == len(pattern) && strings.HasPrefix(queue, begin)
}

// setFor is what operators have set for a thing, by all that they said.
func (m *controlModel) setFor(about thing) fields {
	set := fields{}
	for _, s := range m.said {
		if s.pause != "" || s.about != about {
			continue
		}
		if s.reset {
			clear(set)
		}
		maps.Copy(set, s.sets)
		for _, f := range s.takes {
			delete(set, f)
		}
	}
	return set
}

// pauses are those that are on, with the event since which they are.
func (m *controlModel) pauses() map[string]int {
	on := map[string]int{}
	for _, s := range m.said {
		if s.pause == "" {
			continue
		}
		if !s.paused {
			delete(on, s.pause)
		} else if on[s.pause] == 0 {
			on[s.pause] = s.at
		}
	}
	return on
}

// told is all that a process could ever hear of: the revision changes exactly when
// this does.
type told struct {
	Lives    map[string]int // of live versions, since when
	Declared map[string]map[thing]fields
	Set      map[thing]fields
	Pauses   map[string]int
}

func (m *controlModel) told() told {
	t := told{Lives: map[string]int{}, Declared: map[string]map[thing]fields{}, Set: map[thing]fields{}, Pauses: m.pauses()}
	for _, owner := range m.owners() {
		for _, v := range m.versions(owner) {
			life := m.lifeOf(owner, v, m.events)
			if life == 0 {
				continue
			}
			name := owner + " " + v
			t.Lives[name], t.Declared[name] = life, map[thing]fields{}
			for _, b := range m.births {
				for about := range b.declares {
					if value, ok := m.declaredBy(owner, v, about, m.events); ok {
						t.Declared[name][about] = value
					}
				}
			}
		}
	}
	for _, s := range m.said {
		if s.pause == "" {
			if set := m.setFor(s.about); len(set) > 0 {
				t.Set[s.about] = set
			}
		}
	}
	return t
}
