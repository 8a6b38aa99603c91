package job

import (
	"maps"
	"slices"
)

// Offer is what a worker can take: the kinds its build knows, each with the
// newest version of its arguments, and the capabilities of its machine.
type Offer struct {
	Kinds        map[string]int `json:"kinds"`
	Capabilities []string       `json:"capabilities,omitempty"`
}

// Takes is the predicate of a claim: whether a worker with this offer may run
// a job with these needs. [Explain] answers from the same predicate.
func (o Offer) Takes(kind string, version int, needs []string) bool {
	return o.Knows(kind, version) && (len(needs) == 0 || o.Has(needs))
}

// Knows reports whether the build can read the arguments.
func (o Offer) Knows(kind string, version int) bool {
	newest, ok := o.Kinds[kind]
	return ok && version <= newest
}

// Has reports whether the machine has every capability that is needed.
func (o Offer) Has(needs []string) bool {
	for _, n := range needs {
		if !slices.Contains(o.Capabilities, n) {
			return false
		}
	}
	return true
}

// KindNames lists the kinds in order.
func (o Offer) KindNames() []string { return slices.Sorted(maps.Keys(o.Kinds)) }
