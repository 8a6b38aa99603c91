package workers

import (
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// aloneElsewhere finds another run that is alone and still owns its job.
//   - The primary keys of both tables.
const aloneElsewhere = `SELECT 1
	FROM pawl_alone AS a
	JOIN pawl_job AS j ON j.namespace = a.namespace AND j.id = a.job
	WHERE a.namespace = ? AND j.run = a.run AND j.state = 3 AND j.id <> ?`

const takeAlone = `INSERT OR REPLACE INTO pawl_alone (namespace, job, run)
	VALUES (?, ?, ?)`

// Alone asks whether a run may be the one for which its worker empties itself.
func Alone(t *lite.Session, run store.RunRef) (bool, error) {
	taken, err := t.On(aloneElsewhere).Blob(run.ID[:]).Found()
	if err != nil || taken {
		return false, err
	}
	return true, t.On(takeAlone).Blob(run.ID[:]).Int(run.Run).Exec()
}
