package sqlite

import (
	"context"
	"slices"
	"strconv"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/check"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
)

var _ store.Repairer = (*Store)(nil)

// Rules lists what Check holds a database against.
func (s *Store) Rules() []store.Rule {
	list := []store.Rule{check.Rule("", table.NoNamespace, recovered)}
	for _, w := range checkRules(jobs.Rules{}) {
		for _, r := range w.Rules {
			list = append(list, check.Rule(w.Table, r.Name, r.Fix.Does))
		}
	}
	return list
}

// recovered is what becomes of rows of no namespace: one that people can look at and
// erase. What they are nobody can tell, so they stay.
const recovered = "are of a namespace again, recovered-N, to look at and erase"

// What does that, by primary keys. Numbers of workers must not come again.
const (
	isNamespace = `SELECT 1
	FROM pawl_namespace
	WHERE id = ?`

	recoverNamespace = `INSERT OR IGNORE INTO pawl_namespace (id, name, last_worker)
	SELECT ?1, 'recovered-' || ?1, coalesce(max(id), 0)
	FROM pawl_worker
	WHERE namespace = ?1`
)

// mendNamespace gives rows of no namespace one.
func mendNamespace(t *jobs.Transition, f store.Fault, r *store.RepairRequest) (answer store.Repair, err error) {
	answer = store.Repair{Fault: f, Answer: store.RepairImpossible, Did: "this is no number of a namespace"}
	id, err := strconv.ParseInt(f.Key, 10, 64)
	if err != nil {
		return answer, nil
	}
	exists, err := t.Query(isNamespace).Int(id).Found()
	if err != nil {
		return answer, err
	}
	if exists {
		return store.Repair{Fault: f, Answer: store.RepairNotNeeded}, nil
	}
	n, err := t.Query(recoverNamespace).Int(id).Changes()
	if err != nil {
		return answer, err
	}
	if n == 0 {
		answer.Did = "there is another namespace with its name"
		return answer, nil
	}
	answer.Answer, answer.Did = store.RepairDone, recovered
	op, detail := r.Entry(&f, recovered)
	return answer, settings.Audit(&t.Session, op, store.RepairAction, f.Target(), detail)
}

// Repair mends faults, each in a short transaction of its own. There is one writer, so
// what is seen in it holds until it commits.
func (s *Store) Repair(ctx context.Context, faults []store.Fault, r store.RepairRequest) ([]store.Repair, error) {
	if len(faults) > store.MaxFaults {
		return nil, job.Invalid("faults", len(faults), "must be at most "+strconv.Itoa(store.MaxFaults))
	}
	rules, grace := checkRules(s.rules), check.WithDefaults(store.Check{Grace: r.Grace}).Grace.Microseconds()
	var done []store.Repair
	for i := range faults {
		answer, err := ask(ctx, s, 1, func(t *jobs.Transition) (store.Repair, error) {
			if faults[i].Rule == table.NoNamespace {
				return mendNamespace(t, faults[i], &r)
			}
			w, rule := find(rules, &faults[i])
			if rule == nil {
				return store.Repair{Fault: faults[i], Answer: store.RepairImpossible, Did: "this build does not know the rule"}, nil
			}
			if rule.SQL == "" { // it is only looked for, in a way of its own
				return store.Repair{Fault: faults[i], Answer: store.RepairImpossible, Did: impossible}, nil
			}
			return mend(t, w, *rule, faults[i], &r, grace)
		})
		if err != nil {
			return done, err
		}
		done = append(done, answer)
	}
	return done, nil
}

// impossible is what is said of a fault that is left to people.
const impossible = "nobody can tell what it should be"

// find is the rule that a fault breaks.
func find(rules []lite.TableRules, f *store.Fault) (lite.TableRules, *lite.Rule) {
	for _, w := range rules {
		if w.Table != f.Table {
			continue
		}
		if i := slices.IndexFunc(w.Rules, func(r lite.Rule) bool { return r.Name == f.Rule }); i >= 0 {
			return w, &w.Rules[i]
		}
	}
	return lite.TableRules{}, nil
}

// mend looks at the row of a fault again, mends it, looks whether that helped, and
// writes it down. Where it did not help nothing is changed.
func mend(
	t *jobs.Transition, w lite.TableRules, rule lite.Rule, f store.Fault, r *store.RepairRequest, grace int64,
) (answer store.Repair, err error) {
	now, err := w.Again(&t.Snapshot, rule, &f, t.Now, grace)
	switch {
	case err != nil:
		return answer, err
	case now == nil:
		return store.Repair{Fault: f, Answer: store.RepairNotNeeded}, nil
	}
	answer = store.Repair{Fault: *now, Answer: store.RepairImpossible, Did: impossible}
	if rule.Fix.Does == "" {
		return answer, nil
	}
	if err := t.Exec("SAVEPOINT pawl_repair"); err != nil {
		return answer, err
	}
	err = w.Mend(&t.Session, rule, now)
	if err == nil {
		now, err = w.Again(&t.Snapshot, rule, now, t.Now, grace)
	}
	if err != nil || now != nil {
		if err != nil { // it costs this row only (P8)
			answer.Did = err.Error()
		}
		if err := t.Exec("ROLLBACK TO pawl_repair"); err != nil {
			return answer, err
		}
		return answer, t.Exec("RELEASE pawl_repair")
	}
	if err := t.Exec("RELEASE pawl_repair"); err != nil {
		return answer, err
	}
	answer.Answer, answer.Did = store.RepairDone, rule.Fix.Does
	op, detail := r.Entry(&answer.Fault, rule.Fix.Does)
	return answer, settings.Audit(&t.Session, op, store.RepairAction, answer.Fault.Target(), detail)
}
