// Package jobs keeps jobs, live and archived, with their unique keys, logs and
// tombstones, and moves them from state to state.
//
// Its verbs are methods of a [Transition]: a session, the writer's own or that
// of a user's transaction, in which jobs move. What only reads takes a snapshot.
package jobs

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// Transition is a session in which jobs move.
type Transition struct {
	lite.Session
	Rules
	Own     bool // it is the store's own, which commits it and calls Committed
	begun   []beginning
	dropped int64   // log lines of jobs that are not kept
	found   subject // of the last look for one: it is read for every end that is not short
}

// Rules are what the engine has said of how jobs end.
type Rules struct {
	Keep    func(queue string) job.Keep
	MaxLost int
	// Followers are what has to happen together with moves.
	Followers []Follower
}

// Follower is what has to happen together with a move of a job that has a tie: the
// release of a flow's nodes, an event. It belongs to a later room, which this one
// does not know. Plain jobs are never shown to it. There is one writer, so it has
// nothing to lock, and does in a user's transaction what it does in any other.
type Follower struct {
	Tie   job.Ties
	Apply func(t *Transition, m *job.Move) error // in the transaction of the move, after it
}

// Continue is the same transaction for another namespace: what bounds a
// transaction goes on.
func (t *Transition) Continue(s lite.Session, r Rules) Transition {
	return Transition{Session: s, Rules: r, Own: t.Own, begun: t.begun, dropped: t.dropped}
}

// Group is how many rows one statement takes where many are alike: it saves the
// start and end of the other statements, a sixth of a claim and finish.
const Group = 20

// GroupOfIDs is the list of ids of such a statement.
const GroupOfIDs = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

// subject is the live row that a move moves.
type subject struct {
	job.Subject
	logs   int64
	hash   []byte // of its unique key
	period int64  // of its unique key, microseconds
}

// live reads the live row of a job.
func (t *Transition) live(id job.ID) (s *subject, err error) {
	return t.oneSubject(t.On(liveSubject).Blob(id[:]))
}

// By primary key.
var liveSubject = "SELECT " + subjectRow.Columns + `
	FROM pawl_job
	WHERE namespace = ? AND id = ?`

// oneSubject reads the row of a statement; nil where there is none. It holds until
// the next one is read.
func (t *Transition) oneSubject(q *lite.Query) (s *subject, err error) {
	if q.Step() {
		s, t.found = &t.found, subject{}
		subjectRow.Read(q, s)
	}
	return s, q.Done()
}

// subjects reads all rows of a statement before any of them is moved: changing
// a table while a statement steps through it would show some rows twice.
func subjects(q *lite.Query) ([]subject, error) {
	var list []subject
	for q.Step() {
		list = append(list, subject{})
		subjectRow.Read(q, &list[len(list)-1])
	}
	return list, q.Done()
}

// of is the job of a row, nil where there is none.
func (s *subject) of() *job.Subject {
	if s == nil {
		return nil
	}
	return &s.Subject
}

// Running is the running jobs of a namespace, by worker. SQLite uses a partial
// index only where its condition is repeated, hence the second look at state.
const Running = `pawl_job INDEXED BY pawl_job_held
	WHERE namespace = ? AND state = 3 AND state <> 2`

// owned reads the row of a run that its worker still owns: the fence (P2).
func (t *Transition) owned(w job.WorkerID, id job.ID, run int64) (*subject, error) {
	return t.oneSubject(t.On(ownedSubject).Blob(id[:]).Int(run).Int(int64(w)))
}

// By primary key.
var ownedSubject = "SELECT " + subjectRow.Columns + `
	FROM pawl_job
	WHERE namespace = ? AND id = ? AND state = 3 AND run = ? AND worker = ?`

// Owns reports whether a run is still its worker's.
func (t *Transition) Owns(w job.WorkerID, run store.RunRef) (bool, error) {
	s, err := t.owned(w, run.ID, run.Run)
	return s != nil, err
}

// By pawl_job_held.
const anyRun = `SELECT 1
	FROM ` + Running + ` AND worker = ?
	LIMIT 1`

// Holds reports whether any job runs on a worker.
func (t *Transition) Holds(w job.WorkerID) (bool, error) {
	return t.On(anyRun).Int(int64(w)).Found()
}

// NextWaitingQueue is the queue behind one that has waiting jobs.
//   - A seek on pawl_job_ready, and one on pawl_job_gated.
const NextWaitingQueue = `SELECT queue
	FROM (
		SELECT (
			SELECT queue
			FROM pawl_job INDEXED BY pawl_job_ready
			WHERE namespace = ?1 AND state = 2 AND gate IS NULL AND queue > ?2
			ORDER BY queue
			LIMIT 1
		) AS queue
		UNION ALL
		SELECT (
			SELECT queue
			FROM pawl_job INDEXED BY pawl_job_gated
			WHERE namespace = ?1 AND state = 2 AND gate IS NOT NULL AND queue > ?2
			ORDER BY queue
			LIMIT 1
		) AS queue
	)
	WHERE queue IS NOT NULL
	ORDER BY queue
	LIMIT 1`
