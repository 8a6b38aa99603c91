package metric

import "github.com/pawlwork/pawl/job"

// CountOf is what a run that ended so is counted as.
func CountOf(o job.OutcomeKind, to job.State) Count {
	switch to {
	case job.Done:
		return Done
	case job.Dead:
		return Dead
	case job.Cancelled:
		return Cancelled
	case job.Suspended:
		return Parked
	}
	switch o {
	case job.Failed:
		return Failed
	case job.Snoozed:
		return Snoozed
	case job.Throttled:
		return Throttled
	}
	return Released
}
