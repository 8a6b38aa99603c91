package store

import (
	"context"

	"github.com/pawlwork/pawl/job"
)

// Gatekeeper is a store whose jobs wait behind gates. Claims move what they meet in the
// wrong place; this is for queues of which no limit is any more, where claims do not
// look behind gates.
type Gatekeeper interface {
	// Regate moves up to limit waiting jobs to where the rules put them, and forgets
	// what is remembered of gates that need nothing remembered. It goes through all
	// gates in several calls, and is safe in every process at once.
	Regate(ctx context.Context, rules *job.GateRules, limit int) (RegateReply, error)
}

// RegateReply is what Regate did.
type RegateReply struct {
	Moved     int
	Forgotten int
	More      bool // it came to its bound
}

// RegateVisits is how many gates one call looks at.
const RegateVisits = 1000
