package webui

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// fire is one due time, and the job of it.
type fire struct {
	Due   time.Time
	Job   *pawl.JobRecord // nil: it was skipped, or the job is not kept any more
	State string          // of its tick: done, retried, dead, live or none
	Took  time.Duration
}

// fires reads the jobs of the last due times of all rows, by one question: the id of such a job is made of name and due time.
func (v *view) fires(rows []cronRow) error {
	type place struct{ row, fire int }
	var ids []pawl.ID
	at := map[pawl.ID]place{}
	for i := range rows {
		r := &rows[i]
		n := int(min(r.ScheduleStatus.Fires+r.Skips, fireTicks))
		for j, due := range cronPast(&r.Holds, r.Last, n) {
			id := job.ScheduledID(r.Name, due)
			at[id] = place{i, j}
			ids = append(ids, id)
			r.Fires = append(r.Fires, fire{Due: due, State: "none"})
		}
	}
	if len(ids) == 0 {
		return nil
	}
	key := "fires " + ids[0].String() + ids[len(ids)-1].String() + fmt.Sprint(len(ids))
	jobs, err := cached(v, key, 2*time.Second, func(ctx context.Context) ([]pawl.JobRecord, error) { return v.app.e.Store().Get(ctx, ids) })
	if err != nil {
		return err
	}
	for i := range jobs {
		j := &jobs[i]
		if p, ok := at[j.ID]; ok {
			rows[p.row].Fires[p.fire].of(j)
		}
	}
	for i := range rows {
		rows[i].Took = tookMost(rows[i].Fires)
	}
	return nil
}

// of is what became of the job.
func (f *fire) of(j *pawl.JobRecord) {
	f.Job = j
	if !j.Finished.IsZero() && !j.Started.IsZero() {
		f.Took = j.Finished.Sub(j.Started)
	}
	switch {
	case j.State == job.Dead:
		f.State = "dead"
	case j.State == job.Cancelled:
		f.State = "cancelled"
	case !j.Failures.None():
		f.State = "retried"
	case j.State == job.Done:
		f.State = "done"
	default:
		f.State = "live"
	}
}

// Says is a fire in words, for who cannot see its tick.
func (f *fire) Says() string {
	words := map[string]string{
		"done": "done", "retried": "failed at first", "dead": "dead", "cancelled": "cancelled", "live": "not ended yet",
		"none": "skipped, or its job is not kept any more",
	}[f.State]
	if f.Took > 0 {
		words += ", took " + duration(f.Took)
	}
	return f.Due.UTC().Format("2 Jan 15:04:05") + " UTC: " + words
}

// Waited is from its due time until its last run began.
func (f *fire) Waited() time.Duration {
	if f.Job == nil || f.Job.Started.IsZero() || f.Job.Used > 1 || f.Job.Started.Before(f.Due) {
		return 0
	}
	return f.Job.Started.Sub(f.Due)
}

// Attempts are those that it took, or has begun.
func (f *fire) Attempts() int {
	switch {
	case f.Job == nil:
		return 0
	case f.Job.State == job.Done, f.Job.State == job.Running:
		return f.Job.Attempt()
	}
	return f.Job.Used
}

// Error is of the last failure.
func (f *fire) Error() string {
	if f.Job == nil {
		return ""
	}
	list := f.Job.Failures.List()
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1].Message
}

// tookMost is what 95 of 100 runs did not exceed.
func tookMost(fires []fire) time.Duration {
	var list []time.Duration
	for i := range fires {
		if fires[i].Took > 0 {
			list = append(list, fires[i].Took)
		}
	}
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[(len(list)*95+99)/100-1]
}
