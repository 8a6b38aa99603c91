package sqlite

var sweeps = []sweep{
	{"pawl_job", "id", []rule{
		{"live job in a final state", live("state NOT IN (1, 2, 3, 4)", "'state ' || state")},
		{"job in two places", live("EXISTS (SELECT 1 FROM pawl_job_archive AS a WHERE a.namespace = j.namespace AND a.id = j.id)", "'live and archived'")},
		{"running without a worker", live("state = 3 AND (worker IS NULL OR run < 1)", "'run ' || run")},
		{"worker of a job that does not run", live("state <> 3 AND (worker IS NOT NULL OR claim IS NOT NULL OR begun <> 0 OR cancel <> 0)", "'worker ' || coalesce(worker, 0)")},
		// Never registered counts from the claim, lost or gone from when it was.
		{"running without a live worker", live(`state = 3 AND worker IS NOT NULL AND coalesce(
			(SELECT coalesce(w.lost, ?4) FROM pawl_worker AS w WHERE w.namespace = j.namespace AND w.id = j.worker), started, 0) + ?5 < ?4`, "'worker ' || worker")},
		{"unique key not held", live(`unique_hash IS NOT NULL AND NOT EXISTS (
			SELECT 1 FROM pawl_job_unique AS u WHERE u.namespace = j.namespace AND u.hash = j.unique_hash AND u.job = j.id AND u.until IS NULL)`, "''")},
		{"attempts out of bounds", live("used < 0 OR max_attempts < 1", "used || ' of ' || max_attempts")},
		{"priority out of bounds", live("priority NOT BETWEEN 1 AND 9", "priority")},
		{"log lines do not add up", live(logsRecount, "logs || ' counted'")},
		{"wait of a job that is not suspended", live("wait IS NOT NULL AND state <> 4", "'state ' || state || ', wait ' || wait")},
		{"failures cannot be read", live(failuresBroken, "length(failures) || ' bytes'")},
		{"names cannot be read", live("NOT json_valid(coalesce(tags, '[]')) OR NOT json_valid(coalesce(capabilities, '[]'))", "''")},
	}},
	{"pawl_job_archive", "id", []rule{
		{"archived job in a live state", archived("state NOT IN (5, 6, 7, 8)", "'state ' || state")},
		{"failures cannot be read", archived(failuresBroken, "length(failures) || ' bytes'")},
		{"names cannot be read", archived("NOT json_valid(coalesce(tags, '[]')) OR NOT json_valid(coalesce(capabilities, '[]'))", "''")},
		{"archived without an end", archived("expires < finished", "'expires before it finished'")},
		{"log lines do not add up", archived(logsRecount, "logs || ' counted'")},
	}},
	{"pawl_job_unique", "hash", []rule{
		{"unique key without its job", `SELECT u.job, 'held by no live job' FROM pawl_job_unique AS u WHERE u.namespace = ?1 AND u.hash > ?2 AND u.hash <= ?3
			AND ?4 + ?5 > 0 AND u.until IS NULL AND NOT EXISTS (
				SELECT 1 FROM pawl_job AS j WHERE j.namespace = u.namespace AND j.id = u.job AND j.unique_hash = u.hash)`},
	}},
	{"pawl_job_log", "job", []rule{
		{"log lines without their job", `SELECT DISTINCT l.job, 'neither live nor archived' FROM pawl_job_log AS l WHERE l.namespace = ?1 AND l.job > ?2 AND l.job <= ?3
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
