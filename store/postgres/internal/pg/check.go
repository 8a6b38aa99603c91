package pg

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Rule is one sentence of P6, which check.Sentences has by its name.
//
// Find is what breaks it in one stretch of a table, part: columns are the job, a
// detail, and the key of the row where that is not the job. A run may stay with a lost
// worker for $4 microseconds. Of a table that is looked at whole the only column is a
// detail, by which the row is known; parameters are the namespace ($1) and, where they
// are named, the grace ($2) and, where one row is looked at again, its detail ($3).
type Rule struct {
	Name string
	Find string
	Fix  Fix
}

// Fix mends one row that breaks a rule, in a transaction that has locked it and seen
// that it does. What it leaves must not break the rule any more, else it is undone.
type Fix struct {
	Does string // what becomes of the row, for people; empty where nothing can be done
	// SQL are statements over the namespace ($1) and, where it is named, the key ($2; of
	// a table that is looked at whole, the detail).
	SQL []string
	// Run comes behind them.
	Run func(ctx context.Context, t Session, f *store.Fault) error
}

// TableRules are those of one table, which is walked by its key behind the namespace;
// without a key it is small, and looked at whole.
type TableRules struct {
	Table, Key string
	// Lock locks what comes before the rows of the table in the order of locks; of a
	// table that is looked at whole, all that its rules look at. $1 is the namespace.
	Lock  string
	Rules []Rule
	// Own looks at a table without a key that is not small, in stretches of its own.
	// Faults are known by their detail.
	Own func(ctx context.Context, step int, r *store.CheckReport) error
}

// ids reports whether the key is an id.
func (w *TableRules) ids() bool { return w.Key == "id" || w.Key == "job" }

// Text is the statement of one look: of the namespace ($1), rows after a key ($2), so
// many ($3). It is one snapshot: what it finds broken was broken at that moment, in
// all tables at once. The first row says how many there were and which was the last,
// the others what is broken.
//
//   - The index of the key gives the stretch.
func (w *TableRules) Text() string {
	last := "(SELECT " + w.Key + " FROM part ORDER BY " + w.Key + " DESC LIMIT 1)"
	if w.ids() {
		last = "uuid_send(" + last + ")"
	}
	return "WITH part AS MATERIALIZED (\n" +
		"\tSELECT *\n\tFROM pawl." + w.Table + "\n" +
		"\tWHERE namespace = $1 AND " + w.Key + " > $2\n" +
		"\tORDER BY " + w.Key + "\n\tLIMIT $3\n)\n" +
		"SELECT NULL::text, NULL::uuid, (SELECT count(*) FROM part)::text, " + last + "\n" +
		"WHERE $4::bigint IS NOT NULL" + w.union(w.Rules)
}

// one is the statement that looks at one row: that of a key ($2).
func (w *TableRules) one(r Rule) string {
	return "WITH part AS MATERIALIZED (\n" +
		"\tSELECT *\n\tFROM pawl." + w.Table + "\n" +
		"\tWHERE namespace = $1 AND " + w.Key + " = $2\n\tLIMIT $3\n)\n" +
		"SELECT NULL::text, NULL::uuid, NULL::text, NULL::bytea\nWHERE $4::bigint IS NULL" + w.union([]Rule{r})
}

func (w *TableRules) union(rules []Rule) (text string) {
	key, columns := "uuid_send(f.id)", "id, detail"
	if !w.ids() {
		key, columns = "f.key", "id, detail, key"
	}
	for _, r := range rules {
		text += "\nUNION ALL\nSELECT '" + r.Name + "', f.id, f.detail, " + key + "\nFROM (" + r.Find + ") AS f (" + columns + ")"
	}
	return text
}

// whole is the statement of one look at a small table.
func whole(rules []Rule) (text string, args int) {
	for _, r := range rules {
		if text != "" {
			text += "\nUNION ALL\n"
		}
		text += "SELECT '" + r.Name + "', NULL::uuid, f.detail, NULL::bytea\nFROM (" + r.Find + ") AS f (detail)"
	}
	for args = 3; args > 1 && !strings.Contains(text, fmt.Sprintf("$%d", args)); args-- {
	}
	return text, args
}

// look is what was seen of one stretch.
type look struct {
	of     *TableRules
	rows   int64
	last   []byte // key; nil when there was nothing
	faults []store.Fault
}

func (l *look) read(scan Scan) error {
	var rule, detail pgtype.Text
	var id pgtype.UUID
	var key []byte
	if err := scan(&rule, &id, &detail, &key); err != nil {
		return err
	}
	if !rule.Valid {
		l.last = key
		_, err := fmt.Sscan(detail.String, &l.rows)
		return err
	}
	f := store.Fault{Rule: rule.String, ID: job.ID(id.Bytes), Detail: detail.String, Table: l.of.Table, Key: hex.EncodeToString(key)}
	if l.of.Key == "" {
		f.Key = f.Detail
	}
	if len(l.faults) < store.MaxFaults {
		l.faults = append(l.faults, f)
	}
	return nil
}

