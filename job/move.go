package job

import (
	"fmt"
	"time"
)

// Subject is what a move needs to know of the live job that it moves. Whoever
// reads it has locked the row.
type Subject struct {
	ID          ID
	State       State
	Run         int64
	Worker      WorkerID // of its run; 0 for none
	Begun       bool     // the handler of that run
	CancelAsked bool
	Due         time.Time
	Priority    int
	Used        int
	MaxAttempts int
	Lost        int
	Queue       string
	Kind        string
	Wait        Wait
	Ties        Ties
	Failures    []byte // as stored
}

// Move is one way out of a state, decided: what a store has to write.
type Move struct {
	Of *Subject
	End
	// NewFailures is the whole list after the move; nil when it does not change.
	NewFailures []byte
}

// NewTies are those that the move adds to the job's own.
func (m *Move) NewTies() Ties {
	if len(m.Logs) > 0 {
		return TieLogs
	}
	return 0
}

// MoveOf lets a job end so. The time of a failure is the store's.
func MoveOf(s *Subject, e End, now time.Time) (Move, error) {
	if !CanMove(s.State, e.To) {
		return Move{}, fmt.Errorf("pawl: job %s cannot move from %s to %s", s.ID, s.State, e.To)
	}
	m := Move{Of: s, End: e}
	if e.Failure != nil {
		m.NewFailures = AppendFailure(s.Failures, now, e.Failure)
	}
	return m, nil
}

// Settle is the one judgement left to the store, under the row's lock: a job
// that was asked to cancel does not go back to waiting, whatever its run said.
// A run that was done before the request is still done: the truth wins.
func Settle(e End, cancelAsked bool) End {
	if cancelAsked && (e.To == Waiting || e.To == Suspended) {
		e.To = Cancelled
		e.Wait, e.Reason = NoWait, "cancelled"
	}
	return e
}

// Rescue says how a run ends whose worker is lost. Only a run whose handler
// had begun counts as lost, and no attempt is burned.
func Rescue(s *Subject, maxLost int, keep Keep) End {
	e := End{ID: s.ID, Run: s.Run, To: Waiting, Rescue: true, Keep: keep}
	if s.Begun {
		f := NewFailure(s.Used+1, s.Run, "the worker was lost while it ran the job", "")
		f.Worker = s.Worker
		e.Failure, e.Lose = f.Body(), true
		if s.Lost+1 >= maxLost {
			e.To = Dead
			e.Reason = "lost with its worker " + times(s.Lost+1)
		}
	}
	return Settle(e, s.CancelAsked)
}

// GiveBack says how a run ends that nobody holds: the answer of its claim was
// lost on the way.
func GiveBack(s *Subject, keep Keep) End {
	return Settle(End{ID: s.ID, Run: s.Run, To: Waiting, Keep: keep}, s.CancelAsked)
}

// Expire says how a job ends that does not run when its deadline passes.
func Expire(s *Subject, keep Keep) End {
	to := Dead
	if !CanMove(s.State, to) {
		to = Cancelled
	}
	return End{ID: s.ID, To: to, Reason: "its deadline passed", Keep: keep}
}

// Cancel says how a job ends that an operator cancels while it does not run.
func Cancel(s *Subject, keep Keep) End {
	return End{ID: s.ID, To: Cancelled, Reason: "cancelled", Keep: keep}
}
