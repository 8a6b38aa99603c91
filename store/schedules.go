package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Schedules is a store that keeps how far schedules have come, and fires them. What
// they are is declared and set like all else (Control); when one is due next is
// computed by who fires it, from the state it has read.
type Schedules interface {
	// ScheduleStates reads the state of every schedule, in the order of their names,
	// with the store's time and the revision of what is declared and set.
	ScheduleStates(ctx context.Context) (ScheduleStates, error)
	// Fire moves schedules on and accepts the jobs of their due times, in one
	// transaction. A firing that was computed from another state than the present
	// one changes nothing; nor do all of them when the revision is another than
	// given. So a due time is dealt with once, by whichever process comes first, and
	// by what is set at that moment; also when an answer was lost and Fire is called
	// again. An error means that none of them was done.
	Fire(ctx context.Context, revision int64, list []Firing) ([]Fired, error)
	// TriggerSchedule accepts a job beside the due times, with its audit entry.
	TriggerSchedule(ctx context.Context, name string, draft job.Draft, op Operator) (job.Receipt, error)
	// ForgetSchedule removes a state: a schedule of the name begins anew.
	ForgetSchedule(ctx context.Context, name string) error
}

// Bounds of schedules.
const (
	MaxSchedules = 1000 // of a namespace
	MaxFirings   = 100  // of one Fire
	// KeepSchedule is how long the state of a schedule is kept after its last due
	// time, when nobody moves it on: a process that comes back later begins anew.
	KeepSchedule = 30 * 24 * time.Hour
)

// ScheduleState is how far a schedule has come.
type ScheduleState struct {
	Name       string
	Cron, Zone string    // that Next is computed from
	Anchor     time.Time // since when it has these: @every counts from here
	Next       time.Time // when it is due; zero while it is paused
	Last       time.Time // the newest due time that was fired or skipped; zero: none yet
	LastJob    job.ID    // of it
	Fires      int64     // jobs that were accepted for due times
	Skips      int64     // due times at which a job of the schedule was live
	Revision   int64     // by which it was moved last
}

// ScheduleStates are all of a namespace.
type ScheduleStates struct {
	Now      time.Time
	Revision int64
	List     []ScheduleState
}

// Firing moves one schedule on.
type Firing struct {
	Name string
	New  bool      // there was no state
	Was  time.Time // else its Next, zero where it had none

	Cron, Zone   string
	Anchor, Next time.Time
	Last         time.Time // the newest due time that is dealt with; zero: none is
	// Jobs are those of the due times. Their ids come of these, so each may have been
	// accepted before; it is looked for whether it says Resend or not.
	Jobs []job.Draft
}

// Drafts are the jobs as they are accepted: as resends.
func (f *Firing) Drafts() []job.Draft {
	list := slices.Clone(f.Jobs)
	for i := range list {
		list[i].Resend = true
	}
	return list
}

// Fired is what became of a firing.
type Fired struct {
	Moved    bool          // false: the state or the revision is another
	Receipts []job.Receipt // of its jobs; a duplicate was skipped
}

// CheckFirings refuses too many of them, and what no state can hold.
func CheckFirings(list []Firing) error {
	if len(list) > MaxFirings {
		return job.Invalid("firings", fmt.Sprintf("%d firings", len(list)), fmt.Sprintf("must be at most %d", MaxFirings))
	}
	for i := range list {
		f := &list[i]
		if err := job.CheckName("schedule", f.Name); err != nil {
			return err
		}
		if n := len(f.Jobs); n > job.MaxCatchUp {
			return job.Invalid("schedule "+f.Name, fmt.Sprintf("%d jobs", n), fmt.Sprintf("must be at most %d", job.MaxCatchUp))
		}
		if !f.Next.IsZero() && !f.Next.After(f.Last) {
			return job.Invalid("schedule "+f.Name, f.Next, fmt.Sprintf("must be due after %v, which is dealt with", f.Last))
		}
	}
	return nil
}

// Counts are the jobs that were accepted and the due times that were skipped, with
// the newest job.
func (f *Fired) Counts() (fires, skips int64, last job.ID) {
	for _, r := range f.Receipts {
		if last = r.ID; r.Duplicate {
			skips++
		} else {
			fires++
		}
	}
	return fires, skips, last
}

// TriggerAction is what an audit entry calls a trigger.
const TriggerAction = "trigger schedule"
