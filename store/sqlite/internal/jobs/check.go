package jobs

import "github.com/pawlwork/pawl/store/sqlite/internal/lite"

// Sweeps are the rules of the tables of jobs.
var Sweeps = []lite.TableCheck{
	{Table: "pawl_job", Key: "id", Rules: []lite.Rule{
		{Name: "live job in a final state", SQL: live("state NOT IN (1, 2, 3, 4)", "'state ' || state")},
		{Name: "job in two places", SQL: live("EXISTS (SELECT 1 FROM pawl_job_archive AS a WHERE a.namespace = j.namespace AND a.id = j.id)", "'live and archived'")},
		{Name: "running without a worker", SQL: live("state = 3 AND (worker IS NULL OR run < 1)", "'run ' || run")},
		{Name: "worker of a job that does not run", SQL: live("state <> 3 AND (worker IS NOT NULL OR claim IS NOT NULL OR begun <> 0 OR cancel <> 0)", "'worker ' || coalesce(worker, 0)")},
		// Never registered counts from the claim, lost or gone from when it was.
		{Name: "running without a live worker", SQL: live(`state = 3 AND worker IS NOT NULL AND coalesce(
			(SELECT coalesce(w.lost, ?4) FROM pawl_worker AS w WHERE w.namespace = j.namespace AND w.id = j.worker), started, 0) + ?5 < ?4`, "'worker ' || worker")},
		{Name: "unique key not held", SQL: live(`unique_hash IS NOT NULL AND NOT EXISTS (
			SELECT 1 FROM pawl_job_unique AS u WHERE u.namespace = j.namespace AND u.hash = j.unique_hash AND u.job = j.id AND u.until IS NULL)`, "''")},
		{Name: "attempts out of bounds", SQL: live("used < 0 OR max_attempts < 1", "used || ' of ' || max_attempts")},
		{Name: "priority out of bounds", SQL: live("priority NOT BETWEEN 1 AND 9", "priority")},
		{Name: "log lines do not add up", SQL: live(logsRecount, "logs || ' counted'")},
		{Name: "wait of a job that is not suspended", SQL: live("wait IS NOT NULL AND state <> 4", "'state ' || state || ', wait ' || wait")},
		{Name: "failures cannot be read", SQL: live(failuresBroken, "length(failures) || ' bytes'")},
		{Name: "names cannot be read", SQL: live("NOT json_valid(coalesce(tags, '[]')) OR NOT json_valid(coalesce(capabilities, '[]'))", "''")},
	}},
	{Table: "pawl_job_archive", Key: "id", Rules: []lite.Rule{
		{Name: "archived job in a live state", SQL: archived("state NOT IN (5, 6, 7, 8)", "'state ' || state")},
		{Name: "failures cannot be read", SQL: archived(failuresBroken, "length(failures) || ' bytes'")},
		{Name: "names cannot be read", SQL: archived("NOT json_valid(coalesce(tags, '[]')) OR NOT json_valid(coalesce(capabilities, '[]'))", "''")},
		{Name: "archived without an end", SQL: archived("expires < finished", "'expires before it finished'")},
		{Name: "log lines do not add up", SQL: archived(logsRecount, "logs || ' counted'")},
	}},
	{Table: "pawl_job_unique", Key: "hash", Rules: []lite.Rule{
		{Name: "unique key without its job", SQL: `SELECT u.job, 'held by no live job' FROM pawl_job_unique AS u WHERE u.namespace = ?1 AND u.hash > ?2 AND u.hash <= ?3
			AND ?4 + ?5 > 0 AND u.until IS NULL AND NOT EXISTS (
				SELECT 1 FROM pawl_job AS j WHERE j.namespace = u.namespace AND j.id = u.job AND j.unique_hash = u.hash)`},
	}},
	{Table: "pawl_job_log", Key: "job", Rules: []lite.Rule{
		{Name: "log lines without their job", SQL: `SELECT DISTINCT l.job, 'neither live nor archived' FROM pawl_job_log AS l WHERE l.namespace = ?1 AND l.job > ?2 AND l.job <= ?3
			AND ?4 + ?5 > 0
			AND NOT EXISTS (SELECT 1 FROM pawl_job AS j WHERE j.namespace = l.namespace AND j.id = l.job)
			AND NOT EXISTS (SELECT 1 FROM pawl_job_archive AS a WHERE a.namespace = l.namespace AND a.id = l.job)`},
	}},
}

// failuresBroken finds failures that job.AppendFailure did not write, by their
// first byte. Frames inside are opaque here.
const failuresBroken = "failures IS NOT NULL AND substr(failures, 1, 1) <> x'01'"

const logsRecount = "logs <> (SELECT count(*) FROM pawl_job_log AS l WHERE l.namespace = j.namespace AND l.job = j.id)"

func live(broken, detail string) string     { return rows("pawl_job", broken, detail) }
func archived(broken, detail string) string { return rows("pawl_job_archive", broken, detail) }

func rows(table, broken, detail string) string {
	return "SELECT j.id, " + detail + " FROM " + table + " AS j WHERE j.namespace = ?1 AND j.id > ?2 AND j.id <= ?3 AND ?4 + ?5 > 0 AND (" + broken + ")"
}
