package jobs

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// archive ends a job: it leaves the live table in the transaction that ends it.
func (t *Transition) archive(s *subject, e job.End) error {
	if forgotten(&e) {
		if t.dropped += s.logs; t.dropped > store.DropLines {
			return t.archiveUntilPurge(s, e)
		}
	}
	if err := t.remember(ofOne, &e).Blob(s.ID[:]).Exec(); err != nil {
		return err
	}
	if s.logs > 0 && forgotten(&e) {
		if err := t.dropLogs(s.ID); err != nil {
			return err
		}
	}
	if err := t.dropLive(s.ID); err != nil {
		return err
	}
	return t.releaseUnique(s)
}

// archiveUntilPurge ends a job that is not kept and has said too much for one
// transaction: its time in the archive is over at once, and the purge removes it
// with its lines in rounds. Its tombstone outlives that, as of any that is not kept.
func (t *Transition) archiveUntilPurge(s *subject, e job.End) error {
	if err := t.remember(ofOne, &e).Blob(s.ID[:]).Exec(); err != nil {
		return err
	}
	e.Keep = job.Keep{Done: time.Microsecond, Dead: time.Microsecond, Cancelled: time.Microsecond}
	if err := t.remember(ofOne, &e).Blob(s.ID[:]).Exec(); err != nil {
		return err
	}
	if err := t.dropLive(s.ID); err != nil {
		return err
	}
	return t.releaseUnique(s)
}

// forgotten reports whether the archive does not keep a job that ends so.
func forgotten(e *job.End) bool { return e.Keep.WithDefaults().For(e.To) < 0 }

// remember starts the statement that leaves behind what stays of jobs that end:
// their rows in the archive or, where it keeps nothing, a tombstone that still
// stops a resend. The caller binds which jobs are meant.
func (t *Transition) remember(of remembering, e *job.End) *lite.Query {
	keep := e.Keep.WithDefaults().For(e.To)
	if keep < 0 {
		return t.Query(of.tombstoned).Int(lite.Later(t.Now, job.KeepTombstone)).Int(t.Namespace)
	}
	q := t.Query(of.archived)
	f := final{to: e.To, reason: e.Reason, result: e.Result, finished: t.Now, expires: lite.Later(t.Now, keep)}
	for _, c := range ofEnd {
		c.final(q, f)
	}
	return q.Int(t.Namespace)
}

// remembering is one choice of jobs, in both ways of remembering them.
type remembering struct{ archived, tombstoned string }

// What a job takes along into the archive, one without ties, and what its end adds
// there.
var (
	along = choose(func(c *column) bool { return c.is(goesAlong) })
	plain = choose(func(c *column) bool { return c.is(goesAlong) && !c.is(isTied) })
	ofEnd = choose(func(c *column) bool { return c.final != nil })
)

// What archives jobs.
//   - A primary key for each job that is meant.
//   - REPLACE, because a copy that should not be there must not stop the end of a job.
//   - A group fails over it, and then each is ended by itself: what can be undone as a
//     statement is written to a file of its own meanwhile.
var copied, copiedPlain, copiedGroup = copies("REPLACE", along), copies("REPLACE", plain), copies("FAIL", plain)

func copies(or string, list choice) string {
	return `INSERT OR ` + or + ` INTO pawl_job_archive (` + list.names() + `, ` + ofEnd.names() + `)
	SELECT ` + list.names() + `, ` + ofEnd.parameters() + `
	FROM pawl_job
	WHERE namespace = ? AND `
}

// What leaves only tombstones.
//   - By the same primary keys.
const tombstoned = `INSERT OR REPLACE INTO pawl_tombstone (namespace, id, expires)
	SELECT namespace, id, ?
	FROM pawl_job
	WHERE namespace = ? AND `

const (
	one = "id = ?"
	// The fence (P2), and what ends without further ado: nothing is beside it.
	ownedOne   = "id = ? AND run = ? AND worker = ? AND state = 3 AND ties = 0"
	ownedGroup = `(id, run) IN (VALUES
			(?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?),
			(?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?))
		AND worker = ? AND state = 3 AND ties = 0`
)

var (
	ofOne        = remembering{copied + one, tombstoned + one}
	ofOwned      = remembering{copiedPlain + ownedOne, tombstoned + ownedOne}
	ofOwnedGroup = remembering{copiedGroup + ownedGroup, tombstoned + ownedGroup}
)

// What removes a job from a table, by the primary key of each.
const (
	deleteLive = `DELETE FROM pawl_job
	WHERE namespace = ? AND id = ?`

	deleteArchived = `DELETE FROM pawl_job_archive
	WHERE namespace = ? AND id = ?`

	deleteLogs = `DELETE FROM pawl_job_log
	WHERE namespace = ? AND job = ?`
)

func (t *Transition) dropLive(id job.ID) error     { return t.On(deleteLive).Blob(id[:]).Exec() }
func (t *Transition) dropArchived(id job.ID) error { return t.On(deleteArchived).Blob(id[:]).Exec() }
func (t *Transition) dropLogs(id job.ID) error     { return t.On(deleteLogs).Blob(id[:]).Exec() }
