package sqlite

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/sqlite/internal/intents"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/metrics"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
)

// checkRules are those of all rooms.
var checkRules = slices.Concat(jobs.CheckRules, intents.CheckRules)

// Check looks for broken rules (P6). Each stretch of a table is read in a
// snapshot of its own, so that a check of a large store holds no one up; what
// looks broken is read again before it is reported.
func (s *Store) Check(ctx context.Context, c store.Check) (store.CheckReport, error) {
	grace := cmp.Or(c.Grace, time.Minute).Microseconds()
	step := cmp.Or(c.Step, 10_000)
	var report store.CheckReport
	for _, listed := range table.InNamespace(tables) {
		for last, more := int64(math.MinInt64), true; more; {
			var faults []store.Fault
			err := s.read(ctx, func(c *lite.Snapshot) (err error) {
				faults, last, more, err = jobs.Strays(c, &listed, last, step)
				return err
			})
			if err != nil {
				return store.CheckReport{}, err
			}
			report.Faults = append(report.Faults, faults...)
		}
	}
	for _, w := range checkRules {
		last := []byte{}
		for last != nil {
			var findings []lite.Finding
			var looked int64
			err := s.read(ctx, func(c *lite.Snapshot) (err error) {
				findings = nil
				after := last
				if last, looked, err = w.Stretch(c, after, step); err != nil || last == nil {
					return err
				}
				for _, r := range w.Rules {
					found, err := r.Find(c, after, last, c.Clock.Now(), grace)
					if err != nil {
						return err
					}
					findings = append(findings, found...)
				}
				return nil
			})
			if err != nil {
				return store.CheckReport{}, err
			}
			switch w.Table {
			case "pawl_job":
				report.Live += looked
			case "pawl_job_archive":
				report.Archived += looked
			}
			if len(findings) == 0 {
				continue
			}
			faults, err := view(ctx, s, func(c *lite.Snapshot) ([]store.Fault, error) { return lite.Confirm(c, findings, grace) })
			if err != nil {
				return store.CheckReport{}, err
			}
			report.Faults = append(report.Faults, faults...)
		}
	}
	faults, err := view(ctx, s, settings.Check)
	if err != nil {
		return store.CheckReport{}, err
	}
	report.Faults = append(report.Faults, faults...)
	faults, err = metrics.Check(step, func(look func(*lite.Snapshot) error) error { return s.read(ctx, look) })
	if err != nil {
		return store.CheckReport{}, err
	}
	report.Faults = append(report.Faults, faults...)
	return report, nil
}

// CheckRules lists the names of the rules that Check knows.
func (s *Store) CheckRules() []string {
	names := []string{table.NoNamespace}
	for _, w := range checkRules {
		for _, r := range w.Rules {
			names = append(names, r.Name)
		}
	}
	for _, r := range slices.Concat(settings.CheckRules, metrics.CheckRules) {
		names = append(names, r.Name)
	}
	return names
}
