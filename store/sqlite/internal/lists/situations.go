package lists

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/settings"
	"github.com/pawlwork/pawl/store/sqlite/internal/workers"
)

// countRuns counts what each worker with totals runs of a queue.
//   - pawl_job_held, once for each worker: they are few, and come first.
const countRuns = `SELECT w.label, w.totals, w.lost IS NOT NULL, count(*)
	FROM pawl_worker AS w
	CROSS JOIN pawl_job AS j INDEXED BY pawl_job_held
	WHERE w.namespace = ?1 AND w.totals IS NOT NULL
		AND j.namespace = ?1 AND j.state = 3 AND j.state <> 2 AND j.worker = w.id AND j.queue = ?2
	GROUP BY w.id`

// runsOfQueue counts what the workers with totals run of a queue.
func runsOfQueue(c *lite.Snapshot, queue string) ([]store.QueueRuns, error) {
	var runs []store.QueueRuns
	q := c.On(countRuns).Text(queue)
	for q.Step() {
		runs = append(runs, store.QueueRuns{Label: q.ColText(0), Totals: []byte(q.ColText(1)), Lost: q.ColBool(2), Runs: int(q.ColInt(3))})
	}
	return runs, q.Done()
}

// countAhead counts ready jobs of one priority before a place in their order.
//   - A range of pawl_job_ready.
const countAhead = `SELECT count(*)
	FROM (
		SELECT 1
		FROM pawl_job
		WHERE namespace = ? AND state = 2 AND gate IS NULL AND queue = ? AND priority = ? AND (due, id) < (?, ?)
		LIMIT ?)`

// ahead counts the ready jobs of the queue that a claim meets first, as far as
// the cap.
func ahead(c *lite.Snapshot, j *job.Job, now int64, most int) (n int, capped bool, err error) {
	for p := job.MinPriority; p <= j.Priority && n <= most; p++ {
		due, id := now+1, job.ID{}
		if p == j.Priority {
			due, id = min(lite.Micros(j.Due), now+1), j.ID
		}
		count, err := c.On(countAhead).Text(j.Queue).Int(int64(p)).Int(due).Blob(id[:]).Int(int64(most + 1 - n)).One()
		if err != nil {
			return 0, false, err
		}
		n += int(count)
	}
	return min(n, most), n > most, nil
}

// What tells how a gate stands.
//   - pawl_job_gate_held, as far as 1,000, and primary keys.
const (
	runningFrom = `SELECT count(*)
	FROM (
		SELECT 1
		FROM pawl_job INDEXED BY pawl_job_gate_held
		WHERE namespace = ? AND state = 3 AND gate IS NOT NULL AND gate = ?
		LIMIT 1000)`

	stateOfGate = `SELECT g.level, g.filled, j.id, j.state, j.due
	FROM pawl_gate AS g
	LEFT JOIN pawl_job AS j ON j.namespace = g.namespace AND j.id = g.head
	WHERE g.namespace = ? AND g.gate = ?`
)

// gateUse tells how a gate stands.
func gateUse(c *lite.Snapshot, gate int64) (use job.GateUse, err error) {
	n, err := c.On(runningFrom).Int(gate).One()
	if err != nil {
		return use, err
	}
	use.Running = int(n)
	q := c.On(stateOfGate).Int(gate)
	if q.Step() {
		if use.Known = !q.ColNull(0); use.Known {
			use.Tokens = job.GateTokens{Level: q.ColFloat(0), At: q.ColInt(1)}
		}
		if state := job.State(q.ColInt(3)); state == job.Waiting || state == job.Suspended {
			if use.Head = q.ColID(2); state == job.Waiting {
				use.HeadDue = lite.TimeOf(q.ColInt(4))
			}
		}
	}
	return use, q.Done()
}

// Situations gathers why jobs are not running. Workers and pauses are read once, and
// once for each queue what runs of it.
func Situations(c *lite.Snapshot, ids []job.ID) ([]job.Situation, error) {
	found, err := jobs.Get(c, ids)
	if err != nil {
		return nil, err
	}
	registry, err := workers.Registry(c)
	if err != nil {
		return nil, err
	}
	pauses, err := settings.Pauses(c)
	if err != nil {
		return nil, err
	}
	now, most := c.Clock.Now(), store.AheadCap(len(ids))
	cooling, err := settings.CoolDowns(c, now)
	if err != nil {
		return nil, err
	}
	queues := map[string][]store.QueueRuns{}
	list := make([]job.Situation, len(found))
	for i := range found {
		sit, j := &list[i], &found[i]
		sit.Job, sit.Now = *j, lite.TimeOf(now)
		if j.State.Final() {
			continue
		}
		runs, ok := queues[j.Queue]
		if !ok {
			if runs, err = runsOfQueue(c, j.Queue); err != nil {
				return nil, err
			}
			queues[j.Queue] = runs
		}
		sit.Pause = store.PauseOf(pauses, j.Queue, j.Kind)
		sit.CoolDown = store.CoolDownOf(cooling, j.Queue)
		store.Situate(sit, registry, runs)
		switch j.State {
		case job.Running:
			sit.Label, err = workers.Label(c, j.Worker)
		case job.Waiting:
			if gate := j.Gate(); gate != 0 {
				if sit.Gate, err = gateUse(c, gate); err != nil {
					return nil, err
				}
			}
			sit.Ahead, sit.AheadCapped, err = ahead(c, j, now, most)
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}
