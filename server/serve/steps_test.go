package serve_test

import (
	"sync"

	"github.com/ncruces/go-sqlite3"
)

// stepCount counts the steps that SQLite takes, of every connection that this binary opens from now on. No row is visited without a
// step, so that steps bound rows; and they are the same each time, which time is not.
type stepCount struct {
	mu    sync.Mutex
	steps int
}

// countSteps is for the whole binary: SQLite cannot be told to stop.
var countSteps = sync.OnceValue(func() *stepCount {
	v := &stepCount{}
	sqlite3.AutoExtension(func(c *sqlite3.Conn) error {
		return c.Trace(sqlite3.TRACE_PROFILE, func(_ sqlite3.TraceEvent, of, _ any) error {
			if s, ok := of.(*sqlite3.Stmt); ok {
				n := s.Status(sqlite3.STMTSTATUS_VM_STEP, true)
				v.mu.Lock()
				v.steps += n
				v.mu.Unlock()
			}
			return nil
		})
	})
	return v
})

// during is how many steps f took.
func (v *stepCount) during(f func()) int {
	v.mu.Lock()
	v.steps = 0
	v.mu.Unlock()
	f()
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.steps
}
