package jobs

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// CheckRules are the rules of the tables of jobs; r is what their fixes go by.
//   - Each walks a table by its primary key, which also finds the rows beside it.
func CheckRules(r Rules) []lite.TableRules {
	return []lite.TableRules{
		{Table: "pawl_job", Key: "id", Rules: liveRules(r)},
		{Table: "pawl_job_archive", Key: "id", Rules: archiveRules},
		{Table: "pawl_job_unique", Key: "hash", Rules: uniqueRules},
		{Table: "pawl_job_log", Key: "job", Rules: logRules},
	}
}

// liveRules hold for each live job.
func liveRules(r Rules) []lite.Rule {
	// moved lets a job move as a decider says.
	moved := func(decide func(s *subject) job.End) func(*lite.Session, []byte) error {
		return func(c *lite.Session, key []byte) error {
			t := Transition{Session: *c, Rules: r}
			s, err := t.live(job.ID(key))
			if s == nil || err != nil {
				return err
			}
			_, err = t.move(s, decide(s))
			return err
		}
	}
	return []lite.Rule{
		live("live job in a final state", "'state ' || state", "state NOT IN (1, 2, 3, 4)", lite.Fix{
			Does: "waits again", SQL: []string{waitAgain},
		}),
		live("job in two places", "'live and archived'", `EXISTS (
			SELECT 1
			FROM pawl_job_archive AS a
			WHERE a.namespace = j.namespace AND a.id = j.id)`, lite.Fix{
			Does: "is live, its run no lower than the archived one", SQL: []string{raiseRun, deleteArchived},
		}),
		live("running without a worker", "'run ' || run", "state = 3 AND (worker IS NULL OR claim IS NULL OR run < 1)", lite.Fix{
			Does: "was given back", Run: moved(func(s *subject) job.End { return job.GiveBack(&s.Subject, r.Keep(s.Queue)) }),
		}),
		live("worker of a job that does not run", "'worker ' || coalesce(worker, 0)",
			"state <> 3 AND (worker IS NOT NULL OR claim IS NOT NULL OR begun <> 0 OR cancel <> 0)", lite.Fix{
				Does: "has no worker", SQL: []string{takeWorkerOff},
			}),
		// Never registered counts from the claim, lost or gone from when it was.
		live("running without a live worker", "'worker ' || worker", `state = 3 AND worker IS NOT NULL AND coalesce(
			(SELECT coalesce(w.lost, ?4)
				FROM pawl_worker AS w
				WHERE w.namespace = j.namespace AND w.id = j.worker), started, 0) + ?5 < ?4`, lite.Fix{
			Does: "was rescued", Run: moved(func(s *subject) job.End { return job.Rescue(&s.Subject, r.MaxLost, r.Keep(s.Queue)) }),
		}),
		live("unique key not held", "''", `unique_hash IS NOT NULL AND NOT EXISTS (
			SELECT 1
			FROM pawl_job_unique AS u
			WHERE u.namespace = j.namespace AND u.hash = j.unique_hash AND u.job = j.id AND u.until IS NULL)`, lite.Fix{
			Does: "holds its key, or has none where another live job holds it", SQL: []string{holdKey, leaveKey},
		}),
		live("ties do not add up", "'ties ' || ties", tiesBroken, fix("has its ties again", "pawl_job", tiesRecount)),
		live("attempts out of bounds", "used || ' of ' || max_attempts", "used < 0 OR max_attempts < 1",
			fix("has an attempt left", "pawl_job", "used = max(used, 0), max_attempts = max(max_attempts, max(used, 0) + 1)")),
		live("priority out of bounds", "priority", "priority NOT BETWEEN 1 AND 9",
			fix("has the nearest priority", "pawl_job", "priority = min(max(priority, 1), 9)")),
		live("counts below zero", countsDetail, countsBroken+" OR deferred < 0",
			fix("counts from 0", "pawl_job", countsMended+", deferred = max(deferred, 0)")),
		live("due at no time", "'due ' || due", "due NOT BETWEEN 0 AND 253402300799999999", fix("is due now", "pawl_job", "due = ?3")),
		live("log lines do not add up", "logs || ' counted'", logsBroken, recountLogs("pawl_job")),
		live("wait of a job that is not suspended", "'state ' || state || ', wait ' || wait",
			"wait IS NOT NULL AND state <> 4", fix("waits for nothing outside", "pawl_job", "wait = NULL")),
		live("failures cannot be read", "length(failures) || ' bytes'", failuresBroken, fix(forgotFailures, "pawl_job", "failures = NULL")),
		live("names cannot be read", "''", namesBroken, fix(forgotTags, "pawl_job", "tags = NULL")),
	}
}

