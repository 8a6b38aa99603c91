package jobs

import (
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// Plans are the statements of transitions, with the indexes that must serve them.
var Plans = []pg.Plan{
	{Name: "lookArchived", Text: LookArchived, Indexes: []string{"job_archive_pkey", "tombstone_pkey"}},
	{Name: "lookLive", Text: lookLive, Indexes: []string{"job_pkey"}},
	{Name: "takeUnique", Text: takeUnique},
	{Name: "probeIDs", Text: probeIDs},
	{Name: "replaceUnique", Text: replaceUnique, Indexes: []string{"job_unique_pkey"}},
	{Name: "uniqueHolders", Text: uniqueHolders, Indexes: []string{"job_unique_pkey"}},
	{Name: "dropUnique", Text: dropUnique, Indexes: []string{"job_unique_pkey"}},
	{Name: "endPlainKept", Text: endPlain.kept, Indexes: []string{"job_pkey"}},
	{Name: "endPlainBuried", Text: endPlain.buried, Indexes: []string{"job_pkey"}},
	{Name: "endLightKept", Text: endLight.kept, Indexes: []string{"job_pkey", "job_unique_pkey"}},
	{Name: "endLightBuried", Text: endLight.buried, Indexes: []string{"job_pkey", "job_unique_pkey", "job_log_pkey"}},
	{Name: "tieLogs", Text: tieLogs, Indexes: []string{"job_pkey"}},
	{Name: "endKept", Text: endKept, Indexes: []string{"job_pkey", "job_unique_pkey"}},
	{Name: "endBuried", Text: endBuried, Indexes: []string{"job_pkey", "job_unique_pkey", "job_log_pkey"}},
	{Name: "heldRuns", Text: heldRuns, Indexes: []string{"job_pkey"}},
	{Name: "freeRuns", Text: freeRuns, Indexes: []string{"job_pkey"}},
	{Name: "ownedRuns", Text: ownedRuns, Indexes: []string{"job_pkey"}},
	{Name: "dropCopies", Text: dropCopies, Indexes: []string{"job_archive_pkey"}},
	{Name: "releaseJobs", Text: releaseJobs, Indexes: []string{"job_pkey"}},
	{Name: "endedAs", Text: endedAs, Indexes: []string{"job_archive_pkey", "tombstone_pkey", "job_pkey"}},
	{Name: "ownRuns", Text: ownRuns, Indexes: []string{"worker_pkey", "job_pkey"}},
	{Name: "setProgress", Text: setProgress, Indexes: []string{"job_pkey"}},
	{Name: "lockLive", Text: lockLive, Indexes: []string{"job_pkey"}},
	{Name: "lockArchived", Text: lockArchived, Indexes: []string{"job_archive_pkey"}},
	{Name: "existing", Text: existing, Indexes: []string{"job_pkey", "job_archive_pkey"}},
	{Name: "askJobs", Text: askJobs, Indexes: []string{"job_pkey"}},
	{Name: "removeJobs", Text: removeJobs, Indexes: []string{"job_pkey", "job_archive_pkey", "job_unique_pkey", "job_log_pkey"}},
	{Name: "dueNow", Text: dueNow, Indexes: []string{"job_pkey"}},
	{Name: "freeJobs", Text: freeJobs, Indexes: []string{"job_pkey"}},
	{Name: "reviveJobs", Text: reviveJobs, Indexes: []string{"job_archive_pkey"}},
	{Name: "lostRuns", Text: lostRuns, Indexes: []string{"job_pkey"}},
	{Name: "lockOrphans", Text: lockOrphans, Indexes: []string{"worker_undrained", "worker_pkey", "job_held"}},
	{Name: "lockMoreOrphans", Text: LockMoreOrphans, Indexes: []string{"worker_undrained", "worker_pkey", "job_held"}},
	{Name: "haveSuspects", Text: haveSuspects, Indexes: []string{"worker_undrained", "worker_pkey", "job_held"}},
	{Name: "markDrained", Text: markDrained, Indexes: []string{"worker_undrained", "job_held"}},
	{Name: "redateJobs", Text: redateJobs, Indexes: []string{"job_ready"}},
	{Name: "redateGated", Text: redateGated, Indexes: []string{"job_gated"}},
	{Name: "idleWorkers", Text: idleWorkers, Indexes: []string{"worker_pkey", "job_held"}},
	{Name: "lockLate", Text: lockLate, Indexes: []string{"job_deadline"}},
	{Name: "purgeArchive", Text: purgeArchive, Indexes: []string{"job_archive_expires", "job_log_pkey"}},
	{Name: "jobLines", Text: jobLines, Indexes: []string{"job_log_pkey", "job_pkey", "job_archive_pkey"}},
	{Name: "purgeLogs", Text: purgeLogs, Indexes: []string{"job_log_pkey", "job_pkey", "job_archive_pkey"}},
	{Name: "purgeWorkers", Text: leaveWorkers, Indexes: []string{"worker_lost", "job_held"}},
	{Name: "forgetWorkers", Text: forgetWorkers, Indexes: []string{"worker_lost", "job_held"}},
	{
		Name: "check of job", Text: checkTexts[0],
		Indexes: []string{"job_pkey", "job_archive_pkey", "worker_pkey", "job_unique_pkey", "job_log_pkey"},
	},
	{Name: "check of job_archive", Text: checkTexts[1], Indexes: []string{"job_archive_pkey"}},
	{Name: "check of job_unique", Text: checkTexts[2], Indexes: []string{"job_unique_pkey", "job_pkey"}},
	{Name: "check of job_log", Text: checkTexts[3], Indexes: []string{"job_log_pkey", "job_pkey", "job_archive_pkey", "tombstone_pkey"}},
	{Name: "waitingOf", Text: waitingOf, Indexes: []string{"job_pkey"}},
	{Name: "placeLive", Text: placeLive, Indexes: []string{"job_pkey"}},
	{Name: "placeArchived", Text: placeArchived, Indexes: []string{"job_archive_pkey"}},
	{Name: "makeFirst", Text: makeFirst, Indexes: []string{"job_pkey", "job_ready", "job_gated"}},
	{Name: "foreseeLive", Text: foreseeLive, Indexes: []string{"job_pkey"}},
	{Name: "foreseeArchived", Text: foreseeArchived, Indexes: []string{"job_archive_pkey", "job_unique_pkey"}},
}

// TablePlans are those of the statements that are made from the list of tables.
func TablePlans(tables []table.Table, asks []Ask) []pg.Plan {
	expiring := table.Expiring(tables)
	due := []string{"job_deadline", "job_archive_expires", "worker_lost", "job_held", "job_log_pkey"}
	var plans []pg.Plan
	for _, t := range expiring {
		due = append(due, t.Expiry.Index)
		plans = append(plans, pg.Plan{Name: "purge " + t.Name, Text: pg.PurgeText(&t), Indexes: []string{t.Expiry.Index}})
	}
	for _, t := range table.Rolling(tables) {
		due = append(due, t.Roll.Index)
	}
	for _, t := range table.InNamespace(tables) {
		key := t.Name + "_pkey"
		if t.Except != "" {
			key = t.Expiry.Index
		}
		plans = append(plans, pg.Plan{Name: "strays of " + t.Name, Text: strays(&t), Indexes: []string{key, "namespace_pkey"}})
	}
	for _, a := range asks {
		due = append(due, a.Indexes...)
	}
	return append(plans,
		pg.Plan{Name: "lookDue", Text: lookDue(expiring, asks), Indexes: due},
		pg.Plan{Name: "lookDueAll", Text: lookDueAll(expiring, asks), Indexes: due})
}
