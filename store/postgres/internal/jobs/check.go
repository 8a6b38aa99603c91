package jobs

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/postgres/internal/hints"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

// CheckRules are the rules of the tables of jobs.
//
//   - job_pkey, job_archive_pkey, job_unique_pkey and job_log_pkey give the stretches
//     and what the rules join; worker_pkey the workers.
func CheckRules(r *Room) []pg.TableRules {
	return []pg.TableRules{
		{Table: "job", Key: "id", Rules: liveRules(r)},
		{Table: "job_archive", Key: "id", Rules: archiveRules},
		{Table: "job_unique", Key: "hash", Rules: uniqueRules},
		{Table: "job_log", Key: "job", Rules: logRules},
	}
}

// checkTexts are the statements that look, in the order of the tables.
var checkTexts = func() (texts []string) {
	for _, w := range CheckRules(nil) {
		texts = append(texts, w.Text())
	}
	return texts
}()

// liveRules hold for each live job.
func liveRules(r *Room) []pg.Rule {
	// moved lets a job move as a decider says. What followers lock comes before the
	// job, so they are left word of it, as in a user's transaction.
	moved := func(decide func(s *job.Subject) job.End) func(context.Context, pg.Session, *store.Fault) error {
		return func(ctx context.Context, t pg.Session, f *store.Fault) error {
			_, _, err := r.moveAll(ctx, t, nil, lockBy(lockLive, r.pg.Namespace, [][16]byte{f.ID}), decide)
			return err
		}
	}
	return []pg.Rule{
		row("live job in a final state", "'state ' || p.state", "p.state NOT BETWEEN 1 AND 4", pg.Fix{
			Does: "waits again", SQL: []string{waitAgain},
		}),
		{
			Name: "job in two places",
			Find: `SELECT p.id, 'live and archived'
	FROM part AS p
	JOIN pawl.job_archive AS a ON a.namespace = ANY (ARRAY[p.namespace]) AND a.id = p.id`,
			Fix: pg.Fix{Does: "is live, its run no lower than the archived one", SQL: []string{raiseRun, dropCopy}},
		},
		row("running without a worker", "'run ' || p.run", "p.state = 3 AND (p.worker IS NULL OR p.claim IS NULL OR p.run < 1)", pg.Fix{
			Does: "was given back", Run: moved(func(s *job.Subject) job.End { return job.GiveBack(s, r.keep(s.Queue)) }),
		}),
		row("worker of a job that does not run", "'worker ' || coalesce(p.worker::text, 'none')",
			"p.state <> 3 AND (p.worker IS NOT NULL OR p.claim IS NOT NULL OR p.begun OR p.cancel)",
			fix("has no worker", "job", "worker = NULL, claim = NULL, begun = false, cancel = false")),
		// Never registered counts from the claim, lost or gone from when it was.
		{
			Name: "running without a live worker",
			Find: `SELECT p.id, 'run ' || p.run || ' of worker ' || p.worker
		|| CASE WHEN w.id IS NULL THEN ', which is not registered' ELSE ', lost since ' || w.lost END
	FROM part AS p
	LEFT JOIN pawl.worker AS w ON w.namespace = p.namespace AND w.id = p.worker
	WHERE p.state = 3 AND p.worker IS NOT NULL AND (
		w.id IS NULL AND p.started < {now} - $4 * interval '1 microsecond'
		OR w.lost < {now} - $4 * interval '1 microsecond'
	)`,
			Fix: pg.Fix{Does: "was rescued", Run: moved(func(s *job.Subject) job.End { return job.Rescue(s, r.MaxLost, r.keep(s.Queue)) })},
		},
		{
			Name: "unique key not held",
			Find: `SELECT p.id,
		CASE WHEN u.job IS NULL THEN 'its key has no row' ELSE 'its key is held by ' || u.job END
	FROM part AS p
	LEFT JOIN pawl.job_unique AS u ON u.namespace = ANY (ARRAY[p.namespace]) AND u.hash = p.unique_hash
	WHERE p.unique_hash IS NOT NULL AND (u.job IS NULL OR u.job <> p.id OR u.until IS NOT NULL)`,
			Fix: pg.Fix{Does: "holds its key, or has none where another live job holds it", SQL: []string{holdKey, leaveKey}},
		},
		// A plain end would leave the key held for good, and lines behind.
		row("ties do not add up", "'ties ' || p.ties", tiesBroken, fix("has its ties again", "job", tiesRecount)),
		row("attempts out of bounds", "p.used || ' of ' || p.max_attempts", "p.used < 0 OR p.max_attempts < 1",
			fix("has an attempt left", "job", "used = greatest(used, 0), max_attempts = greatest(max_attempts, greatest(used, 0) + 1)")),
		row("priority out of bounds", "p.priority::text", "p.priority NOT BETWEEN 1 AND 9",
			fix("has the nearest priority", "job", "priority = least(greatest(priority, 1), 9)")),
		row("counts below zero", countsDetail, countsBroken+" OR p.deferred < 0",
			fix("counts from 0", "job", countsMended+", deferred = greatest(deferred, 0)")),
		row("due at no time", "'due ' || p.due", "NOT isfinite(p.due)", fix("is due now", "job", "due = {now}")),
		row("wait of a job that is not suspended", "'state ' || p.state || ', wait ' || p.wait", "p.wait IS NOT NULL AND p.state <> 4",
			fix("waits for nothing outside", "job", "wait = NULL")),
		{Name: "failures cannot be read", Find: brokenFailures, Fix: fix(forgotFailures, "job", "failures = NULL")},
		{Name: "names cannot be read", Find: brokenNames, Fix: fix(keptNames, "job", legibleNames)},
	}
}

