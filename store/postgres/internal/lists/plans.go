package lists

import "github.com/pawlwork/pawl/store/postgres/internal/pg"

// Plans are the statements whose plans do not depend on a filter, with the indexes
// that must serve them.
var Plans = []pg.Plan{
	{Name: "runsOfQueues", Text: runsOfQueues, Indexes: []string{"job_pkey", "job_held"}},
	{Name: "whoRuns", Text: whoRuns, Indexes: []string{"job_pkey", "worker_pkey"}},
	{Name: "waitingIn", Text: waitingIn, Indexes: []string{"job_ready"}},
	{Name: "aheadOf", Text: aheadOf, Indexes: []string{"job_pkey", "job_ready"}},
	{Name: "usesOfGates", Text: usesOfGates, Indexes: []string{"job_pkey", "gate_pkey", "job_gate_held"}},
}
