package claims

import (
	"math"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
)

// What Regate reads and writes.
//   - firstOfNext: a seek on pawl_job_gated, when a queue has no more (nextGate).
//   - behindOne: pawl_job_gated, from a place on.
//   - forgetGates: the primary keys of both tables.
const (
	firstOfNext = `SELECT queue, gate, kind, "key"
	FROM pawl_job INDEXED BY pawl_job_gated
	WHERE namespace = ? AND state = 2 AND gate IS NOT NULL AND queue > ?
	ORDER BY queue, gate
	LIMIT 1`

	behindOne = `SELECT id, kind, "key"
	FROM pawl_job INDEXED BY pawl_job_gated
	WHERE namespace = ? AND state = 2 AND gate IS NOT NULL AND queue = ? AND gate = ?
	LIMIT ?`

	forgetGates = `DELETE FROM pawl_gate
	WHERE namespace = ?1 AND gate IN (
		SELECT g.gate
		FROM pawl_gate AS g
		WHERE g.namespace = ?1 AND g.expires <= ?2
			AND NOT EXISTS (SELECT 1 FROM pawl_job AS j WHERE j.namespace = g.namespace AND j.id = g.head)
		LIMIT ?3
	)`
)

// anyGate finds a job that waits behind a gate (pawl_job_gated), or what is remembered of
// one (the primary key).
const anyGate = `SELECT EXISTS (
		SELECT 1
		FROM pawl_job INDEXED BY pawl_job_gated
		WHERE namespace = ?1 AND state = 2 AND gate IS NOT NULL)
	OR EXISTS (SELECT 1 FROM pawl_gate WHERE namespace = ?1)`

// Due says whether Regate has something to look at.
func Due(c *lite.Snapshot) (bool, error) {
	some, err := c.On(anyGate).One()
	return some != 0, err
}

// RegatePlace is where the next call goes on.
type RegatePlace struct {
	queue string
	gate  int64
}

// Regate moves waiting jobs to where the rules put them.
func Regate(t *jobs.Transition, rules *job.GateRules, limit int, at RegatePlace) (store.RegateReply, RegatePlace, error) {
	var reply store.RegateReply
	if at.queue == "" {
		at.gate = math.MinInt64
	}
	for range store.RegateVisits {
		next, kind, key, some, err := gateBehind(t, at)
		if err != nil {
			return reply, at, err
		}
		at = next
		if !some {
			n, err := t.Query(forgetGates).Int(t.Namespace).Int(t.Now).Int(int64(limit)).Changes()
			reply.Forgotten = int(n)
			return reply, RegatePlace{}, err
		}
		if rules.Gate(at.queue, kind, key) == at.gate {
			continue
		}
		n, err := regateOne(t, rules, at, limit-reply.Moved)
		if reply.Moved += n; err != nil {
			return reply, at, err
		}
		if reply.Moved >= limit {
			reply.More = true
			at.gate-- // there may be more of it
			return reply, at, nil
		}
	}
	reply.More = true
	return reply, at, nil
}

// gateBehind is the gate behind a place that has waiting jobs, with its first job: of
// the same queue, or of the next.
func gateBehind(t *jobs.Transition, at RegatePlace) (next RegatePlace, kind, key string, some bool, err error) {
	q := t.On(nextGate).Text(at.queue).Int(at.gate)
	if some = q.Step(); some {
		next, kind, key = RegatePlace{at.queue, q.ColInt(0)}, q.ColText(1), q.ColText(2)
	}
	if err = q.Done(); err != nil || some {
		return next, kind, key, some, err
	}
	q = t.On(firstOfNext).Text(at.queue)
	if some = q.Step(); some {
		next, kind, key = RegatePlace{q.ColText(0), q.ColInt(1)}, q.ColText(2), q.ColText(3)
	}
	return next, kind, key, some, q.Done()
}

// regateOne moves the jobs of one gate.
func regateOne(t *jobs.Transition, rules *job.GateRules, of RegatePlace, limit int) (int, error) {
	var list []gatedJob
	q := t.On(behindOne).Text(of.queue).Int(of.gate).Int(int64(limit))
	for q.Step() {
		g := gatedJob{id: q.ColID(0), kind: q.ColText(1), key: q.ColText(2)}
		g.gate = rules.Gate(of.queue, g.kind, g.key)
		list = append(list, g)
	}
	if err := q.Done(); err != nil {
		return 0, err
	}
	moved := 0
	for _, g := range list {
		if g.gate == of.gate {
			continue
		}
		if err := t.Query(moveToGate).IntOrNull(g.gate).Int(t.Namespace).Blob(g.id[:]).Exec(); err != nil {
			return moved, err
		}
		moved++
	}
	return moved, nil
}
