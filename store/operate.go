package store

import (
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
)

// What operators' verbs answer is one rule on every store. live is the job where
// it is live, ended its final state where it is archived, 0 where it is not.

// CancelAnswer is Changed for a job that is to be ended, Asked for one that is to
// be asked to stop.
func CancelAnswer(live *job.Subject, ended job.State) Change {
	switch {
	case live == nil:
		return goneAnswer(ended)
	case live.State == job.Running:
		return Asked
	case !job.CanMove(live.State, job.Cancelled):
		return Active
	}
	return Changed
}

// DeleteAnswer is Changed for a job that is to be removed, Asked for one that is
// to be asked to stop.
func DeleteAnswer(live *job.Subject, ended job.State) Change {
	switch {
	case live == nil && ended == 0:
		return NotFound
	case live != nil && live.State == job.Running:
		return Asked
	}
	return Changed
}

// Retrying is how a job is made ready again.
type Retrying uint8

// The ways of a retry.
const (
	RetryDue    Retrying = iota + 1 // it is scheduled: due at once
	RetryParked                     // it is parked: it waits again, with a fresh attempt budget
	RetryEnded                      // it died or was cancelled: it comes back from the archive if its unique key is free
)

func (r Retrying) String() string {
	switch r {
	case RetryDue:
		return "due at once"
	case RetryParked:
		return "no longer parked"
	case RetryEnded:
		return "back from the archive"
	}
	return fmt.Sprintf("retrying(%d)", uint8(r))
}

// RetryAnswer is Changed for a job that is to be made ready, and says how.
func RetryAnswer(live *job.Subject, ended job.State, now time.Time) (Change, Retrying) {
	switch {
	case live == nil && (ended == job.Dead || ended == job.Cancelled):
		return Changed, RetryEnded
	case live == nil:
		return goneAnswer(ended), 0
	case live.State == job.Waiting && live.Due.After(now):
		return Changed, RetryDue
	case live.State == job.Suspended && live.Wait == job.Parked:
		return Changed, RetryParked
	}
	return Active, 0
}

// goneAnswer is for a job that is not live.
func goneAnswer(ended job.State) Change {
	if ended == 0 {
		return NotFound
	}
	return Ended
}

// Add counts the end of a run whose worker is lost.
func (r *RescueReply) Add(m *job.Move) {
	switch m.To {
	case job.Dead:
		r.Dead++
		r.Deaths = AddDeaths(r.Deaths, death(m))
	case job.Cancelled:
		r.Cancelled++
	default:
		r.Waiting++
	}
}

// Add counts the end of a job that is past its deadline.
func (e *ExpireReply) Add(m *job.Move) {
	if m.To != job.Dead {
		e.Cancelled++
		return
	}
	e.Dead++
	e.Deaths = AddDeaths(e.Deaths, death(m))
}

// death names the job of a move as one that died.
func death(m *job.Move) Death {
	s := m.Of
	return Death{ID: s.ID, Kind: s.Kind, Queue: s.Queue, Run: s.Run, Attempt: s.Used + 1, MaxAttempts: s.MaxAttempts, Reason: m.Reason}
}