var archiveRules = []lite.Rule{
	archived("archived job in a live state", "'state ' || state", "state NOT IN (5, 6, 7, 8)", lite.Fix{
		Does: "is live and waits", SQL: []string{bringBackOne, raiseRun, makeDueOne, deleteArchived, holdKey, leaveKey},
	}),
	archived("failures cannot be read", "length(failures) || ' bytes'", failuresBroken,
		fix(forgotFailures, "pawl_job_archive", "failures = NULL")),
	archived("names cannot be read", "''", namesBroken, fix(forgotTags, "pawl_job_archive", "tags = NULL")),
	archived("archived without an end", "'expires before it finished'", "expires < finished",
		fix("is kept for a week from now", "pawl_job_archive", "finished = min(finished, ?3), expires = ?3 + 604800000000")),
	archived("ties do not add up", "'ties ' || ties", tiesBroken, fix("has its ties again", "pawl_job_archive", tiesRecount)),
	archived("counts below zero", countsDetail, countsBroken, fix("counts from 0", "pawl_job_archive", countsMended)),
	archived("log lines do not add up", "logs || ' counted'", logsBroken, recountLogs("pawl_job_archive")),
}

var uniqueRules = []lite.Rule{{
	Name: "unique key without its job",
	SQL: `SELECT u.job, 'held by no live job', u.hash
	FROM pawl_job_unique AS u
	WHERE u.namespace = ?1 AND u.hash > ?2 AND u.hash <= ?3
		AND u.until IS NULL
		AND NOT EXISTS (
			SELECT 1
			FROM pawl_job AS j
			WHERE j.namespace = u.namespace AND j.id = u.job AND j.unique_hash = u.hash)`,
	Fix: lite.Fix{Does: "the key is free", SQL: []string{`DELETE FROM pawl_job_unique
	WHERE namespace = ?1 AND hash = ?2`}},
}}

var logRules = []lite.Rule{{
	Name: "log lines without their job",
	SQL: `SELECT DISTINCT l.job, 'neither live nor archived'
	FROM pawl_job_log AS l
	WHERE l.namespace = ?1 AND l.job > ?2 AND l.job <= ?3
		AND NOT EXISTS (SELECT 1 FROM pawl_job AS j WHERE j.namespace = l.namespace AND j.id = l.job)
		AND NOT EXISTS (SELECT 1 FROM pawl_job_archive AS a WHERE a.namespace = l.namespace AND a.id = l.job)`,
	Fix: lite.Fix{Does: "the lines are gone", SQL: []string{deleteLogs}},
}}

// What makes a row of either table broken.
const (
	// What job.AppendFailure did not write, by its first byte. Frames inside are
	// opaque here.
	failuresBroken = "failures IS NOT NULL AND substr(failures, 1, 1) <> x'01'"

	namesBroken = "NOT json_valid(coalesce(tags, '[]')) OR NOT json_valid(coalesce(capabilities, '[]'))"

	tiesBroken = "(ties & 1 <> 0) <> (unique_hash IS NOT NULL) OR (ties & 2 <> 0) <> (logs > 0)"

	countsBroken = "run < 0 OR lost < 0 OR rescues < 0 OR snoozes < 0 OR throttles < 0"
	countsDetail = "'run ' || run || ', lost ' || lost || ', rescues ' || rescues || ', snoozes ' || snoozes || ', throttles ' || throttles"

	// The number of the next line is that of the last and one.
	logsBroken = `logs <> (
			SELECT count(*)
			FROM pawl_job_log AS l
			WHERE l.namespace = j.namespace AND l.job = j.id)
		OR logs <> coalesce((
			SELECT max(line)
			FROM pawl_job_log AS l
			WHERE l.namespace = j.namespace AND l.job = j.id), 0)`
)

