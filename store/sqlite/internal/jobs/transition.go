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
	*lite.Session
	Rules
	dropped int64 // log lines of jobs that are not kept
}

// Rules are what the engine has said of how jobs end.
type Rules struct {
	Keep    func(queue string) job.Keep
	MaxLost int
}

// NewTransition is one in that session.
func NewTransition(s *lite.Session, r Rules) *Transition { return &Transition{Session: s, Rules: r} }

// Group is how many rows one statement takes where many are alike: it saves the
// start and end of the other statements, a sixth of a claim and finish.
const Group = 20

// GroupOfIDs is the list of ids of such a statement.
const GroupOfIDs = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

// subject is what a move needs to know of the live row it moves.
type subject struct {
	id       job.ID
	state    job.State
	run      int64
	worker   job.WorkerID
	begun    bool
	cancel   bool
	due      int64
	used     int
	lost     int
	logs     int64
	queue    string
	hash     []byte // of its unique key
	period   int64  // of its unique key, microseconds
	failures []byte
	wait     job.Wait
	mortal   mortal
}

// mortal is what is told of a job when it dies by upkeep. Only that reads it.
type mortal struct {
	kind        string
	maxAttempts int
}

// death names the job as one that died.
func (s *subject) death(reason string) store.Death {
	return store.Death{
		ID: s.id, Kind: s.mortal.kind, Queue: s.queue, Run: s.run, Attempt: s.used + 1, MaxAttempts: s.mortal.maxAttempts, Reason: reason,
	}
}

const subjectColumns = "id, state, run, worker, begun, cancel, due, used, lost, logs, queue, unique_hash, unique_period, failures, wait"

// mortalColumns come after those of a subject.
const mortalColumns = ", kind, max_attempts"

func readSubject(q *lite.Query) subject {
	return subject{
		id: q.ColID(0), state: job.State(q.ColInt(1)), run: q.ColInt(2), worker: job.WorkerID(q.ColInt(3)),
		begun: q.ColBool(4), cancel: q.ColBool(5), due: q.ColInt(6), used: int(q.ColInt(7)), lost: int(q.ColInt(8)),
		logs: q.ColInt(9), queue: q.ColText(10), hash: q.ColBlob(11), period: q.ColInt(12), failures: q.ColBlob(13), wait: job.Wait(q.ColInt(14)),
	}
}

// live reads the live row of a job.
func (t *Transition) live(id job.ID) (s subject, ok bool, err error) {
	q := t.On("SELECT " + subjectColumns + " FROM pawl_job WHERE namespace = ? AND id = ?").Blob(id[:])
	if ok = q.Step(); ok {
		s = readSubject(q)
	}
	return s, ok, q.Done()
}

// subjects reads all rows of a statement before any of them is moved: changing
// a table while a statement steps through it would show some rows twice.
func subjects(q *lite.Query) ([]subject, error) {
	var list []subject
	for q.Step() {
		list = append(list, readSubject(q))
	}
	return list, q.Done()
}

// mortals reads subjects with their mortalColumns.
func mortals(q *lite.Query) ([]subject, error) {
	var list []subject
	for q.Step() {
		s := readSubject(q)
		s.mortal = mortal{q.ColText(15), int(q.ColInt(16))}
		list = append(list, s)
	}
	return list, q.Done()
}

// Running is the running jobs of a namespace, by worker. SQLite uses a partial
// index only where its condition is repeated, hence the second look at state.
const Running = "pawl_job INDEXED BY pawl_job_held WHERE namespace = ? AND state = 3 AND state <> 2"

// owned reads the row of a run that its worker still owns: the fence (P2).
func (t *Transition) owned(w job.WorkerID, id job.ID, run int64) (s subject, ok bool, err error) {
	q := t.On("SELECT " + subjectColumns + " FROM pawl_job WHERE namespace = ? AND id = ? AND state = 3 AND run = ? AND worker = ?").
		Blob(id[:]).Int(run).Int(int64(w))
	if ok = q.Step(); ok {
		s = readSubject(q)
	}
	return s, ok, q.Done()
}

// Owns reports whether a run is still its worker's.
func (t *Transition) Owns(w job.WorkerID, run store.RunRef) (bool, error) {
	_, ok, err := t.owned(w, run.ID, run.Run)
	return ok, err
}

// Holds reports whether any job runs on a worker.
func (t *Transition) Holds(w job.WorkerID) (bool, error) {
	return t.On("SELECT 1 FROM " + Running + " AND worker = ? LIMIT 1").Int(int64(w)).Found()
}
