package jobs

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/table"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
	"github.com/pawlwork/pawl/store/sqlite/internal/workers"
)

// LookDue is the text that says whether there is something to expire, and to purge:
// of the tables that are simply purged, and of the others.
//   - pawl_job_deadline, and for each table the index of its expiry: a seek for the first.
func LookDue(expiring []table.Table) string {
	text := `SELECT EXISTS (
		SELECT 1
		FROM pawl_job INDEXED BY pawl_job_deadline
		WHERE namespace = ?1 AND deadline IS NOT NULL AND deadline <= ?2 AND state IN (1, 2, 4)
	), EXISTS (
		SELECT 1
		FROM pawl_job_archive
		WHERE namespace = ?1 AND expires <= ?2
	) OR EXISTS (
		` + settings.VersionExpired + `
	) OR EXISTS (
		` + workers.Idle + `
	)`
	for _, t := range expiring {
		text += " OR EXISTS (\n\t\t" + lite.ExpiredText(&t) + "\n\t)"
	}
	return text
}

// Due says which rounds have something to do, by the text of LookDue.
func Due(c *lite.Snapshot, look string) (due store.Due, err error) {
	q := c.On(look).Int(c.Clock.Now())
	if q.Step() {
		due = store.Due{Expire: q.ColBool(0), Purge: q.ColBool(1)}
	}
	return due, q.Done()
}

// expiredJobs lists the archived jobs whose time is over.
//   - pawl_job_archive_expires, in its order.
const expiredJobs = `SELECT id, logs
	FROM pawl_job_archive
	WHERE namespace = ? AND expires <= ?
	ORDER BY expires, id
	LIMIT ?`

// PurgeArchive removes up to limit archived jobs whose time is over, and answers how
// many. Log lines go before their job, and no more than the bound in one
// transaction: a job with more of them loses its newest lines, keeps a row that
// counts the rest, and goes when they have. Then it answers at least limit, so that
// its caller comes again.
func (t *Transition) PurgeArchive(limit int) (int, error) {
	type late struct {
		id   job.ID
		logs int64
	}
	var list []late
	q := t.On(expiredJobs).Int(t.Now).Int(int64(limit))
	for q.Step() {
		list = append(list, late{q.ColID(0), q.ColInt(1)})
	}
	if err := q.Done(); err != nil {
		return 0, err
	}
	lines := int64(limit) * store.PurgeLines
	for _, j := range list {
		if j.logs > lines {
			return limit, t.shortenLogs("pawl_job_archive", j.id, j.logs-lines)
		}
		if err := t.dropArchived(j.id); err != nil {
			return 0, err
		}
		if j.logs == 0 {
			continue
		}
		if err := t.dropLogs(j.id); err != nil {
			return 0, err
		}
		lines -= j.logs
	}
	return len(list), nil
}

// deleteLinesAfter removes the newest lines of a job, by primary key.
const deleteLinesAfter = `DELETE FROM pawl_job_log
	WHERE namespace = ? AND job = ? AND line > ?`

// shortenLogs keeps the first lines of a job in one of its tables.
func (t *Transition) shortenLogs(table string, id job.ID, keep int64) error {
	if err := t.On(deleteLinesAfter).Blob(id[:]).Int(keep).Exec(); err != nil {
		return err
	}
	return t.Query(`UPDATE ` + table + `
	SET logs = ?1, ties = CASE WHEN ?1 > 0 THEN ties ELSE ties & ~2 END
	WHERE namespace = ?2 AND id = ?3`).Int(keep).Int(t.Namespace).Blob(id[:]).Exec()
}
