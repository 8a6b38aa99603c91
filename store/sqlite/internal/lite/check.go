package lite

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Rule is one sentence of P6, which check.Sentences has by its name.
//
// Its SQL finds rows that break it in one stretch of a table: parameters are the
// namespace (?1), the last key before the stretch (?2), its last key (?3), now
// (?4) and the grace (?5); columns are the job, a detail, and the key of the row where
// that is not the job. Of a table that is looked at whole the parameters are the
// namespace (?1), now (?2) and the grace (?3), and the column a detail, by which the
// row is known; ?4 is that detail where one row is looked at again, else NULL.
type Rule struct {
	Name string
	SQL  string
	Fix  Fix
}

// Fix mends one row that breaks a rule, in a transaction in which it was just seen to.
// What it leaves must not break the rule any more, else it is undone.
type Fix struct {
	Does string // what becomes of the row, for people; empty where nothing can be done
	// SQL are statements over the namespace (?1), the key (?2; of a table that is looked
	// at whole, the detail) and now (?3).
	SQL []string
	// Run comes behind them.
	Run func(s *Session, key []byte) error
}

// TableRules are those of one table, which is walked by its key behind the namespace;
// without a key it is small, and looked at whole.
type TableRules struct {
	Table, Key string
	Rules      []Rule
	// Own looks at a table without a key that is not small, in stretches of its own,
	// each in one call of read. Faults are known by their detail.
	Own func(step int, read func(func(*Snapshot) error) error) ([]store.Fault, error)
}

// LookOwn is Own, with faults as repairs know them.
func (w TableRules) LookOwn(step int, read func(func(*Snapshot) error) error) ([]store.Fault, error) {
	faults, err := w.Own(step, read)
	for i := range faults {
		faults[i].Table, faults[i].Key = w.Table, faults[i].Detail
	}
	return faults, err
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
	if after == nil {
		after = []byte{} // NULL is behind nothing
	}
	q := c.On(w.stretchText()).Blob(after).Int(int64(step))
	if q.Step() {
		last, looked = q.ColBlob(0), q.ColInt(1)
	}
	return last, looked, q.Done()
}

// Find returns the rows of a stretch that seem to break a rule, as many as a report
// lists; without a key those of the table.
func (w TableRules) Find(c *Snapshot, r Rule, after, last []byte, now, grace int64) ([]Finding, error) {
	if after == nil {
		after = []byte{}
	}
	q := c.On(r.SQL)
	if w.Key == "" {
		if q = q.asMany(now, grace); q.bound < q.parameters() {
			q.TextOrNull(string(last))
		}
	} else {
		q = q.Blob(after).Blob(last).asMany(now, grace)
	}
	var found []Finding
	for len(found) < store.MaxFaults && q.Step() {
		f := store.Fault{Rule: r.Name, Table: w.Table}
		if w.Key == "" {
			f.Detail = q.ColText(0)
			f.Key = f.Detail
		} else {
			f.ID, f.Detail = job.ID(q.ColID(0)), q.ColText(1)
			f.Key = hex.EncodeToString(f.ID[:])
			if q.columns() > 2 {
				f.Key = hex.EncodeToString(q.ColBlob(2))
			}
		}
		found = append(found, Finding{rule: r, after: after, last: last, fault: f})
	}
	return found, q.Done()
}

// Again returns a fault as its row is now, nil if it does not break the rule any more.
func (w TableRules) Again(c *Snapshot, r Rule, f *store.Fault, now, grace int64) (*store.Fault, error) {
	key := w.key(f)
	found, err := w.Find(c, r, before(key), key, now, grace)
	for i := range found {
		if found[i].fault.Key == f.Key {
			return &found[i].fault, err
		}
	}
	return nil, err
}

// key is that of the row of a fault; one that is none finds nothing.
func (w TableRules) key(f *store.Fault) []byte {
	if w.Key == "" {
		return []byte(f.Key)
	}
	key, _ := hex.DecodeString(f.Key)
	return key
}

// before is a key with nothing but the given one between the two.
func before(key []byte) []byte {
	if len(key) == 0 {
		return key
	}
	n := len(key) - 1
	if key[n] == 0 {
		return key[:n]
	}
	return append(append(bytes.Clone(key[:n]), key[n]-1), bytes.Repeat([]byte{0xff}, 64)...)
}

// Mend applies the fix of a rule to the row of a fault.
func (w TableRules) Mend(s *Session, r Rule, of *store.Fault) error {
	f, key := r.Fix, w.key(of)
	for _, text := range f.SQL {
		q := s.On(text)
		if q.parameters() > 1 {
			if w.Key == "" {
				q = q.Text(string(key))
			} else {
				q = q.Blob(key)
			}
		}
		if err := q.asMany(s.Now).Exec(); err != nil {
			return err
		}
	}
	if f.Run == nil {
		return nil
	}
	return f.Run(s, key)
}

// Confirm reads findings again, in a later snapshot, and returns those that
// still break their rule.
func (w TableRules) Confirm(c *Snapshot, findings []Finding, grace int64) (faults []store.Fault, err error) {
	again := map[string]bool{}
	key := func(f store.Fault) string { return fmt.Sprintf("%s %s", f.Rule, f.Key) }
	seen := map[string]bool{}
	for _, x := range findings {
		if seen[x.rule.Name] {
			continue
		}
		seen[x.rule.Name] = true
		found, err := w.Find(c, x.rule, x.after, x.last, c.Clock.Now(), grace)
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
