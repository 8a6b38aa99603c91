package workers

import "github.com/pawlwork/pawl/store/postgres/internal/pg"

// Plans are the statements of transitions, with the indexes that must serve them.
var Plans = []pg.Plan{
	{Name: "servingWorkers", Text: servingWorkers, Indexes: []string{"worker_live", "worker_beat_pkey"}},
	{Name: "servedQueues", Text: ServedQueues, Indexes: []string{"worker_live", "worker_beat_pkey", "worker_live", "worker_beat_pkey"}},
	{Name: "readWorkers", Text: readWorkers, Indexes: []string{"worker_live", "worker_lost", "worker_pkey", "worker_beat_pkey", "job_held"}},
	{Name: "takeAlone", Text: takeAlone, Indexes: []string{"alone_pkey", "job_pkey", "job_pkey"}},
	{Name: "markBegun", Text: markBegun, Indexes: []string{"worker_pkey", "job_pkey"}},
	{Name: "beatWorker", Text: beatWorker, Indexes: []string{"worker_beat_pkey", "worker_pkey", "worker_live", "namespace_pkey", "job_cancel"}},
	{Name: "setServes", Text: setServes, Indexes: []string{"worker_pkey", "namespace_pkey"}},
	{Name: "beatSplitting", Text: beatSplitting, Indexes: []string{
		"worker_pkey", "worker_beat_pkey", "worker_live", "worker_undrained", "job_cancel", "job_held",
	}},
	{Name: "beatWorkers", Text: beatWorkers, Indexes: []string{"worker_pkey", "worker_beat_pkey", "worker_live", "namespace_pkey", "job_cancel"}},
	{Name: "lookLate", Text: lookLate, Indexes: []string{
		"worker_pkey", "worker_live", "worker_beat_pkey", "worker_machine", "worker_undrained", "job_held",
	}},
	{Name: "newWorker", Text: newWorker, Indexes: []string{"worker_pkey"}},
	{Name: "removeWorker", Text: removeWorker, Indexes: []string{"worker_pkey", "worker_beat_pkey", "job_held"}},
	{Name: "loseWorkers", Text: loseWorkers, Indexes: []string{
		"worker_pkey", "worker_live", "worker_beat_pkey", "worker_machine", "worker_undrained", "job_held", "code_version_live", "worker_version",
	}},
	{Name: "deadWorkers", Text: deadWorkers, Indexes: []string{"worker_pkey", "worker_beat_pkey"}},
}
