package job

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// GateRules say which jobs wait behind a gate and what bounds those that run from
// there: the limits that hold, as one process knows them. Nil has none.
//
// A job has one gate at most, so one limit is its own: of those that cover it, first
// one by key, if it has a key; then one with a rate; then the one that says most of it
// (queue and kind, kind, queue); then the first by name. How many run is bounded by
// those that it does not wait behind, too (Also); their rates are not (Faults).
type GateRules struct {
	limits  []gateLimit // in that order
	overlap bool        // two of them may bound one job
	print   string      // tells rules apart
}

// gateLimit is one limit about jobs.
type gateLimit struct {
	name string
	LimitSettings
}

// NewGateRules keeps the limits that are about jobs and bound them; nil when none does.
func NewGateRules(limits map[string]LimitSettings) *GateRules {
	r := &GateRules{}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		l := limits[name]
		if l.OfJobs() && (l.MaxRunning() > 0 || l.Rate() != Rate{} || l.PerKey) {
			r.limits = append(r.limits, gateLimit{name, l})
		}
	}
	if r.limits == nil {
		return nil
	}
	says := func(l *gateLimit) (n int) {
		if l.PerKey {
			n += 8
		}
		if l.Rate() != (Rate{}) {
			n += 4
		}
		if l.Kind != "" {
			n += 2
		}
		if l.Queue != "" {
			n++
		}
		return n
	}
	slices.SortStableFunc(r.limits, func(a, b gateLimit) int { return cmp.Compare(says(&b), says(&a)) })
	if text, err := r.MarshalBinary(); err == nil {
		r.print = string(text)
	}
	for i := range r.limits {
		for j := range r.limits[:i] {
			r.overlap = r.overlap || r.limits[i].meets(&r.limits[j])
		}
	}
	return r
}

// meets reports whether one job may be bounded by both.
func (l *gateLimit) meets(o *gateLimit) bool {
	if l.Queue != "" && o.Queue != "" && l.Queue != o.Queue {
		return false
	}
	exact := func(kind string) bool { return kind != "" && !IsPattern(kind) }
	switch {
	case l.Kind == "" || o.Kind == "":
		return true
	case exact(l.Kind):
		return Matches(o.Kind, l.Kind)
	case exact(o.Kind):
		return Matches(l.Kind, o.Kind)
	}
	return true // of two patterns nobody can tell
}

// Faults names the rates that do not hold for some jobs, because these wait behind
// another limit.
func (r *GateRules) Faults() (list []string) {
	if r == nil {
		return nil
	}
	for j := range r.limits {
		for i := range r.limits[:j] {
			if l, first := &r.limits[j], &r.limits[i]; l.Rate() != (Rate{}) && l.meets(first) {
				list = append(list, fmt.Sprintf("the rate of limit %s does not hold for jobs that wait behind limit %s", l.name, first.name))
			}
		}
	}
	return list
}

// Print is the same for rules that say the same; empty for none.
func (r *GateRules) Print() string {
	if r == nil {
		return ""
	}
	return r.print
}

// Touches reports whether jobs of a queue may have a gate.
func (r *GateRules) Touches(queue string) bool {
	return r != nil && slices.ContainsFunc(r.limits, func(l gateLimit) bool { return l.Queue == "" || l.Queue == queue })
}

// Gate is the number of the gate behind which a job waits; zero is none. Two that
// collide share a bound.
func (r *GateRules) Gate(queue, kind, key string) int64 {
	if r == nil {
		return 0
	}
	for i := range r.limits {
		if r.limits[i].binds(queue, kind, key) {
			return r.limits[i].gate(key)
		}
	}
	return 0
}

// binds reports whether the limit bounds a job.
func (l *gateLimit) binds(queue, kind, key string) bool {
	return (key != "" || !l.PerKey) && l.Covers(queue, kind)
}

// gate is the number of the limit's gate, or of a key's. It is the same in every
// build: never change it.
func (l *gateLimit) gate(key string) int64 {
	if !l.PerKey {
		key = ""
	}
	sum := sha256.Sum256([]byte(l.name + "\x00" + key))
	n := int64(binary.BigEndian.Uint64(sum[:]))
	if n == 0 {
		n = 1
	}
	return n
}

// GateBound is what one gate, or one limit beside it, allows.
type GateBound struct {
	Limit      string // its name
	Gate       int64
	Key        string // of one by key
	Concurrent int    // of what runs; 0 for no bound
	Ordered    bool
	Weight     int
	Rate       Rate // zero for no bound
}

func (l *gateLimit) bound(key string) GateBound {
	b := GateBound{Limit: l.name, Gate: l.gate(key), Concurrent: l.MaxRunning(), Ordered: l.InOrder(), Weight: 1, Rate: l.Rate()}
	if l.PerKey {
		b.Key, b.Weight = key, l.Weight(key)
	}
	return b
}

// Bound is what the gate of such a job allows; false when it has none.
func (r *GateRules) Bound(queue, kind, key string) (GateBound, bool) {
	if r == nil {
		return GateBound{}, false
	}
	for i := range r.limits {
		if r.limits[i].binds(queue, kind, key) {
			return r.limits[i].bound(key), true
		}
	}
	return GateBound{}, false
}

// Also is what bounds such a job beside its own gate.
func (r *GateRules) Also(queue, kind, key string) (list []GateBound) {
	if r == nil {
		return nil
	}
	own := true
	for i := range r.limits {
		if !r.limits[i].binds(queue, kind, key) {
			continue
		}
		if !own {
			list = append(list, r.limits[i].bound(key))
		}
		own = false
	}
	return list
}

// Overlap reports whether a job may be bounded by two limits. Then what runs is counted
// by limit, not by gate.
func (r *GateRules) Overlap() bool { return r != nil && r.overlap }

// Counts reports whether a running job counts for a bound.
func (r *GateRules) Counts(b *GateBound, queue, kind, key string) bool {
	for i := range r.limits {
		l := &r.limits[i]
		if l.name == b.Limit {
			return l.binds(queue, kind, key) && l.gate(key) == b.Gate
		}
	}
	return false
}

// Keeps reports whether the gate has a row of its own: something is to be remembered
// between claims.
func (b *GateBound) Keeps() bool { return b.Ordered || b.Rate != Rate{} }

// MarshalBinary writes the limits, as JSON.
func (r *GateRules) MarshalBinary() ([]byte, error) {
	limits := map[string]LimitSettings{}
	for i := range r.limits {
		limits[r.limits[i].name] = r.limits[i].LimitSettings
	}
	return json.Marshal(limits)
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (r *GateRules) UnmarshalBinary(text []byte) error {
	var limits map[string]LimitSettings
	if err := json.Unmarshal(text, &limits); err != nil {
		return err
	}
	*r = GateRules{}
	if read := NewGateRules(limits); read != nil {
		*r = *read
	}
	return nil
}
