package webui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// What versions are compared by.
const (
	ratedJobs    = 1000 // the newest that ended in the last hour
	ratedAtLeast = 100  // runs of each version
)

// versionRow is a version of code that runs.
type versionRow struct {
	Version      string
	Workers      int
	Seen         time.Time // when the newest of its workers came
	Ran, Failed  int
	Rated, Worse bool
}

// versions compares those that run side by side. Only then is anything read.
func (v *view) versions(d *workersData) error {
	by := map[string]*versionRow{}
	of := map[pawl.WorkerID]string{}
	for i := range d.Rows {
		w := &d.Rows[i]
		of[w.ID] = w.Worker.Version
		if w.Lost || w.Worker.Version == "" {
			continue
		}
		one := by[w.Worker.Version]
		if one == nil {
			one = &versionRow{Version: w.Worker.Version}
			by[w.Worker.Version] = one
		}
		one.Workers++
		if w.Started.After(one.Seen) {
			one.Seen = w.Started
		}
	}
	for _, one := range by {
		d.Versions = append(d.Versions, *one)
	}
	slices.SortFunc(d.Versions, func(a, b versionRow) int { return cmp.Or(a.Seen.Compare(b.Seen), cmp.Compare(a.Version, b.Version)) })
	if len(d.Versions) < 2 {
		return nil
	}
	ended, err := cached(v, "ended", 30*time.Second, func(ctx context.Context) (pawl.Listed, error) {
		f := pawl.Filter{States: []pawl.State{job.Done, job.Dead}, FinishedAfter: v.Now.Add(-time.Hour)}
		return v.app.e.List(ctx, f, pawl.Page{Limit: ratedJobs})
	})
	if err != nil {
		return err
	}
	rateVersions(d.Versions, ended.Jobs, of)
	switch n := exactly(len(ended.Jobs)); {
	case ended.More:
		d.Compared = "the newest " + plural(n, "job that has ended", "jobs that have ended")
	case n.Jobs > 0:
		d.Compared = plural(n, "job that ended", "jobs that ended") + " in the last hour"
	}
	d.Verdict = verdict(d.Versions)
	return nil
}

// rateVersions counts the runs of each version, and those that failed. A run that succeeded has the worker's version.
func rateVersions(versions []versionRow, jobs []pawl.JobRecord, of map[pawl.WorkerID]string) {
	count := func(version string, failed bool) {
		for i := range versions {
			if versions[i].Version == version {
				versions[i].Ran++
				if failed {
					versions[i].Failed++
				}
			}
		}
	}
	for i := range jobs {
		j := &jobs[i]
		for _, f := range j.Failures.List() {
			if !f.Store {
				count(cmp.Or(f.Version, of[f.Worker]), true)
			}
		}
		if j.State == job.Done {
			count(of[j.Worker], false)
		}
	}
	for i := range versions {
		versions[i].Rated = versions[i].Ran >= ratedAtLeast
	}
}

// verdict says which of two versions fails clearly more often; empty where none does, or where too few have run.
func verdict(versions []versionRow) string {
	var best, worst *versionRow
	share := func(r *versionRow) float64 { return float64(r.Failed) / float64(r.Ran) }
	for i := range versions {
		r := &versions[i]
		if !r.Rated {
			continue
		}
		if best == nil || share(r) < share(best) {
			best = r
		}
		if worst == nil || share(r) > share(worst) {
			worst = r
		}
	}
	if best == nil || best == worst || worst.Failed < 5 {
		return ""
	}
	if best.Failed == 0 {
		worst.Worse = true
		return fmt.Sprintf("%s fails %s of its runs, %s none.", worst.Version, percent(float64(worst.Failed), float64(worst.Ran)), best.Version)
	}
	if times := share(worst) / share(best); times >= 1.5 {
		worst.Worse = true
		return fmt.Sprintf("%s fails %s × as often as %s.", worst.Version, decimal(times), best.Version)
	}
	return ""
}

// Rate is how many of its runs failed.
func (r *versionRow) Rate() string { return percent(float64(r.Failed), float64(r.Ran)) }
