package sqlite

import (
	"context"
	"math"
	"slices"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/check"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/sqlite/internal/groups"
	"github.com/pawlwork/pawl/store/sqlite/internal/intents"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/limits"
	"github.com/pawlwork/pawl/store/sqlite/internal/lists"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/metrics"
	"github.com/pawlwork/pawl/store/sqlite/internal/operations"
	"github.com/pawlwork/pawl/store/sqlite/internal/schedules"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
	"github.com/pawlwork/pawl/store/sqlite/internal/workers"
)

// checkRules are those of all rooms; r is what their fixes go by.
func checkRules(r jobs.Rules) []lite.TableRules {
	return slices.Concat(jobs.CheckRules(r), intents.CheckRules, settings.CheckRules, workers.CheckRules,
		operations.CheckRules, schedules.CheckRules, limits.CheckRules, metrics.CheckRules, groups.CheckRules)
}

// Check looks for broken rules (P6). Each stretch of a table is read in a
// snapshot of its own, so that a check of a large store holds no one up; what
// looks broken is read again before it is reported.
func (s *Store) Check(ctx context.Context, c store.Check) (store.CheckReport, error) {
	parts := []check.Part{{Name: "namespaces", Look: s.checkNamespaces}}
	for _, w := range checkRules(s.rules) {
		parts = append(parts, check.Part{Name: w.Table, Look: func(
			ctx context.Context, c *store.Check, after []byte, r *store.CheckReport,
		) ([]byte, int64, error) {
			return s.checkTable(ctx, w, c, after, r)
		}})
	}
	if c.Totals {
		parts = append(parts, check.Part{Name: "totals", Look: func(
			ctx context.Context, c *store.Check, after []byte, r *store.CheckReport,
		) (last []byte, rows int64, err error) {
			var counts []store.QueueCount
			err = s.read(ctx, func(snapshot *lite.Snapshot) (err error) {
				counts, last, rows, err = lists.Totals(snapshot, after, c.Step)
				return err
			})
			for _, n := range counts {
				r.AddTotal(n.Queue, n.State, n.Jobs)
			}
			return last, rows, err
		}})
	}
	return check.Walk(ctx, c, parts)
}

// checkTable looks at one stretch of a table.
func (s *Store) checkTable(
	ctx context.Context, w lite.TableRules, c *store.Check, after []byte, r *store.CheckReport,
) (last []byte, looked int64, err error) {
	if w.Own != nil {
		faults, err := w.LookOwn(c.Step, func(look func(*lite.Snapshot) error) error { return s.read(ctx, look) })
		r.AddFault(faults...)
		return nil, 0, err
	}
	var findings []lite.Finding
	grace := c.Grace.Microseconds()
	err = s.read(ctx, func(snapshot *lite.Snapshot) (err error) {
		findings, last, looked = nil, nil, 0
		if w.Key != "" {
			if last, looked, err = w.Stretch(snapshot, after, c.Step); err != nil || last == nil {
				return err
			}
		}
		for _, rule := range w.Rules {
			found, err := w.Find(snapshot, rule, after, last, snapshot.Clock.Now(), grace)
			if err != nil {
				return err
			}
			findings = append(findings, found...)
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	switch w.Table {
	case "pawl_job":
		r.Live += looked
	case "pawl_job_archive":
		r.Archived += looked
	}
	if len(findings) == 0 {
		return last, looked, nil
	}
	faults, err := view(ctx, s, func(c *lite.Snapshot) ([]store.Fault, error) { return w.Confirm(c, findings, grace) })
	r.AddFault(faults...)
	return last, looked, err
}

// checkNamespaces looks for rows of no namespace, in all tables.
func (s *Store) checkNamespaces(ctx context.Context, c *store.Check, _ []byte, r *store.CheckReport) ([]byte, int64, error) {
	for _, listed := range table.InNamespace(tables) {
		for last, more := int64(math.MinInt64), true; more; {
			var faults []store.Fault
			err := s.read(ctx, func(snapshot *lite.Snapshot) (err error) {
				faults, last, more, err = jobs.Strays(snapshot, &listed, last, c.Step)
				return err
			})
			if err != nil {
				return nil, 0, err
			}
			r.AddFault(faults...)
		}
	}
	return nil, 0, nil
}

// CheckRules lists the names of the rules that Check knows.
func (s *Store) CheckRules() (names []string) {
	for _, r := range s.Rules() {
		names = append(names, r.Name)
	}
	return append(names, limits.CheckRule)
}