var archiveRules = []pg.Rule{
	{Name: "failures cannot be read", Find: brokenFailures, Fix: fix(forgotFailures, "job_archive", "failures = NULL")},
	{Name: "names cannot be read", Find: brokenNames, Fix: fix(keptNames, "job_archive", legibleNames)},
	row("archived job in a live state", "'state ' || p.state", "p.state NOT BETWEEN 5 AND 8", pg.Fix{
		Does: "is live and waits", SQL: []string{bringBackOne, raiseRun, dropCopy, holdKey, leaveKey},
	}),
	row("archived without an end", "'finished ' || p.finished || ', expires ' || p.expires",
		"p.expires < p.finished OR NOT isfinite(p.finished) OR NOT isfinite(p.expires)",
		fix("is kept for a week from now", "job_archive", "finished = least(finished, {now}), expires = {now} + interval '7 days'")),
	row("ties do not add up", "'ties ' || p.ties", "(p.ties & 1 <> 0) <> (p.unique_hash IS NOT NULL)",
		fix("has its ties again", "job_archive", "ties = (ties & ~1) | (unique_hash IS NOT NULL)::int")),
	row("counts below zero", countsDetail, countsBroken, fix("counts from 0", "job_archive", countsMended)),
}

var uniqueRules = []pg.Rule{{
	Name: "unique key without its job",
	Find: `SELECT p.job, 'held by a job that is not live or has another key', p.hash
	FROM part AS p
	LEFT JOIN pawl.job AS j ON j.namespace = ANY (ARRAY[p.namespace]) AND j.id = p.job
	WHERE p.until IS NULL AND (j.id IS NULL OR j.unique_hash IS DISTINCT FROM p.hash)`,
	Fix: pg.Fix{Does: "the key is free", SQL: []string{`DELETE FROM pawl.job_unique
WHERE namespace = $1 AND hash = $2`}},
}}

// Lines of a job that was just deleted, or not kept, go with the next purge.
var logRules = []pg.Rule{{
	Name: "log lines without their job",
	Find: `SELECT DISTINCT p.job, 'neither live nor archived'
	FROM part AS p
	WHERE (SELECT 1 FROM pawl.job AS j WHERE j.namespace = p.namespace AND j.id = p.job LIMIT 1) IS NULL
		AND (SELECT 1 FROM pawl.job_archive AS a WHERE a.namespace = p.namespace AND a.id = p.job LIMIT 1) IS NULL
		AND (SELECT 1 FROM pawl.tombstone AS t WHERE t.namespace = p.namespace AND t.id = p.job LIMIT 1) IS NULL`,
	Fix: pg.Fix{Does: "the lines are gone", SQL: []string{`DELETE FROM pawl.job_log
WHERE namespace = $1 AND job = $2`}},
}}