// What mends a row, by its primary key.
const (
	forgotFailures = "its failures are forgotten"
	forgotTags     = "its tags are forgotten"

	tiesRecount  = "ties = (ties & ~3) | (unique_hash IS NOT NULL) | 2 * (logs > 0)"
	countsMended = `run = max(run, 0), lost = max(lost, 0), rescues = max(rescues, 0), snoozes = max(snoozes, 0),
		throttles = max(throttles, 0)`

	waitAgain = `UPDATE pawl_job
	SET state = 2, due = max(due, ?3), worker = NULL, claim = NULL, begun = 0, cancel = 0, wait = NULL
	WHERE namespace = ?1 AND id = ?2`

	takeWorkerOff = `UPDATE pawl_job
	SET worker = NULL, claim = NULL, begun = 0, cancel = 0
	WHERE namespace = ?1 AND id = ?2`

	// A run below the archived one would be given out again (P2): it is not owned any more.
	raiseRun = `UPDATE pawl_job AS j
	SET run = a.run, state = CASE state WHEN 3 THEN 2 ELSE state END, due = max(j.due, ?3),
		worker = NULL, claim = NULL, begun = 0, cancel = 0
	FROM (SELECT run FROM pawl_job_archive WHERE namespace = ?1 AND id = ?2) AS a
	WHERE j.namespace = ?1 AND j.id = ?2 AND j.run < a.run`

	// A deadline that has passed would end it at once.
	makeDueOne = `UPDATE pawl_job
	SET due = max(due, ?3), deadline = CASE WHEN deadline > ?3 THEN deadline END
	WHERE namespace = ?1 AND id = ?2`

	// The key is taken from whoever does not live.
	holdKey = `INSERT INTO pawl_job_unique (namespace, hash, job)
	SELECT namespace, unique_hash, id
	FROM pawl_job
	WHERE namespace = ?1 AND id = ?2 AND unique_hash IS NOT NULL
	ON CONFLICT DO UPDATE
	SET job = excluded.job, until = NULL
	WHERE job = excluded.job OR NOT EXISTS (
		SELECT 1
		FROM pawl_job AS j
		WHERE j.namespace = pawl_job_unique.namespace AND j.id = pawl_job_unique.job
			AND j.unique_hash = pawl_job_unique.hash)`

	leaveKey = `UPDATE pawl_job AS j
	SET unique_hash = NULL, unique_period = NULL, ties = ties & ~1
	WHERE namespace = ?1 AND id = ?2 AND unique_hash IS NOT NULL AND NOT EXISTS (
		SELECT 1
		FROM pawl_job_unique AS u
		WHERE u.namespace = j.namespace AND u.hash = j.unique_hash AND u.job = j.id)`
)

var bringBackOne = "INSERT OR IGNORE" + strings.TrimPrefix(bringBack, "INSERT")

// fix sets columns of the row of a job.
func fix(does, table, set string) lite.Fix {
	return lite.Fix{Does: does, SQL: []string{`UPDATE ` + table + `
	SET ` + set + `
	WHERE namespace = ?1 AND id = ?2`}}
}

// recountLogs numbers the lines of a job from 1, in their order, and counts them.
func recountLogs(table string) lite.Fix {
	return lite.Fix{Does: "counts the lines that it has", SQL: []string{
		// Below 0 first: no two lines have one number on the way.
		`UPDATE pawl_job_log AS l
	SET line = -o.n
	FROM (
		SELECT line, row_number() OVER (ORDER BY line) AS n
		FROM pawl_job_log
		WHERE namespace = ?1 AND job = ?2
	) AS o
	WHERE l.namespace = ?1 AND l.job = ?2 AND l.line = o.line`,
		`UPDATE pawl_job_log
	SET line = -line
	WHERE namespace = ?1 AND job = ?2`,
		`UPDATE ` + table + ` AS j
	SET logs = l.n, ties = (ties & ~2) | 2 * (l.n > 0)
	FROM (SELECT count(*) AS n FROM pawl_job_log WHERE namespace = ?1 AND job = ?2) AS l
	WHERE j.namespace = ?1 AND j.id = ?2`,
	}}
}

// live and archived are rules of one row: broken is the condition that it must not
// meet.
func live(name, detail, broken string, f lite.Fix) lite.Rule {
	return rule("pawl_job", name, detail, broken, f)
}

func archived(name, detail, broken string, f lite.Fix) lite.Rule {
	return rule("pawl_job_archive", name, detail, broken, f)
}

func rule(table, name, detail, broken string, f lite.Fix) lite.Rule {
	return lite.Rule{Name: name, Fix: f, SQL: `SELECT j.id, ` + detail + `
	FROM ` + table + ` AS j
	WHERE j.namespace = ?1 AND j.id > ?2 AND j.id <= ?3
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
			faults = append(faults, store.Fault{
				Rule: table.NoNamespace, Table: t.Name, Key: strconv.FormatInt(last, 10), Detail: fmt.Sprintf("%s has rows of %d", t.Name, last),
			})
		}
	}
	return faults, last, n == step, q.Done()
}
