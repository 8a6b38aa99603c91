package claims

import "github.com/pawlwork/pawl/store/postgres/internal/pg"

// Plans are the statements of transitions, with the indexes that must serve them.
var Plans = []pg.Plan{
	{Name: "claimStraight", Text: ClaimStraight, Indexes: []string{
		"worker_pkey", "pause_pkey", "pause_pkey", "cool_down_pkey", "namespace_pkey", "job_ready",
	}},
	{Name: "lookReady", Text: lookReady, Indexes: []string{"pause_pkey", "cool_down_pkey", "job_ready"}},
	{Name: "readPast", Text: readPast, Indexes: []string{"job_ready"}},
	{Name: "skim", Text: skim, Indexes: []string{"job_ready"}},
	{Name: "leaseChosen", Text: leaseChosen, Indexes: []string{"worker_pkey", "job_pkey"}},
	{Name: "moveToGates", Text: moveToGates, Indexes: []string{"job_pkey"}},
	{Name: "scanGates", Text: scanGates, Indexes: []string{"job_gated"}},
	{Name: "runningAtGates", Text: runningAtGates, Indexes: []string{"job_gate_held"}},
	{Name: "waitingAtGates", Text: waitingAtGates, Indexes: []string{"job_gated"}},
	{Name: "stateOfGates", Text: stateOfGates, Indexes: []string{"gate_pkey", "job_pkey"}},
	{Name: "setGates", Text: setGates, Indexes: []string{"worker_pkey"}},
	{Name: "dropGates", Text: dropGates, Indexes: []string{"gate_pkey"}},
	{Name: "runningByKind", Text: runningByKind, Indexes: []string{"job_gate_held"}},
	{Name: "scanAllGates", Text: scanAllGates, Indexes: []string{"job_gated"}},
	{Name: "behindOne", Text: behindOne, Indexes: []string{"job_gated"}},
	{Name: "forgetGates", Text: forgetGates, Indexes: []string{"gate_pkey", "job_pkey"}},
	{Name: "peekStretches", Text: peekStretches, Indexes: []string{
		"worker_pkey", "pause_pkey", "pause_pkey", "cool_down_pkey", "namespace_pkey", "job_ready",
	}},
	{Name: "peekAll", Text: peekAll, Indexes: []string{"worker_pkey", "pause_pkey", "cool_down_pkey", "namespace_pkey", "job_ready"}},
	{Name: "anyWaiting", Text: anyWaiting, Indexes: []string{"job_ready", "job_gated"}},
	{Name: "awaitClaims", Text: awaitClaims, Indexes: []string{"worker_pkey"}},
	{Name: "claimHeld", Text: claimHeld, Indexes: []string{"job_held"}},
	{Name: "unservedQueues", Text: unservedQueues, Indexes: []string{"job_ready", "job_gated"}},
	{Name: "readyHeads", Text: readyHeads, Indexes: []string{"job_ready", "job_gated", "pause_pkey", "cool_down_pkey"}},
}
