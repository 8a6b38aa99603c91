package claims

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// gateState is what is remembered of a gate between claims: of an ordered one the job
// that has to end before the next begins, of one with a rate its tokens.
type gateState struct {
	stored bool
	head   job.ID // that may be the only one to go; zero: the first
	tokens job.GateTokens
}

// What reads and writes it, by primary key; head is looked up by that of jobs.
const (
	stateOfGate = `SELECT g.head, g.level, g.filled, j.state, j.due
	FROM pawl_gate AS g
	LEFT JOIN pawl_job AS j ON j.namespace = g.namespace AND j.id = g.head
	WHERE g.namespace = ? AND g.gate = ?`

	setGate = `INSERT OR REPLACE INTO pawl_gate (namespace, gate, head, level, filled, expires)
	VALUES (?, ?, ?, ?, ?, ?)`

	refill = `UPDATE pawl_gate
	SET filled = ?3
	WHERE namespace = ?1 AND gate = ?2`

	dropGate = `DELETE FROM pawl_gate
	WHERE namespace = ? AND gate = ?`
)

// readState reads what is remembered, and lets through no more than that allows.
func (k *claiming) readState(v *gateVisit) error {
	now := lite.TimeOf(k.Now)
	v.state.tokens = v.bound.Rate.Full(k.Now)
	q := k.On(stateOfGate).Int(v.Of.Number)
	headState, headDue := int64(0), int64(0)
	if q.Step() {
		v.state.stored = true
		if !q.ColNull(0) {
			v.state.head = q.ColID(0)
		}
		if !q.ColNull(1) {
			v.state.tokens = job.GateTokens{Level: q.ColFloat(1), At: q.ColInt(2)}
		}
		headState, headDue = q.ColInt(3), q.ColInt(4)
	}
	if err := q.Done(); err != nil {
		return err
	}
	if v.bound.Rate != (job.Rate{}) {
		if v.state.stored && v.state.tokens.At > k.Now { // the clock was set back: tokens come from now on
			if err := k.On(refill).Int(v.Of.Number).Int(k.Now).Exec(); err != nil {
				return err
			}
		}
		v.state.tokens.Fill(v.bound.Rate, k.Now)
		if v.room = min(v.room, v.state.tokens.There()); v.room == 0 {
			v.Closed = earlier(now.Add(v.state.tokens.Wait(v.bound.Rate)), now.Add(drainedFor))
		}
	}
	switch {
	case !v.bound.Ordered || headState == 0: // it has ended, or there was none
		v.state.head = job.ID{}
	case job.State(headState) != job.Waiting: // it is suspended; what runs is counted
		v.room = 0
		v.full(now)
	case headDue > k.Now:
		v.room, v.Closed = 0, earlier(lite.TimeOf(headDue), now.Add(drainedFor))
	}
	return nil
}

// earlier is the first of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// takenByID reads a job as a claim takes it, by primary key.
var takenByID = "SELECT " + jobs.TakenRow.Columns + `
	FROM pawl_job
	WHERE namespace = ? AND id = ? AND state = 2 AND due <= ?`

// takeHead takes the job that has to end before the others of its gate, if the worker
// can run it.
func (k *claiming) takeHead(v *gateVisit, part *store.QueueClaim, also *job.GateCount) ([]store.LeasedJob, error) {
	q := k.On(takenByID).Blob(v.state.head[:]).Int(k.Now)
	var leased []store.LeasedJob
	if q.Step() {
		needs, err := jobs.ParseWords(q.ColText(atCapabilities))
		if err == nil && k.claim.Offer.Takes(q.ColText(atKind), int(q.ColInt(atVersion)), needs) &&
			!(q.ColInt(atRescues) > 0 && part.Start == 0) && q.ColText(atQueue) == part.Queue &&
			(also == nil || also.Allow(part.Queue, q.ColText(atKind), q.ColText(atKey))) {
			leased = make([]store.LeasedJob, 1)
			jobs.TakenRow.Read(q, &leased[0].Job)
			leased[0].Rarely().Gate = v.Of.Number
		}
	}
	if leased == nil {
		v.full(lite.TimeOf(k.Now))
	}
	return leased, q.Done()
}

// writeState remembers what was let through. What says nothing is forgotten, so that
// keys that are gone leave nothing behind.
func (k *claiming) writeState(v *gateVisit, leased []store.LeasedJob) error {
	if !v.bound.Keeps() {
		return nil
	}
	head := v.state.head
	if v.bound.Ordered && len(leased) > 0 {
		head = leased[0].ID
	}
	v.state.tokens.Take(len(leased))
	rated := v.bound.Rate != (job.Rate{})
	if rated && len(leased) > 0 && v.state.tokens.There() == 0 {
		now := lite.TimeOf(k.Now)
		v.Closed = earlier(now.Add(v.state.tokens.Wait(v.bound.Rate)), now.Add(drainedFor))
	}
	if head == (job.ID{}) && (!rated || v.state.tokens.IsFull(v.bound.Rate)) {
		if !v.state.stored {
			return nil
		}
		return k.On(dropGate).Int(v.Of.Number).Exec()
	}
	if len(leased) == 0 {
		return nil
	}
	q := k.On(setGate).Int(v.Of.Number)
	if head == (job.ID{}) {
		q.Null()
	} else {
		q.Blob(head[:])
	}
	if rated {
		tokens := &v.state.tokens
		return q.Float(tokens.Level).Int(tokens.At).Int(lite.Later(k.Now, tokens.Until(v.bound.Rate))).Exec()
	}
	return q.Null().Null().Int(k.Now).Exec()
}

// runningByKind counts what runs from gates, by what limits go by.
//   - pawl_job_gate_held: as many rows as run from gates.
const runningByKind = `SELECT queue, kind, coalesce("key", ''), count(*)
	FROM pawl_job INDEXED BY pawl_job_gate_held
	WHERE namespace = ? AND state = 3 AND gate IS NOT NULL
	GROUP BY queue, kind, "key"`

// countByKind is nil where no job has two bounds.
func (k *claiming) countByKind() (*job.GateCount, error) {
	if !k.claim.Gates.Overlap() {
		return nil, nil
	}
	count := &job.GateCount{Rules: k.claim.Gates}
	q := k.On(runningByKind)
	for q.Step() {
		count.Add(q.ColText(0), q.ColText(1), q.ColText(2), int(q.ColInt(3)))
	}
	return count, q.Done()
}
