package claims

import "github.com/pawlwork/pawl/store/postgres/internal/pg"

// Plans are the statements of transitions, with the indexes that must serve them.
var Plans = []pg.Plan{
	{Name: "claimStraight", Text: ClaimStraight, Indexes: []string{"worker_pkey", "queue_pkey", "job_ready"}},
	{Name: "lookReady", Text: lookReady, Indexes: []string{"queue_pkey", "job_ready"}},
	{Name: "leaseChosen", Text: leaseChosen, Indexes: []string{"worker_pkey", "job_pkey"}},
	{Name: "peekStretches", Text: peekStretches, Indexes: []string{"worker_pkey", "queue_pkey", "job_ready"}},
	{Name: "peekAll", Text: peekAll, Indexes: []string{"worker_pkey", "queue_pkey", "job_ready"}},
	{Name: "anyWaiting", Text: anyWaiting, Indexes: []string{"job_ready"}},
	{Name: "awaitClaims", Text: awaitClaims, Indexes: []string{"worker_pkey"}},
	{Name: "claimHeld", Text: claimHeld, Indexes: []string{"job_held"}},
	{Name: "servedQueues", Text: servedQueues, Indexes: []string{"worker_pkey"}},
	{Name: "unservedQueues", Text: unservedQueues, Indexes: []string{"job_ready"}},
	{Name: "readyHeads", Text: readyHeads, Indexes: []string{"job_ready", "queue_pkey"}},
}
