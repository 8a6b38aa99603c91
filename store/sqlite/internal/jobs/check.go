package jobs

import (
	"fmt"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// CheckRules are the rules of the tables of jobs.
//   - Each walks a table by its primary key, which also finds the rows beside it.
var CheckRules = []lite.TableRules{
	{Table: "pawl_job", Key: "id", Rules: []lite.Rule{
		live("live job in a final state", "'state ' || state", "state NOT IN (1, 2, 3, 4)"),
		live("job in two places", "'live and archived'", `EXISTS (
			SELECT 1
			FROM pawl_job_archive AS a
			WHERE a.namespace = j.namespace AND a.id = j.id)`),
		live("running without a worker", "'run ' || run", "state = 3 AND (worker IS NULL OR run < 1)"),
		live("worker of a job that does not run", "'worker ' || coalesce(worker, 0)",
			"state <> 3 AND (worker IS NOT NULL OR claim IS NOT NULL OR begun <> 0 OR cancel <> 0)"),
		// Never registered counts from the claim, lost or gone from when it was.
		live("running without a live worker", "'worker ' || worker", `state = 3 AND worker IS NOT NULL AND coalesce(
			(SELECT coalesce(w.lost, ?4)
				FROM pawl_worker AS w
				WHERE w.namespace = j.namespace AND w.id = j.worker), started, 0) + ?5 < ?4`),
		live("unique key not held", "''", `unique_hash IS NOT NULL AND NOT EXISTS (
			SELECT 1
			FROM pawl_job_unique AS u
			WHERE u.namespace = j.namespace AND u.hash = j.unique_hash AND u.job = j.id AND u.until IS NULL)`),
		live("ties do not add up", "'ties ' || ties", "(ties & 1 <> 0) <> (unique_hash IS NOT NULL) OR (ties & 2 <> 0) <> (logs > 0)"),
		live("attempts out of bounds", "used || ' of ' || max_attempts", "used < 0 OR max_attempts < 1"),
		live("priority out of bounds", "priority", "priority NOT BETWEEN 1 AND 9"),
		live("log lines do not add up", "logs || ' counted'", logsRecount),
		live("wait of a job that is not suspended", "'state ' || state || ', wait ' || wait",
			"wait IS NOT NULL AND state <> 4"),
		live("failures cannot be read", "length(failures) || ' bytes'", failuresBroken),
		live("names cannot be read", "''", namesBroken),
	}},
	{Table: "pawl_job_archive", Key: "id", Rules: []lite.Rule{
		archived("archived job in a live state", "'state ' || state", "state NOT IN (5, 6, 7, 8)"),
		archived("failures cannot be read", "length(failures) || ' bytes'", failuresBroken),
		archived("names cannot be read", "''", namesBroken),
		archived("archived without an end", "'expires before it finished'", "expires < finished"),
		archived("log lines do not add up", "logs || ' counted'", logsRecount),
	}},
	{Table: "pawl_job_unique", Key: "hash", Rules: []lite.Rule{
		{Name: "unique key without its job", SQL: `SELECT u.job, 'held by no live job'
	FROM pawl_job_unique AS u
	WHERE u.namespace = ?1 AND u.hash > ?2 AND u.hash <= ?3 AND ?4 + ?5 > 0
		AND u.until IS NULL
		AND NOT EXISTS (
			SELECT 1
			FROM pawl_job AS j
			WHERE j.namespace = u.namespace AND j.id = u.job AND j.unique_hash = u.hash)`},
	}},
	{Table: "pawl_job_log", Key: "job", Rules: []lite.Rule{
		{Name: "log lines without their job", SQL: `SELECT DISTINCT l.job, 'neither live nor archived'
	FROM pawl_job_log AS l
	WHERE l.namespace = ?1 AND l.job > ?2 AND l.job <= ?3 AND ?4 + ?5 > 0
		AND NOT EXISTS (SELECT 1 FROM pawl_job AS j WHERE j.namespace = l.namespace AND j.id = l.job)
		AND NOT EXISTS (SELECT 1 FROM pawl_job_archive AS a WHERE a.namespace = l.namespace AND a.id = l.job)`},
	}},
}

// What makes a row of either table broken.
const (
	// What job.AppendFailure did not write, by its first byte. Frames inside are
	// opaque here.
	failuresBroken = "failures IS NOT NULL AND substr(failures, 1, 1) <> x'01'"

	namesBroken = "NOT json_valid(coalesce(tags, '[]')) OR NOT json_valid(coalesce(capabilities, '[]'))"

	logsRecount = `logs <> (
			SELECT count(*)
			FROM pawl_job_log AS l
			WHERE l.namespace = j.namespace AND l.job = j.id)`
)

// live and archived are rules of one row: broken is the condition that it must not
// meet.
func live(name, detail, broken string) lite.Rule { return rule("pawl_job", name, detail, broken) }

func archived(name, detail, broken string) lite.Rule {
	return rule("pawl_job_archive", name, detail, broken)
}

func rule(table, name, detail, broken string) lite.Rule {
	return lite.Rule{Name: name, SQL: `SELECT j.id, ` + detail + `
	FROM ` + table + ` AS j
	WHERE j.namespace = ?1 AND j.id > ?2 AND j.id <= ?3 AND ?4 + ?5 > 0
		AND (` + broken + `)`}
}

// StrayText lists the namespaces that a table has rows of, after one (?1) and at most
// so many (?2), and says which do not exist: one seek for each.
//   - An index that begins with the namespace; the primary key of pawl_namespace.
func StrayText(t *table.Table) string {
	return `WITH RECURSIVE seen (namespace, n) AS (
		SELECT (SELECT min(t.namespace) FROM ` + t.Name + ` AS t WHERE t.namespace > ?1), 1
		UNION ALL
		SELECT (SELECT min(t.namespace) FROM ` + t.Name + ` AS t WHERE t.namespace > seen.namespace), n + 1
		FROM seen
		WHERE seen.namespace IS NOT NULL AND n < ?2)
	SELECT namespace, NOT EXISTS (SELECT 1 FROM pawl_namespace WHERE id = namespace)
	FROM seen
	WHERE namespace IS NOT NULL`
}

// Strays finds rows of no namespace in a table: of the next step namespaces after
// one. It answers the last of them, and whether there may be more.
func Strays(c *lite.Snapshot, t *table.Table, after int64, step int) (faults []store.Fault, last int64, more bool, err error) {
	q, n := c.Query(StrayText(t)).Int(after).Int(int64(step)), 0
	for ; q.Step(); n++ {
		if last = q.ColInt(0); q.ColBool(1) {
			faults = append(faults, store.Fault{Rule: table.NoNamespace, Detail: fmt.Sprintf("%s has rows of %d", t.Name, last)})
		}
	}
	return faults, last, n == step, q.Done()
}
