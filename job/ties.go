package job

import "strings"

// Ties say what a job has beside its own row. A job without any is plain: it ends by
// one statement, which looks at nothing else. The bits are stored: never renumber.
type Ties uint32

// What a job can have.
const (
	TieUnique Ties = 1 << iota // a unique key, in a table of its own
	TieLogs                    // lines in the log, at least some
	TieSteps                   // results of steps
	TieNode                    // it is the node of a flow
	TieKey                     // a key by which jobs are ordered or bounded
	TieSignal                  // signals that it waits for, or that wait for it
	TieOutput                  // output of its attempts
	TieEvents                  // its moves are published
)

// tieNames are in the order of the bits.
var tieNames = []string{"unique", "logs", "steps", "node", "key", "signal", "output", "events"}

// Has reports whether all of these are there.
func (t Ties) Has(ties Ties) bool { return t&ties == ties }

// Only reports whether there is nothing but these.
func (t Ties) Only(ties Ties) bool { return t&^ties == 0 }

func (t Ties) String() string {
	var list []string
	for i, name := range tieNames {
		if t.Has(1 << i) {
			list = append(list, name)
		}
	}
	if !t.Only(1<<len(tieNames) - 1) {
		list = append(list, "others")
	}
	if list == nil {
		return "none"
	}
	return strings.Join(list, "+")
}

// Ties are those that a draft brings along.
func (d *Draft) Ties() Ties {
	var t Ties
	if d.Unique.Hash != nil {
		t |= TieUnique
	}
	return t
}