// Look looks at the stretch of a table behind a key. It answers the last key, nil when
// there is nothing behind, and how many rows there were.
func (s *DB) Look(ctx context.Context, w *TableRules, c *store.Check, after []byte) (faults []store.Fault, last []byte, rows int64, err error) {
	if w.Own != nil {
		var own store.CheckReport
		err := w.Own(ctx, c.Step, &own)
		for i := range own.Faults {
			own.Faults[i].Table, own.Faults[i].Key = w.Table, own.Faults[i].Detail
		}
		return own.Faults, nil, 0, err
	}
	var seen look
	step := &Statement{Each: func(scan Scan) error { return seen.read(scan) }}
	if w.Key == "" {
		var n int
		step.Text, n = whole(w.Rules)
		step.Args = []any{s.Namespace, c.Grace.Microseconds(), nil}[:n]
	} else {
		step.Text, step.Args = w.Text(), []any{s.Namespace, w.arg(after), c.Step, c.Grace.Microseconds()}
	}
	err = s.Retry(ctx, "check", Reading, func(ctx context.Context, _ bool) error {
		seen = look{of: w}
		return s.Send(ctx, s.Reading, UpkeepLimits, step)
	})
	if err != nil {
		return nil, nil, 0, err
	}
	if seen.rows < int64(c.Step) {
		seen.last = nil
	}
	return seen.faults, seen.last, seen.rows, nil
}

// arg is a key as an argument; empty is before the first.
func (w *TableRules) arg(key []byte) any {
	if !w.ids() {
		return append([]byte{}, key...)
	}
	var id [16]byte
	copy(id[:], key)
	return id
}

// repairLimits are those of a repair. Healthy transactions hold a row for less; one that
// is held longer is left for another time, so that held rows do not add up.
var repairLimits = &Limits{Lock: 200 * time.Millisecond}

// errStays ends a repair that did not help.
var errStays = errors.New("nobody can tell what it should be")

// Mend mends the row of a fault in a transaction of its own: it locks it, looks at it
// again, mends it, looks whether that helped, and has it written down.
func (s *DB) Mend(
	ctx context.Context, w *TableRules, r Rule, f store.Fault, grace int64, record func(ctx context.Context, t Session, f *store.Fault) error,
) (answer store.Repair, err error) {
	err = s.Retry(ctx, "repair", Always, func(ctx context.Context, again bool) error {
		answer = store.Repair{Fault: f, Answer: store.RepairNotNeeded}
		err := s.Transact(ctx, s.Work, repairLimits, func(t *Transaction) error {
			now, err := s.again(ctx, t, w, r, &f, grace, true)
			switch {
			case err != nil:
				return err
			case now == nil && again: // a try whose answer was lost has mended it
				answer.Answer, answer.Did = store.RepairDone, r.Fix.Does
				return nil
			case now == nil:
				return nil
			}
			answer = store.Repair{Fault: *now, Answer: store.RepairDone, Did: r.Fix.Does}
			if r.Fix.Does == "" {
				return errStays
			}
			if err := s.fix(ctx, t, w, r.Fix, now); err != nil {
				return err
			}
			if now, err = s.again(ctx, t, w, r, now, grace, false); err != nil {
				return err
			} else if now != nil {
				return errStays
			}
			return record(ctx, t, &answer.Fault)
		})
		if FaultOf(err).Blocked {
			answer.Answer, answer.Did, err = store.RepairBusy, "", nil
		}
		return err
	})
	switch {
	case err == nil:
	case errors.Is(err, errStays):
		answer.Answer, answer.Did, err = store.RepairImpossible, errStays.Error(), nil
	case strings.HasPrefix(codeOf(err), "22") || strings.HasPrefix(codeOf(err), "23"): // refused data: it costs this row only (P8)
		answer.Answer, answer.Did, err = store.RepairImpossible, err.Error(), nil
	}
	return answer, err
}

// again is a fault as its row is now, nil if it does not break the rule any more. The
// row is locked by a statement of its own: what its holder wrote is seen by the next.
func (s *DB) again(ctx context.Context, t Session, w *TableRules, r Rule, f *store.Fault, grace int64, lock bool) (*store.Fault, error) {
	seen := look{of: w}
	read := &Statement{Each: seen.read}
	var steps []*Statement
	if lock && w.Lock != "" {
		steps = append(steps, &Statement{Text: w.Lock, Args: []any{s.Namespace}})
	}
	if w.Key == "" {
		text, n := whole([]Rule{r})
		read.Text, read.Args = text, []any{s.Namespace, grace, f.Key}[:n]
	} else {
		key, _ := hex.DecodeString(f.Key) // one that is none finds nothing
		read.Text, read.Args = w.one(r), []any{s.Namespace, w.arg(key), store.DropLines, grace}
		if lock {
			steps = append(steps, &Statement{
				Text: "SELECT\nFROM pawl." + w.Table + "\nWHERE namespace = $1 AND " + w.Key + " = $2\nFOR UPDATE",
				Args: []any{s.Namespace, w.arg(key)},
			})
		}
	}
	if err := t.Run(ctx, append(steps, read)...); err != nil {
		return nil, err
	}
	for i := range seen.faults {
		if seen.faults[i].Key == f.Key {
			return &seen.faults[i], nil
		}
	}
	return nil, nil
}

// fix applies a fix.
func (s *DB) fix(ctx context.Context, t Session, w *TableRules, x Fix, f *store.Fault) error {
	var steps []*Statement
	for _, text := range x.SQL {
		args := []any{s.Namespace}
		if strings.Contains(text, "$2") {
			if w.Key == "" {
				args = append(args, f.Key)
			} else {
				key, _ := hex.DecodeString(f.Key)
				args = append(args, w.arg(key))
			}
		}
		steps = append(steps, &Statement{Text: text, Args: args})
	}
	if len(steps) > 0 {
		if err := t.Run(ctx, steps...); err != nil {
			return err
		}
	}
	if x.Run == nil {
		return nil
	}
	return x.Run(ctx, t, f)
}
