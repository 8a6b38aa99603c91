package jobs

import (
	"errors"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
	"github.com/pawlwork/pawl/store/sqlite/internal/workers"
)

// beginning is a draft that begins in the commit that accepts it (J34).
type beginning struct {
	asked *job.HandOver
	at    int64
}

// begins reports whether a draft that asks for it begins in this commit: its worker is
// not lost, the settings are those by which it may, and its queue does not cool down.
// It never does in a transaction of the user's: who knows when that commits?
func (t *Transition) begins(d *job.Draft) (bool, error) {
	if d.HandOver == nil || !t.Own {
		return false, nil
	}
	_, revision, err := workers.Claimant(&t.Session, d.HandOver.Worker)
	switch {
	case errors.Is(err, job.ErrWorkerLost):
		return false, nil
	case err != nil || revision != d.HandOver.Revision:
		return false, err
	}
	closed, err := settings.IsClosed(&t.Snapshot, d.Queue, t.Now)
	return err == nil && !closed.Is, err
}

// Committed settles the hand-overs of jobs that began in the transaction, which is
// committed.
func (t *Transition) Committed() {
	for _, b := range t.begun {
		b.asked.Settle(job.HandedOver{Started: lite.TimeOf(b.at)})
	}
	t.begun = nil
}
