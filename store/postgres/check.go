package postgres

import (
	"context"
	"slices"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/check"
	"github.com/pawlwork/pawl/store/postgres/internal/groups"
	"github.com/pawlwork/pawl/store/postgres/internal/intents"
	"github.com/pawlwork/pawl/store/postgres/internal/jobs"
	"github.com/pawlwork/pawl/store/postgres/internal/limits"
	"github.com/pawlwork/pawl/store/postgres/internal/metrics"
	"github.com/pawlwork/pawl/store/postgres/internal/operations"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
	"github.com/pawlwork/pawl/store/postgres/internal/schedules"
	"github.com/pawlwork/pawl/store/postgres/internal/settings"
	"github.com/pawlwork/pawl/store/postgres/internal/workers"
)

// checkRules are those of all rooms; the room of jobs mends some of its own.
func checkRules(r *jobs.Room, l *limits.Room, m *metrics.Room) []pg.TableRules {
	return slices.Concat(jobs.CheckRules(r), intents.CheckRules, settings.CheckRules, workers.CheckRules, operations.CheckRules,
		schedules.CheckRules, limits.CheckRules(l), metrics.CheckRules(m), groups.CheckRules)
}

// Check looks for broken rules (P6) in short snapshots and changes nothing.
func (s *Store) Check(ctx context.Context, c store.Check) (store.CheckReport, error) {
	if err := s.pg.Enter(ctx); err != nil {
		return store.CheckReport{}, err
	}
	defer s.pg.Leave()
	parts := []check.Part{{Name: "namespaces", Look: func(
		ctx context.Context, c *store.Check, _ []byte, r *store.CheckReport,
	) ([]byte, int64, error) {
		faults, err := s.jobs.CheckNamespaces(ctx, c.Step)
		r.AddFault(faults...)
		return nil, 0, err
	}}}
	for _, w := range checkRules(s.jobs, s.limits, s.metrics) {
		parts = append(parts, check.Part{Name: w.Table, Look: func(
			ctx context.Context, c *store.Check, after []byte, r *store.CheckReport,
		) ([]byte, int64, error) {
			faults, last, rows, err := s.pg.Look(ctx, &w, c, after)
			r.AddFault(faults...)
			switch w.Table {
			case "job":
				r.Live += rows
			case "job_archive":
				r.Archived += rows
			}
			return last, rows, err
		}})
	}
	if c.Totals {
		parts = append(parts, check.Part{Name: "totals", Look: func(
			ctx context.Context, c *store.Check, after []byte, r *store.CheckReport,
		) ([]byte, int64, error) {
			counts, last, rows, err := s.lists.Totals(ctx, after, c.Step)
			for _, n := range counts {
				r.AddTotal(n.Queue, n.State, n.Jobs)
			}
			return last, rows, err
		}})
	}
	return check.Walk(ctx, c, parts)
}

// CheckRules lists the names of the rules that Check knows.
func (s *Store) CheckRules() (names []string) {
	for _, r := range s.Rules() {
		names = append(names, r.Name)
	}
	return names
}
