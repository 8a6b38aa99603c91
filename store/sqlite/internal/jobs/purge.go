package jobs

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
	"github.com/pawlwork/pawl/store/sqlite/internal/workers"
)

// What is removed when its time is over.
//   - pawl_tombstone_expires and pawl_job_unique_until find the oldest.
//   - Primary keys remove them.
var purges = []string{
	`DELETE FROM pawl_tombstone
	WHERE namespace = ?1 AND id IN (
		SELECT id
		FROM pawl_tombstone
		WHERE namespace = ?1 AND expires <= ?2
		ORDER BY expires
		LIMIT ?3)`,
	`DELETE FROM pawl_job_unique
	WHERE namespace = ?1 AND hash IN (
		SELECT hash
		FROM pawl_job_unique
		WHERE namespace = ?1 AND until IS NOT NULL AND until <= ?2
		ORDER BY until
		LIMIT ?3)`,
}

// lookDue says whether there is something to expire, and to purge.
//   - pawl_job_deadline, and for each table the index of its expiry: a seek for the first.
const lookDue = `SELECT EXISTS (
		SELECT 1
		FROM pawl_job INDEXED BY pawl_job_deadline
		WHERE namespace = ?1 AND deadline IS NOT NULL AND deadline <= ?2 AND state IN (1, 2, 4)
	), EXISTS (
		SELECT 1
		FROM pawl_job_archive
		WHERE namespace = ?1 AND expires <= ?2
	) OR EXISTS (
		SELECT 1
		FROM pawl_tombstone
		WHERE namespace = ?1 AND expires <= ?2
	) OR EXISTS (
		SELECT 1
		FROM pawl_job_unique
		WHERE namespace = ?1 AND until IS NOT NULL AND until <= ?2
	) OR EXISTS (
		` + settings.Expired + `
	) OR EXISTS (
		` + settings.VersionExpired + `
	) OR EXISTS (
		` + workers.Idle + `
	)`

// Due says which rounds have something to do.
func Due(c *lite.Snapshot) (due store.Due, err error) {
	q := c.On(lookDue).Int(c.Clock.Now())
	if q.Step() {
		due = store.Due{Expire: q.ColBool(0), Purge: q.ColBool(1)}
	}
	return due, q.Done()
}

// Purge removes up to limit rows of each table of jobs whose time is over, by
// index and in one short transaction, so that it never delays a claim for long.
func (t *Transition) Purge(limit int) (int, error) {
	purged, err := t.purgeArchive(limit)
	if err != nil {
		return 0, err
	}
	for _, text := range purges {
		n, err := t.On(text).Int(t.Now).Int(int64(limit)).Changes()
		if err != nil {
			return 0, err
		}
		purged += int(n)
	}
	return purged, nil
}

// expiredJobs lists the archived jobs whose time is over.
//   - pawl_job_archive_expires, in its order.
const expiredJobs = `SELECT id, logs
	FROM pawl_job_archive
	WHERE namespace = ? AND expires <= ?
	ORDER BY expires, id
	LIMIT ?`

// purgeArchive removes archived jobs whose time is over, and answers how many. Log lines go before their job, and no more than the bound
// in one transaction: a job with more of them loses its newest lines, keeps a row
// that counts the rest, and goes when they have. Then it answers at least limit,
// so that its caller comes again.
func (t *Transition) purgeArchive(limit int) (int, error) {
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
	SET logs = ?
	WHERE namespace = ? AND id = ?`).Int(keep).Int(t.Namespace).Blob(id[:]).Exec()
}
