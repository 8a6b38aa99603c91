package storetest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// How much RunLinear does. More clients than jobs make them meet.
const (
	linearHistories = 20
	linearClients   = 6
	linearJobs      = 3
	linearCalls     = 40
)

// RunLinear lets several workers and operators claim, finish, cancel, retry and
// read the same few jobs at the same time, and asks whether the answers about
// each job can be put into one order that a single job could have lived through.
func RunLinear(t *testing.T, fresh Fresh) {
	for i := range linearHistories {
		t.Run(fmt.Sprintf("history_%d", i), func(t *testing.T) {
			d := newDatabase(t, fresh, store.Settings{})
			seed := rand.Uint64()
			list := d.enqueue(drafts(linearJobs)...)
			for id, history := range record(d, list, seed) {
				if !porcupine.CheckOperations(oneJob(), history) {
					t.Errorf("seed %d: no order of these calls explains job %s:\n%s", seed, id, describe(history))
				}
			}
		})
	}
}

// jobCall and jobAnswer are what one call says about one job.
type jobCall struct {
	verb   string // claim, finish, cancel, retry, get
	worker job.WorkerID
	run    int64
	to     job.State
}

type jobAnswer struct {
	run     int64 // of a claim or get
	state   job.State
	verdict job.Verdict
	change  store.Change
}

// jobLife is the state of one job.
type jobLife struct {
	state  job.State
	run    int64
	worker job.WorkerID
	asked  bool
}

// oneJob is the life of one job as a sequence of calls. It is the model's rules
// once more, without time.
func oneJob() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return jobLife{state: job.Waiting} },
		Step: func(state, input, output any) (bool, any) {
			return live(state.(jobLife), input.(jobCall), output.(jobAnswer))
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}

func live(j jobLife, c jobCall, a jobAnswer) (bool, jobLife) {
	switch c.verb {
	case "claim":
		ok := j.state == job.Waiting && a.run == j.run+1
		return ok, jobLife{state: job.Running, run: a.run, worker: c.worker}
	case "finish":
		if a.verdict == job.Locked { // a lock was in the way: nothing changed
			return true, j
		}
		if j.state != job.Running || j.run != c.run || j.worker != c.worker {
			return a.verdict == job.Stale, j
		}
		next := jobLife{state: c.to, run: j.run}
		if c.to == job.Waiting && j.asked {
			next.state = job.Cancelled
		}
		return a.verdict == job.Applied, next
	case "cancel":
		if a.change == store.Busy { // as with Held
			return true, j
		}
		switch j.state {
		case job.Waiting:
			return a.change == store.Changed, jobLife{state: job.Cancelled, run: j.run}
		case job.Running:
			j.asked = true
			return a.change == store.Asked, j
		}
		return a.change == store.Ended, j
	case "retry":
		if a.change == store.Busy {
			return true, j
		}
		switch j.state {
		case job.Waiting, job.Running:
			return a.change == store.Active, j
		case job.Done:
			return a.change == store.Ended, j
		}
		return a.change == store.Changed, jobLife{state: job.Waiting, run: j.run}
	}
	return a.state == j.state && a.run == j.run, j
}

// recorder keeps the history of each job. Its counter is the only clock it
// needs: what returned before another call began has the smaller numbers.
type recorder struct {
	clock   atomic.Int64
	mu      sync.Mutex
	history map[job.ID][]porcupine.Operation
}

func (r *recorder) add(client int, id job.ID, c jobCall, a jobAnswer, call, done int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history[id] = append(r.history[id], porcupine.Operation{ClientId: client, Input: c, Output: a, Call: call, Return: done})
}

// record lets clients loose on the jobs and writes down what they were told.
func record(d *database, list []job.ID, seed uint64) map[job.ID][]porcupine.Operation {
	r := &recorder{history: map[job.ID][]porcupine.Operation{}}
	var crew [linearClients]*employee
	for i := range crew {
		crew[i] = d.hire()
	}
	together(linearClients, func(i int) {
		c := &client{d: d, r: r, number: i, hand: crew[i], jobs: list, random: rand.New(rand.NewPCG(seed, uint64(i)))}
		for range linearCalls {
			if err := c.call(); err != nil {
				d.Errorf("seed %d: %v", seed, err)
				return
			}
		}
	})
	return r.history
}

// client makes random calls.
type client struct {
	d      *database
	r      *recorder
	number int
	hand   *employee
	jobs   []job.ID
	held   []store.RunRef
	random *rand.Rand
}

func (c *client) call() error {
	id := c.jobs[c.random.IntN(len(c.jobs))]
	begin := c.r.clock.Add(1)
	note := func(id job.ID, call jobCall, a jobAnswer) {
		c.r.add(c.number, id, call, a, begin, c.r.clock.Add(1))
	}
	switch n := c.random.IntN(10); {
	case n < 4:
		c.hand.seq++
		got, err := c.d.Store.Claim(c.d.ctx, store.Claim{Worker: c.hand.id, Seq: c.hand.seq, Offer: everything,
			Queues: []store.QueueClaim{{Queue: queue, Limit: 1, Start: 1}}})
		for _, j := range got.Jobs {
			c.held = append(c.held, ref(j))
			note(j.ID, jobCall{verb: "claim", worker: c.hand.id}, jobAnswer{run: j.Run})
		}
		return err
	case n < 7 && len(c.held) > 0:
		r := c.held[c.random.IntN(len(c.held))] // old runs too: those must be stale
		to := []job.State{job.Waiting, job.Waiting, job.Waiting, job.Done, job.Dead}[c.random.IntN(5)]
		got, err := c.d.Store.Finish(c.d.ctx, c.hand.id, []job.End{{ID: r.ID, Run: r.Run, To: to, Keep: keep}})
		if err == nil {
			note(r.ID, jobCall{verb: "finish", worker: c.hand.id, run: r.Run, to: to}, jobAnswer{verdict: got[0]})
		}
		return err
	case n == 7:
		got, err := c.d.Store.Cancel(c.d.ctx, []job.ID{id}, store.Operator{})
		if err == nil {
			note(id, jobCall{verb: "cancel"}, jobAnswer{change: got[0]})
		}
		return err
	case n == 8:
		got, err := c.d.Store.Retry(c.d.ctx, []job.ID{id}, store.Operator{})
		if err == nil {
			note(id, jobCall{verb: "retry"}, jobAnswer{change: got[0]})
		}
		return err
	}
	got, err := c.d.Store.Get(c.d.ctx, []job.ID{id})
	if err == nil && len(got) != 1 {
		err = fmt.Errorf("get %s: %d jobs, want 1 at any moment", id, len(got))
	}
	if err == nil {
		note(id, jobCall{verb: "get"}, jobAnswer{state: got[0].State, run: got[0].Run})
	}
	return err
}

// describe lists a history for people.
func describe(history []porcupine.Operation) string {
	var text string
	for _, o := range history {
		text += fmt.Sprintf("%4d..%-4d client %d  %+v -> %+v\n", o.Call, o.Return, o.ClientId, o.Input, o.Output)
	}
	return text
}
