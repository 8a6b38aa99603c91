package sqlite

import (
	"fmt"

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

// confirm reads suspects again, in a later snapshot, and returns those that
// still break their rule.
func confirm(c *lite.Snapshot, suspects []suspect, grace int64) (faults []store.Fault, err error) {
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
			return nil, err
		}
		for _, f := range found {
			again[key(f.fault)] = true
		}
	}
	for _, x := range suspects {
		if again[key(x.fault)] {
			faults = append(faults, x.fault)
		}
	}
	return faults, nil
}
