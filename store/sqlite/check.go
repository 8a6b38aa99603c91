package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// rule is one sentence of P6. Its name is that of every store that has the rule.
// Its SQL finds rows that break it in one stretch of a table: parameters are the
// namespace (?1), the last key before the stretch (?2), its last key (?3), now
// (?4) and the grace (?5); columns are the key and a detail.
type rule struct {
	name string
	sql  string
}

// sweep walks a table by its key, which follows the namespace.
type sweep struct {
	table, key string
	rules      []rule
}

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

// CheckRules lists the names of the rules that Check knows.
func (s *Store) CheckRules() []string {
	var names []string
	for _, w := range sweeps {
		for _, r := range w.rules {
			names = append(names, r.name)
		}
	}
	return names
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

// Check looks for broken rules (P6). Each stretch of a table is read in a
// snapshot of its own, so that a check of a large store holds no one up; what
// looks broken is read again before it is reported.
func (s *Store) Check(ctx context.Context, c store.Check) (store.CheckReport, error) {
	grace := cmp.Or(c.Grace, time.Minute).Microseconds()
	step := cmp.Or(c.Step, 10_000)
	var report store.CheckReport
	for _, w := range sweeps {
		last := []byte{}
		for last != nil {
			var suspects []suspect
			var looked int64
			err := s.read(ctx, func(c *lite.Snapshot) (err error) {
				suspects = nil
				after := last
				if last, looked, err = w.stretch(c, after, step); err != nil || last == nil {
					return err
				}
				for _, r := range w.rules {
					found, err := r.find(c, after, last, c.Clock.Now(), grace)
					if err != nil {
						return err
					}
					suspects = append(suspects, found...)
				}
				return nil
			})
			if err != nil {
				return store.CheckReport{}, err
			}
			switch w.table {
			case "pawl_job":
				report.Live += looked
			case "pawl_job_archive":
				report.Archived += looked
			}
			if err := s.confirm(ctx, &report, suspects, grace); err != nil {
				return store.CheckReport{}, err
			}
		}
	}
	return report, nil
}

// suspect is a row that seemed to break a rule, with the stretch it was in.
type suspect struct {
	rule        rule
	after, last []byte
	fault       store.Fault
}

// stretch finds where the next step rows end; nil when there are none.
func (w sweep) stretch(c *lite.Snapshot, after []byte, step int) (last []byte, looked int64, err error) {
	q := c.Query("SELECT max(k), count(*) FROM (SELECT " + w.key + " AS k FROM " + w.table + " WHERE namespace = ? AND " + w.key + " > ? ORDER BY " + w.key + " LIMIT ?)").
		Int(c.Namespace).Blob(after).Int(int64(step))
	if q.Step() {
		last, looked = q.ColBlob(0), q.ColInt(1)
	}
	return last, looked, q.Done()
}

func (r rule) find(c *lite.Snapshot, after, last []byte, now, grace int64) ([]suspect, error) {
	var found []suspect
	q := c.Query(r.sql).Int(c.Namespace).Blob(after).Blob(last).Int(now).Int(grace)
	for q.Step() {
		id := job.ID(q.ColID(0))
		found = append(found, suspect{rule: r, after: after, last: last, fault: store.Fault{Rule: r.name, ID: id, Detail: q.ColText(1)}})
	}
	return found, q.Done()
}

// confirm reads suspects again, in a later snapshot, and reports those that
// still break their rule.
func (s *Store) confirm(ctx context.Context, report *store.CheckReport, suspects []suspect, grace int64) error {
	if len(suspects) == 0 {
		return nil
	}
	return s.read(ctx, func(c *lite.Snapshot) error {
		again := map[string]bool{}
		key := func(f store.Fault) string { return fmt.Sprintf("%s %s", f.Rule, f.ID) }
		seen := map[string]bool{}
		for _, x := range suspects {
			if seen[x.rule.name] {
				continue
			}
			seen[x.rule.name] = true
			found, err := x.rule.find(c, x.after, x.last, c.Clock.Now(), grace)
			if err != nil {
				return err
			}
			for _, f := range found {
				again[key(f.fault)] = true
			}
		}
		for _, x := range suspects {
			if again[key(x.fault)] {
				report.Faults = append(report.Faults, x.fault)
			}
		}
		return nil
	})
}