// What makes a row broken, and what mends it.
const (
	forgotFailures = "its failures are forgotten"
	keptNames      = "it has the names that can be read"

	// The bit of lines may stay when they are gone.
	tiesBroken = `(p.ties & 1 <> 0) <> (p.unique_hash IS NOT NULL)
		OR p.ties & 2 = 0 AND EXISTS (SELECT FROM pawl.job_log AS l WHERE l.namespace = p.namespace AND l.job = p.id)`
	tiesRecount = `ties = (ties & ~3) | (unique_hash IS NOT NULL)::int
		| 2 * EXISTS (SELECT FROM pawl.job_log AS l WHERE l.namespace = job.namespace AND l.job = job.id)::int`

	countsBroken = "p.run < 0 OR p.lost < 0 OR p.rescues < 0 OR p.snoozes < 0 OR p.throttles < 0"
	countsDetail = `'run ' || p.run || ', lost ' || p.lost || ', rescues ' || p.rescues
		|| ', snoozes ' || p.snoozes || ', throttles ' || p.throttles`
	countsMended = `run = greatest(run, 0), lost = greatest(lost, 0), rescues = greatest(rescues, 0),
	snoozes = greatest(snoozes, 0), throttles = greatest(throttles, 0)`

	// Lists of more dimensions become one, and holes go.
	legibleNames = `tags = ARRAY(SELECT n FROM unnest(tags) AS n WHERE n IS NOT NULL),
	capabilities = CASE
		WHEN capabilities IS NOT NULL THEN ARRAY(SELECT n FROM unnest(capabilities) AS n WHERE n IS NOT NULL)
	END`

	waitAgain = `UPDATE pawl.job
SET state = 2, due = greatest(due, {now}), worker = NULL, claim = NULL, begun = false, cancel = false, wait = NULL
WHERE namespace = $1 AND id = $2`

	// A run below the archived one would be given out again (P2): it is not owned any more.
	raiseRun = `UPDATE pawl.job AS j
SET run = a.run,
	state = CASE j.state WHEN 3 THEN 2 ELSE j.state END,
	due = greatest(j.due, {now}),
	worker = NULL,
	claim = NULL,
	begun = false,
	cancel = false
FROM pawl.job_archive AS a
WHERE a.namespace = $1 AND a.id = $2 AND j.namespace = $1 AND j.id = $2 AND j.run < a.run`

	dropCopy = `DELETE FROM pawl.job_archive
WHERE namespace = $1 AND id = $2`

	// The key is taken from whoever does not live.
	holdKey = `INSERT INTO pawl.job_unique AS u (namespace, hash, job)
SELECT namespace, unique_hash, id
FROM pawl.job
WHERE namespace = $1 AND id = $2 AND unique_hash IS NOT NULL
ON CONFLICT (namespace, hash) DO UPDATE
SET job = excluded.job, until = NULL
WHERE u.job = excluded.job OR NOT EXISTS (
	SELECT
	FROM pawl.job AS j
	WHERE j.namespace = u.namespace AND j.id = u.job AND j.unique_hash = u.hash
)`

	leaveKey = `UPDATE pawl.job AS j
SET unique_hash = NULL, unique_period = NULL, ties = ties & ~1
WHERE namespace = $1 AND id = $2 AND unique_hash IS NOT NULL AND NOT EXISTS (
	SELECT
	FROM pawl.job_unique AS u
	WHERE u.namespace = j.namespace AND u.hash = j.unique_hash AND u.job = j.id
)`
)

// A deadline that has passed would end it at once.
var bringBackOne = `INSERT INTO pawl.job (namespace, id, state, ` + carriedColumns + `)
SELECT namespace, id, 2, ` + carriedFrom("a.", map[string]string{
	"due":      "greatest(a.due, {now})",
	"deadline": "CASE WHEN a.deadline > {now} THEN a.deadline END",
}) + `
FROM pawl.job_archive AS a
WHERE namespace = $1 AND id = $2
ON CONFLICT DO NOTHING`

// fix sets columns of the row of a job.
func fix(does, table, set string) pg.Fix {
	return pg.Fix{Does: does, SQL: []string{`UPDATE pawl.` + table + `
SET ` + set + `
WHERE namespace = $1 AND id = $2`}}
}

// row is a rule of one row: broken is the condition that it must not meet.
func row(name, detail, broken string, f pg.Fix) pg.Rule {
	return pg.Rule{Name: name, Fix: f, Find: `SELECT p.id, ` + detail + `
	FROM part AS p
	WHERE ` + broken}
}

