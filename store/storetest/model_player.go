package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// tick is what programs move the clock by. A program takes far less.
const tick = 10 * time.Minute

// player is one store that plays the program, with what differs between stores:
// where its clock began and how it numbers its workers.
type player struct {
	store   store.Store
	ctx     context.Context
	begin   time.Time
	workers []job.WorkerID
	beats   map[int]time.Time // the last of each worker, as it was answered
	told    map[int]int64     // the registry's version in that answer
}

// modelDraft is a draft before a store's clock is known.
type modelDraft struct {
	id                          job.ID
	resend                      bool
	queue, kind                 string
	version, priority, attempts int
	at, deadline                *int   // ticks since the program began
	in, period                  int    // ticks
	key                         string // of uniqueness
	owner                       string
	beginner                    int  // for which worker it asks to begin, from 1; 0: it does not
	outdated                    bool // by settings that hold no more
}

func (d modelDraft) String() string {
	s := fmt.Sprintf("%s %s/%d on %s p%d", d.id, d.kind, d.version, d.queue, d.priority)
	if d.at != nil {
		s += fmt.Sprintf(" at %d", *d.at)
	}
	if d.in > 0 {
		s += fmt.Sprintf(" in %d", d.in)
	}
	if d.key != "" {
		s += fmt.Sprintf(" unique %q+%d", d.key, d.period)
	}
	if d.owner != "" {
		s += fmt.Sprintf(" key %q", d.owner)
	}
	if d.deadline != nil {
		s += fmt.Sprintf(" until %d", *d.deadline)
	}
	return s
}

// draft is the draft that this store is given.
func (p *player) draft(d modelDraft, rules *job.GateRules) job.Draft {
	j := job.Draft{
		ID: d.id, Resend: d.resend, Kind: d.kind, Version: d.version, Queue: d.queue, Priority: d.priority,
		Attempts: d.attempts, In: time.Duration(d.in) * tick, Args: d.id[:],
		Key: d.owner, Gate: rules.Gate(d.queue, d.kind, d.owner),
	}
	if d.at != nil {
		j.At = p.time(*d.at)
	}
	if d.deadline != nil {
		j.Deadline = p.time(*d.deadline)
	}
	if d.key != "" {
		j.Unique = job.Unique{Hash: job.UniqueHash(d.key), Period: time.Duration(d.period) * tick}
	}
	return j
}

func (p *player) time(ticks int) time.Time { return p.begin.Add(time.Duration(ticks) * tick) }

// ticks says in which tick a time of the store lies.
func (p *player) ticks(t time.Time) int {
	d := t.Sub(p.begin)
	n := int(d / tick)
	if d < 0 && d%tick != 0 {
		n--
	}
	return n
}

// modelEnd is the end of a run.
type modelEnd struct {
	id              job.ID
	run             int64
	to              job.State
	delay           int // ticks
	snooze          bool
	deferred        bool
	wait            job.Wait
	failure, reason string
	result          string
	again           bool // it was applied, and its answer was lost
}

func (e modelEnd) end(queue string) job.End {
	end := job.End{
		ID: e.id, Run: e.run, To: e.to, Delay: time.Duration(e.delay) * tick, Snooze: e.snooze, Defer: e.deferred, Wait: e.wait, Reason: e.reason,
		Result: []byte(e.result), Keep: modelKeep(queue), Again: e.again,
	}
	if e.failure != "" {
		f := job.NewFailure(1, e.run, e.failure, "")
		end.Failure, end.Burn = f.Body(), true
	}
	return end
}

// modelKeep is the model's retention as stores are told it.
func modelKeep(queue string) job.Keep {
	if forgets(queue) {
		return keepNone
	}
	return job.Keep{Done: modelKeepDone * tick, Dead: modelKeepDead * tick, Cancelled: modelKeepRest * tick}
}

// seen is what both sides must agree on about one job.
type seen struct {
	State                        job.State
	Queue, Kind, Key             string
	Version, Priority, Attempts  int
	Run                          int64
	Used, Lost, Rescues, Snoozes int
	Deferred                     int
	Created, Due, Deadline       int
	Finished, Expires            int
	Worker                       int
	Asked                        bool
	Failures                     string
	Reason, Result               string
	Wait                         job.Wait
}

// see reads a job as this store shows it. Due times count only while waiting.
func (p *player) see(j *job.Job) seen {
	s := seen{
		State: j.State, Queue: j.Queue, Kind: j.Kind, Key: j.Key, Version: j.Version, Priority: j.Priority, Attempts: j.MaxAttempts,
		Run: j.Run, Used: j.Used, Lost: j.Lost, Rescues: j.Rescues, Snoozes: j.Snoozes, Deferred: j.Deferred,
		Created: p.ticks(j.Created), Worker: -1, Reason: j.Reason, Result: string(j.Result), Wait: j.Wait,
	}
	for _, f := range j.Failures.List() {
		s.Failures += f.Message + "; "
	}
	if j.State == job.Waiting {
		s.Due = p.ticks(j.Due)
	}
	if !j.Deadline.IsZero() {
		s.Deadline = 1 + p.ticks(j.Deadline)
	}
	if j.State == job.Running {
		s.Asked = j.CancelAsked
	}
	for i, id := range p.workers {
		if id == j.Worker {
			s.Worker = i
		}
	}
	if j.State.Final() {
		s.Finished, s.Expires = p.ticks(j.Finished), p.ticks(j.Expires)
	}
	return s
}

// see shows the model's job in the same way.
func (j *modelJob) see() seen {
	s := seen{
		State: j.state, Queue: j.queue, Kind: j.kind, Key: j.owner, Version: j.version, Priority: j.priority, Attempts: j.attempts,
		Run: j.run, Used: j.used, Lost: j.lost, Rescues: j.rescues, Snoozes: j.snoozes, Deferred: j.deferred,
		Created: j.created.tick, Worker: j.worker, Reason: j.reason, Result: j.result, Wait: j.wait,
	}
	for _, f := range j.failures {
		s.Failures += f + "; "
	}
	if j.state == job.Waiting {
		s.Due = j.due.tick
	}
	if j.deadline != nil {
		s.Deadline = 1 + j.deadline.tick
	}
	if j.state == job.Running {
		s.Asked = j.asked
	}
	if j.state.Final() {
		s.Finished, s.Expires = j.finished.tick, j.expires.tick
	}
	return s
}
