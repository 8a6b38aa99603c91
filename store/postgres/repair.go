package postgres

import (
	"context"
	"slices"
	"strconv"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/check"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

var _ store.Repairer = (*Store)(nil)

// Rules lists what Check holds a database against.
func (s *Store) Rules() []store.Rule {
	list := []store.Rule{check.Rule("", table.NoNamespace, recovered)}
	for _, w := range checkRules(nil, nil, nil) {
		for _, r := range w.Rules {
			list = append(list, check.Rule(w.Table, r.Name, r.Fix.Does))
		}
	}
	return list
}

// Repair mends faults, each in a short transaction of its own.
func (s *Store) Repair(ctx context.Context, faults []store.Fault, r store.RepairRequest) (done []store.Repair, err error) {
	if err := s.pg.Enter(ctx); err != nil {
		return nil, err
	}
	defer s.pg.Leave()
	if len(faults) > store.MaxFaults {
		return nil, job.Invalid("faults", len(faults), "must be at most "+strconv.Itoa(store.MaxFaults))
	}
	rules, grace := checkRules(s.jobs, s.limits, s.metrics), check.WithDefaults(store.Check{Grace: r.Grace}).Grace.Microseconds()
	var changed []job.ID
	for i := range faults {
		f := &faults[i]
		answer := store.Repair{Fault: *f, Answer: store.RepairImpossible, Did: "this build does not know the rule"}
		if f.Rule == table.NoNamespace {
			answer, err = s.mendNamespace(ctx, f, &r)
		} else if w, rule := find(rules, f); rule != nil && rule.Find == "" { // it is only looked for, in a way of its own
			answer.Did = "nobody can tell what it should be"
		} else if rule != nil {
			answer, err = s.pg.Mend(ctx, w, *rule, *f, grace, func(ctx context.Context, t pg.Session, f *store.Fault) error {
				op, detail := r.Entry(f, rule.Fix.Does)
				return s.settings.Record(ctx, t, op, store.RepairAction, []string{pg.Legible(f.Target())}, []string{pg.Legible(detail)})
			})
		}
		if err != nil {
			break
		}
		if done = append(done, answer); answer.Answer == store.RepairDone && f.ID != (job.ID{}) {
			changed = append(changed, f.ID)
		}
	}
	if told := s.jobs.TellOf(ctx, changed); told != nil && err == nil {
		s.pg.Logger.WarnContext(ctx, "claims were not told of repaired jobs: they find them by themselves", "error", told)
	}
	return done, err
}

// find is the rule that a fault breaks.
func find(rules []pg.TableRules, f *store.Fault) (*pg.TableRules, *pg.Rule) {
	for i := range rules {
		w := &rules[i]
		if w.Table != f.Table {
			continue
		}
		if i := slices.IndexFunc(w.Rules, func(r pg.Rule) bool { return r.Name == f.Rule }); i >= 0 {
			return w, &w.Rules[i]
		}
	}
	return nil, nil
}

// recovered is what becomes of rows of no namespace: one that people can look at and
// erase. What they are nobody can tell, so they stay.
const recovered = "are of a namespace again, recovered-N, to look at and erase"

// What does that (namespace_pkey). Numbers go on above it: it is none that comes.
const (
	recoverNamespace = `INSERT INTO pawl.namespace (id, name)
OVERRIDING SYSTEM VALUE
VALUES ($1, 'recovered-' || $1::int)
ON CONFLICT DO NOTHING`

	raiseNamespaces = `SELECT setval(s.number, $1::int)
FROM (SELECT pg_get_serial_sequence('pawl.namespace', 'id')::regclass AS number) AS s
WHERE nextval(s.number) < $1::int`

	isNamespace = `SELECT
FROM pawl.namespace
WHERE id = $1`
)

// mendNamespace gives rows of no namespace one.
func (s *Store) mendNamespace(ctx context.Context, f *store.Fault, r *store.RepairRequest) (answer store.Repair, err error) {
	answer = store.Repair{Fault: *f, Answer: store.RepairImpossible, Did: "this is no number of a namespace"}
	id, err := strconv.ParseInt(f.Key, 10, 32)
	if err != nil {
		return answer, nil
	}
	err = s.pg.Retry(ctx, "repair", pg.Always, func(ctx context.Context, again bool) error {
		return s.pg.Transact(ctx, s.pg.Work, pg.UpkeepLimits, func(t *pg.Transaction) error {
			exists := false
			add := &pg.Statement{Text: recoverNamespace, Args: []any{int32(id)}}
			err := t.Run(ctx, &pg.Statement{Text: isNamespace, Args: []any{int32(id)}, Each: func(pg.Scan) error { exists = true; return nil }}, add)
			switch {
			case err != nil:
				return err
			case exists && again: // by a try whose answer was lost
				answer.Answer, answer.Did = store.RepairDone, recovered
				return nil
			case exists:
				answer.Answer, answer.Did = store.RepairNotNeeded, ""
				return nil
			case add.Hits == 0:
				answer.Did = "there is another namespace with its name"
				return nil
			}
			answer.Answer, answer.Did = store.RepairDone, recovered
			if err := t.Run(ctx, &pg.Statement{Text: raiseNamespaces, Args: []any{int32(id)}}); err != nil {
				return err
			}
			op, detail := r.Entry(f, recovered)
			return s.settings.Record(ctx, t, op, store.RepairAction, []string{f.Target()}, []string{detail})
		})
	})
	return answer, err
}
