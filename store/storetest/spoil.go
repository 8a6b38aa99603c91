package storetest

import (
	"context"
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Part is a part of a stored row that can be made unreadable.
type Part string

// The parts. What is put there is the store's choice: nothing that it writes
// itself, and that its schema allows.
const (
	Failures         Part = "failures"          // of a live job
	ArchivedFailures Part = "archived failures" // of a job that has ended
	Tags             Part = "tags"              // of a live job
	Capabilities     Part = "capabilities"      // of a live job
	State            Part = "state"             // of a live job: one that no build knows
	Due              Part = "due"               // of a live job: the end of time
	Offer            Part = "offer"             // of a worker
	WorkerQueues     Part = "queues"            // of a worker
	Totals           Part = "totals"            // of a worker
)

// Spoiler is an opener of the tests whose store's rows can be damaged behind its
// back, as a disk, a newer build or a person with SQL would.
type Spoiler interface {
	store.Opener
	// Spoil damages a part of the row whose id is given: a job.ID or a job.WorkerID.
	Spoil(ctx context.Context, s store.Store, part Part, id any) error
	// Words are how the store writes the damage of the suite.
	Words() Words
}

// SpoilBySQL damages rows with one statement for each part, which takes the id.
func SpoilBySQL(ctx context.Context, s store.Store, statements map[Part]string, part Part, id any) error {
	switch v := id.(type) {
	case job.ID:
		id = v[:]
	case job.WorkerID:
		id = int64(v)
	}
	tx, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	n, err := tx.Exec(ctx, statements[part], id)
	if err == nil && n != 1 {
		err = fmt.Errorf("%d rows were damaged, want 1", n)
	}
	if err != nil {
		_ = tx.Rollback(ctx)
		return err
	}
	return tx.Commit(ctx)
}

// spoil damages a part of each job.
func (d *database) spoil(part Part, ids ...job.ID) {
	d.Helper()
	if d.spoilt == nil {
		d.spoilt = map[job.ID]bool{}
	}
	for _, id := range ids {
		d.spoilt[id] = true
		d.damage(part, id)
	}
}

// spoilWorker damages a part of a worker.
func (d *database) spoilWorker(part Part, w *employee) {
	d.Helper()
	d.damage(part, w.id)
}

func (d *database) damage(part Part, id any) {
	d.Helper()
	if err := d.opener.(Spoiler).Spoil(d.ctx, d.Store, part, id); err != nil {
		d.Fatalf("damage the %s of %v: %v", part, id, err)
	}
}
