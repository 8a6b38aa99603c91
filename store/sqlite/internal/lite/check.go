package lite

import (
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Rule is one sentence of P6. Its name is that of every store that has the rule.
// Its SQL finds rows that break it in one stretch of a table: parameters are the
// namespace (?1), the last key before the stretch (?2), its last key (?3), now
// (?4) and the grace (?5); columns are the key and a detail.
type Rule struct {
	Name string
	SQL  string
}

// TableRules are those of one table, which is walked by its key behind the namespace.
type TableRules struct {
	Table, Key string
	Rules      []Rule
}

// Finding is a row that seemed to break a rule, with the stretch it was in.
type Finding struct {
	rule        Rule
	after, last []byte
	fault       store.Fault
}

// stretchText finds the last of some keys, by the primary key of the table.
func (w TableRules) stretchText() string {
	return `SELECT max(k), count(*)
	FROM (
		SELECT ` + w.Key + ` AS k
		FROM ` + w.Table + `
		WHERE namespace = ? AND ` + w.Key + ` > ?
		ORDER BY ` + w.Key + `
		LIMIT ?)`
}

// Stretch finds where the next step rows end; nil when there are none.
func (w TableRules) Stretch(c *Snapshot, after []byte, step int) (last []byte, looked int64, err error) {
	q := c.On(w.stretchText()).Blob(after).Int(int64(step))
	if q.Step() {
		last, looked = q.ColBlob(0), q.ColInt(1)
	}
	return last, looked, q.Done()
}

// Find returns the rows of a stretch that seem to break the rule.
func (r Rule) Find(c *Snapshot, after, last []byte, now, grace int64) ([]Finding, error) {
	var found []Finding
	q := c.Query(r.SQL).Int(c.Namespace).Blob(after).Blob(last).Int(now).Int(grace)
	for q.Step() {
		id := job.ID(q.ColID(0))
		found = append(found, Finding{rule: r, after: after, last: last, fault: store.Fault{Rule: r.Name, ID: id, Detail: q.ColText(1)}})
	}
	return found, q.Done()
}

// Confirm reads findings again, in a later snapshot, and returns those that
// still break their rule.
func Confirm(c *Snapshot, findings []Finding, grace int64) (faults []store.Fault, err error) {
	again := map[string]bool{}
	key := func(f store.Fault) string { return fmt.Sprintf("%s %s", f.Rule, f.ID) }
	seen := map[string]bool{}
	for _, x := range findings {
		if seen[x.rule.Name] {
			continue
		}
		seen[x.rule.Name] = true
		found, err := x.rule.Find(c, x.after, x.last, c.Clock.Now(), grace)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			again[key(f.fault)] = true
		}
	}
	for _, x := range findings {
		if again[key(x.fault)] {
			faults = append(faults, x.fault)
		}
	}
	return faults, nil
}