// strays lists the namespaces that a table has rows of, after one ($1) and at most
// so many ($2), and says which do not exist: one seek for each.
//
//   - The index of the key, which the order chooses; namespace_pkey.
func strays(t *table.Table) string {
	next := func(after string) string {
		return `(
		SELECT t.namespace
		FROM pawl.` + t.Name + ` AS t
		WHERE t.namespace > ` + after + `
		ORDER BY ` + strings.Join(t.Key, ", ") + `
		LIMIT 1
	)`
	}
	return `WITH RECURSIVE seen AS (
	SELECT ` + next("$1") + ` AS namespace, 1 AS n
	UNION ALL
	SELECT ` + next("seen.namespace") + `, seen.n + 1
	FROM seen
	WHERE seen.namespace IS NOT NULL AND seen.n < $2
)
SELECT seen.namespace, NOT EXISTS (SELECT FROM pawl.namespace AS n WHERE n.id = seen.namespace)
FROM seen
WHERE seen.namespace IS NOT NULL`
}

// CheckNamespaces finds rows of no namespace, in any table.
func (r *Room) CheckNamespaces(ctx context.Context, step int) (faults []store.Fault, err error) {
	for _, t := range table.InNamespace(r.Tables) {
		for last, more := int32(math.MinInt32), true; more; {
			var seen, missing []int32
			err := r.pg.Retry(ctx, "check", pg.Reading, func(ctx context.Context, _ bool) error {
				seen, missing = nil, nil
				return r.pg.Send(ctx, r.pg.Work, pg.UpkeepLimits, &pg.Statement{Text: strays(&t), Args: []any{last, step}, Each: func(scan pg.Scan) error {
					var namespace int32
					var stray bool
					err := scan(&namespace, &stray)
					if seen = append(seen, namespace); stray {
						missing = append(missing, namespace)
					}
					return err
				}})
			})
			if err != nil {
				return nil, err
			}
			for _, namespace := range missing {
				faults = append(faults, store.Fault{
					Rule: table.NoNamespace, Table: t.Name, Key: strconv.Itoa(int(namespace)), Detail: fmt.Sprintf("%s has rows of %d", t.Name, namespace),
				})
			}
			if more = len(seen) == step; more {
				last = slices.Max(seen)
			}
		}
	}
	return faults, nil
}

// brokenFailures finds failures that job.AppendFailure did not write, by their
// first byte. Frames inside are opaque here.
const brokenFailures = `SELECT p.id, length(p.failures) || ' bytes'
	FROM part AS p
	WHERE substr(p.failures, 1, 1) <> '\x01'::bytea`

// brokenNames finds lists that RowReader.list cannot read. (array_position
// refuses arrays of more dimensions.)
var brokenNames = `SELECT p.id, ''
	FROM part AS p
	WHERE CASE
		WHEN ` + joined(" OR ", func(c column) string { return c.ifList("array_ndims(p.%) > 1") }) + ` THEN true
		ELSE ` + joined(" OR ", func(c column) string { return c.ifList("array_position(p.%, NULL) IS NOT NULL") }) + `
	END`

// ifList is as, of a list of names.
func (c column) ifList(way string) string {
	if c.kind != "text[]" {
		return ""
	}
	return c.as(way)
}

// TellOf tells claims of jobs that a repair has made wait.
func (r *Room) TellOf(ctx context.Context, ids []job.ID) error {
	if len(ids) == 0 {
		return nil
	}
	var told hints.Set
	err := r.pg.Retry(ctx, "repair", pg.Reading, func(ctx context.Context, _ bool) error {
		told = nil
		args := []any{r.pg.Namespace, UUIDs(ids)}
		return r.pg.Send(ctx, r.pg.Work, nil, &pg.Statement{Text: waitingOf, Args: args, Each: func(scan pg.Scan) error {
			var queue string
			var priority int
			var due time.Time
			err := scan(&queue, &priority, &due)
			told.Add(queue, priority, due)
			return err
		}})
	})
	r.hints.Tell(told)
	return err
}

// waitingOf is where jobs wait, and until when (job_pkey).
const waitingOf = `SELECT queue, priority, due
FROM (` + GivenIDs + `) AS e
JOIN pawl.job ON job.namespace = ANY (ARRAY[e.namespace]) AND job.id = e.id
WHERE state = 2 AND isfinite(due)`
