package claims

import (
	"math"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/internal/turns"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// gatedQueue takes from a queue that may have gates: jobs in front of them and behind
// them by halves, so that neither starves, and what one leaves the other gets. Which of
// the two is first changes with every claim, for claims of one job.
func (k *claiming) gatedQueue(q *store.QueueClaim) error {
	room := k.claim.PerQueue()
	took := 0
	front := func(limit int) (n int, err error) {
		part := partOf(q, limit, took)
		n, err = k.plain(&part, &room)
		return n, err
	}
	behind := func(limit int) (int, error) { return k.behind(q, limit, took, &room) }
	first, second := front, behind
	if k.claim.Seq%2 == 0 {
		first, second = behind, front
	}
	half := (q.Limit + 1) / 2
	n, err := first(half)
	if err != nil {
		return err
	}
	took = n
	if n, err = second(q.Limit - took); err != nil {
		return err
	}
	filled := took == half
	if took += n; filled && took < q.Limit {
		_, err = first(q.Limit - took)
	}
	return err
}

// partOf is a part of a claim, of which so many were taken already.
func partOf(q *store.QueueClaim, limit, took int) store.QueueClaim {
	part := *q
	part.Limit, part.Start = limit, max(q.Start-took, 0)
	return part
}

const (
	visits = 64 // gates of one pass
	passes = 16 // of one claim
	// strangers is how many jobs are taken out of a gate at once that belong elsewhere
	// by the limits that hold.
	strangers = 100
	// drainedFor is how long a gate is passed from which jobs run and behind which none
	// waits.
	drainedFor = time.Second
	// aSeek is about how long one takes: what the clock shows is the transaction's.
	aSeek = 3 * time.Microsecond
)

// behind takes jobs from behind gates in turn, as far as their limits allow.
func (k *claiming) behind(q *store.QueueClaim, limit, before int, room *int64) (int, error) {
	memory, now := &k.memory.Turns, lite.TimeOf(k.Now)
	version, err := k.Query("PRAGMA data_version").One()
	if err != nil {
		return 0, err
	}
	k.memory.changed(version)
	took := 0
	for n := 0; took < limit && *room > 0; n++ {
		if n == passes {
			k.answer.More = true
			break
		}
		if after, due := memory.Scan(q.Queue, now); due {
			if err := k.scan(q.Queue, after, now); err != nil {
				memory.Stale(q.Queue)
				return took, err
			}
		}
		list, left, more := memory.Next(q.Queue, visits, now)
		if len(list) == 0 {
			break
		}
		part, moved := partOf(q, limit-took, before+took), k.moved
		n, err := k.pass(&part, list, left, more, room)
		took += n
		if err != nil {
			return took, err
		}
		if n == 0 && k.moved == moved && !more {
			break
		}
	}
	if *room <= 0 {
		k.answer.More = true
	}
	if wait := memory.Wait(q.Queue, now); wait > 0 && took < limit {
		k.upcoming(lite.Later(k.Now, wait))
	}
	return took, nil
}

// nextGate is the gate behind one that has waiting jobs, with its first job.
//   - A seek on pawl_job_gated.
const nextGate = `SELECT gate, kind, "key"
	FROM pawl_job INDEXED BY pawl_job_gated
	WHERE namespace = ? AND state = 2 AND gate IS NOT NULL AND queue = ? AND gate > ?
	ORDER BY gate
	LIMIT 1`

// scan finds the gates of a queue that have waiting jobs.
func (k *claiming) scan(queue string, after int64, now time.Time) error {
	var list []turns.Found
	at, whole := after, false
	for len(list) < turns.Window {
		q := k.On(nextGate).Text(queue).Int(at)
		some := q.Step()
		if some {
			at = q.ColInt(0)
			list = append(list, turns.Found{Number: at, Kind: q.ColText(1), Key: q.ColText(2)})
		}
		if err := q.Done(); err != nil {
			return err
		}
		if !some {
			whole = true
			break
		}
	}
	k.memory.Turns.Found(queue, after, list, whole, now, time.Duration(len(list))*aSeek)
	return nil
}

// runningAt counts what runs from a gate, up to a bound.
//   - pawl_job_gate_held.
const runningAt = `SELECT count(*)
	FROM (
		SELECT 1
		FROM pawl_job INDEXED BY pawl_job_gate_held
		WHERE namespace = ? AND state = 3 AND gate IS NOT NULL AND gate = ?
		LIMIT ?
	)`

// gateVisit is one gate of a pass.
type gateVisit struct {
	turns.Visit[struct{}]
	bound   job.GateBound
	running int64
	room    int
	state   gateState
}

// full closes a gate that has no room.
func (v *gateVisit) full(now time.Time) { v.Full, v.Closed = true, now.Add(v.Of.Full()) }

// pass takes one round from some gates, or several if there are no others.
func (k *claiming) pass(q *store.QueueClaim, list []turns.Gate[struct{}], left int, more bool, room *int64) (int, error) {
	now := lite.TimeOf(k.Now)
	all := make([]gateVisit, len(list))
	deal := make([]job.Turn, len(list))
	round, long := 0, turns.Long(q.Limit, visits, more)
	also, err := k.countByKind()
	if err != nil {
		return 0, err
	}
	for i := range list {
		v := &all[i]
		v.Of = &list[i]
		if err := k.enter(q, v, also, now); err != nil {
			return 0, err
		}
		v.Weight = max(v.bound.Weight, 1)
		if deal[i] = (job.Turn{Weight: long * v.Weight, Room: v.room}); !more {
			deal[i].Credit = int(v.Of.Credit * float64(v.Weight))
		}
		round += min(deal[i].Weight, deal[i].Room)
	}
	limit := q.Limit
	if more { // there may be others, whose turn it is then
		limit = min(limit, round)
	}
	ahead, turned := job.DealAhead(deal, limit)
	given, next, rest := job.Deal(deal, left, turned)
	taken, took := make([]turns.Taken[store.LeasedJob], len(all)), 0
	for i := range all {
		v, t := &all[i], &taken[i]
		if given[i]+ahead[i] == 0 || *room <= 0 {
			continue
		}
		if t.Jobs, err = k.through(q, v, given[i]+ahead[i], took, room, also); err != nil {
			return 0, err
		}
		v.Took, v.Ahead, t.Ahead = len(t.Jobs), ahead[i], ahead[i]
		took += v.Took
	}
	leased := turns.Answer(taken, func(j *store.LeasedJob) bool { return j.Rescues > 0 }, func(j *store.LeasedJob) { j.Ahead = true })
	if err := k.lease(leased); err != nil {
		return 0, err
	}
	at := list[next].Number
	if more && limit == round {
		at, rest = list[len(list)-1].Number+1, 0
	}
	settled := make([]turns.Visit[struct{}], len(all))
	for i := range all {
		settled[i] = all[i].Visit
	}
	k.memory.Turns.Settle(q.Queue, settled, at, rest)
	return took, nil
}

// enter finds out how many jobs a gate lets through now.
func (k *claiming) enter(q *store.QueueClaim, v *gateVisit, also *job.GateCount, now time.Time) (err error) {
	var known bool
	if v.bound, known = k.claim.Gates.Bound(q.Queue, v.Of.Kind, v.Of.Key); !known || v.bound.Gate != v.Of.Number {
		v.bound, v.room = job.GateBound{}, strangers // they are moved to where they belong
		return nil
	}
	most := max(v.bound.Concurrent, 1)
	if v.running, err = k.On(runningAt).Int(v.Of.Number).Int(int64(most)).One(); err != nil {
		return err
	}
	if also != nil && v.bound.Concurrent > 0 {
		v.running = int64(also.Running(&v.bound))
	}
	v.room = math.MaxInt32
	if v.bound.Concurrent > 0 {
		v.room = v.bound.Concurrent - int(v.running)
	}
	if v.room <= 0 {
		v.full(now)
		return nil
	}
	if v.bound.Keeps() {
		return k.readState(v)
	}
	return nil
}

// through takes up to n jobs from one gate.
func (k *claiming) through(
	q *store.QueueClaim, v *gateVisit, n, took int, room *int64, also *job.GateCount,
) ([]store.LeasedJob, error) {
	part := partOf(q, n, took)
	look := look{
		Transition: k.Transition, claim: k.claim, queue: &part, gate: v.Of.Number, from: k.from, room: *room,
		ordered: v.bound.Ordered, strangers: v.bound.Gate == 0,
	}
	if also != nil {
		look.allow = func(kind, key string) bool { return also.Allow(q.Queue, kind, key) }
	}
	var leased []store.LeasedJob
	var err error
	if v.state.head != (job.ID{}) {
		leased, err = k.takeHead(v, &part, also)
		for i := range leased {
			*room -= jobs.Large(&leased[i].Job)
		}
	} else {
		leased, err = look.take(nil)
		*room = look.room
	}
	if err != nil {
		return nil, err
	}
	if err := k.putRight(&look); err != nil {
		return nil, err
	}
	if err := k.writeState(v, leased); err != nil {
		return nil, err
	}
	also.Took(&v.bound, len(leased))
	now := lite.TimeOf(k.Now)
	switch {
	case look.bounded:
		k.answer.More = true
	case v.bound.Concurrent > 0 && int(v.running)+len(leased) >= v.bound.Concurrent:
		v.full(now)
	case len(leased) < n && v.Closed.IsZero():
		return leased, k.drained(q, v, leased, look.refused(), now)
	}
	return leased, nil
}

// drained closes a gate that gave less than it was asked for, until its next job falls
// due, and forgets one that has none.
func (k *claiming) drained(q *store.QueueClaim, v *gateVisit, leased []store.LeasedJob, left bool, now time.Time) error {
	due, err := nextDue(k.Transition, q, v.Of.Number)
	switch {
	case err != nil:
		return err
	case left:
		v.full(now)
	case due != 0:
		v.Closed, v.Idle = earlier(lite.TimeOf(due), now.Add(turns.ScanEvery)), true
	case v.running == 0 && len(leased) == 0:
		some, err := k.On(anyBehind).Text(q.Queue).Int(v.Of.Number).Found()
		if err != nil {
			return err
		}
		if v.Gone = !some; some { // for others
			v.Closed, v.Idle = now.Add(drainedFor), true
		}
	default:
		v.Closed, v.Idle = now.Add(drainedFor), true
	}
	return nil
}

// anyBehind finds a job that waits behind a gate (pawl_job_gated).
const anyBehind = `SELECT 1
	FROM pawl_job INDEXED BY pawl_job_gated
	WHERE namespace = ? AND state = 2 AND gate IS NOT NULL AND queue = ? AND gate = ?
	LIMIT 1`

// refused reports whether a job was passed for which another bound has no room, or
// that may only start.
func (l *look) refused() bool {
	for _, lane := range l.lanes {
		if lane != nil && lane.refused {
			return true
		}
	}
	return false
}
