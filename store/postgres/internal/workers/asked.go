package workers

import (
	"sync"

	"github.com/pawlwork/pawl/job"
)

// asked remembers the newest claim that each worker of this process has asked
// for. The database knows which jobs a claim took; that a claim was answered
// with nothing is only known here, and needs no row: asking for it again gives
// nothing again.
//
// The number is not kept in the worker's row. That row would be written by each
// claim, and every version of it visited by each following one for as long as
// anybody's snapshot keeps them.
type asked struct {
	mu    sync.Mutex
	asked map[job.WorkerID]int64
	come  func(workers int) // told how many more there are, or fewer
}

// Ask notes a claim; repeat means that it was asked for before, or may have been
// by another store of the same worker.
func (c *asked) Ask(w job.WorkerID, seq int64) (repeat, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	newest, known := c.asked[w]
	if known && seq <= newest {
		return true, true
	}
	if c.asked == nil {
		c.asked = map[job.WorkerID]int64{}
	}
	c.asked[w] = seq
	if !known {
		c.come(1)
	}
	return false, known
}

// know enters a worker that this store has registered: none of its claims can
// have been made elsewhere.
func (c *asked) know(w job.WorkerID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked == nil {
		c.asked = map[job.WorkerID]int64{}
	}
	if _, ok := c.asked[w]; !ok {
		c.asked[w] = 0
		c.come(1)
	}
}

// Forget drops a worker that will not claim again.
func (c *asked) Forget(w job.WorkerID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.asked[w]; ok {
		delete(c.asked, w)
		c.come(-1)
	}
}

// ForgetAll drops all of them: the store is closed.
func (c *asked) ForgetAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.come(-len(c.asked))
	c.asked = nil
}
