package claims

import "github.com/pawlwork/pawl/store/postgres/internal/pg"

// Plans are the statements of transitions, with the indexes that must serve them.
var Plans = []pg.Plan{
	{Name: "claimStraight", Text: claimStraight.plain, Indexes: []string{"worker_pkey", "pause_pkey", "pause_pkey", "namespace_pkey", "job_ready"}},
	{Name: "claimGate", Text: claimStraight.gated, Indexes: []string{"worker_pkey", "pause_pkey", "pause_pkey", "namespace_pkey", "job_gated"}},
	{Name: "lookReady", Text: lookReady.plain, Indexes: []string{"pause_pkey", "job_ready"}},
	{Name: "lookBehindGate", Text: lookReady.gated, Indexes: []string{"pause_pkey", "job_gated"}},
	{Name: "leaseChosen", Text: leaseChosen.plain, Indexes: []string{"worker_pkey", "job_pkey"}},
	{Name: "leaseBehindGate", Text: leaseChosen.gated, Indexes: []string{"worker_pkey", "job_pkey"}},
	{Name: "moveToGates", Text: moveToGates, Indexes: []string{"job_pkey"}},
	{Name: "peekStretches", Text: peekStretches.plain, Indexes: []string{"worker_pkey", "pause_pkey", "pause_pkey", "namespace_pkey", "job_ready"}},
	{Name: "peekGates", Text: peekStretches.gated, Indexes: []string{"worker_pkey", "pause_pkey", "pause_pkey", "namespace_pkey", "job_gated"}},
	{Name: "peekAll", Text: peekAll, Indexes: []string{"worker_pkey", "pause_pkey", "namespace_pkey", "job_ready"}},
	{Name: "anyWaiting", Text: anyWaiting, Indexes: []string{"job_ready", "job_gated"}},
	{Name: "awaitClaims", Text: awaitClaims, Indexes: []string{"worker_pkey"}},
	{Name: "claimHeld", Text: claimHeld, Indexes: []string{"job_held"}},
	{Name: "servedQueues", Text: servedQueues, Indexes: []string{"worker_pkey"}},
	{Name: "unservedQueues", Text: unservedQueues, Indexes: []string{"job_ready", "job_gated"}},
	{Name: "readyHeads", Text: readyHeads, Indexes: []string{"job_ready", "job_gated", "pause_pkey"}},
}
