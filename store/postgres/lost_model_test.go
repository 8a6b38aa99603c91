package postgres

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/internal/need/pgproxy"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
	"github.com/pawlwork/pawl/store/storetest"
)

// The random programs of the model, with a store that loses a third of the
// answers of enqueue, finish and beat. It must answer as if nothing had happened:
// these calls find out by themselves. (Others may answer differently: a claim less,
// saying that there is more; a finish of a run that its worker ended long ago, that
// it has ended; an operator's call, that its outcome is unknown.)
func TestJ32_LostAnswers_Model(t *testing.T) {
	var lost atomic.Int64
	lossy := func(t *testing.T) store.Opener {
		db := need.Postgres(t)
		proxy := need.Proxy(t, db.URL)
		chance := rand.New(rand.NewPCG(1, 0))
		again := false // a call gives up after seven times
		proxy.Judge(func(c pgproxy.Commit) pgproxy.Fate {
			if !answersTwice(c.Statements) { // also what a new connection asks first, between two tries
				return pgproxy.Deliver
			}
			if again = !again && chance.IntN(3) == 0; !again {
				return pgproxy.Deliver
			}
			lost.Add(1)
			if chance.IntN(3) == 0 {
				return pgproxy.Drop
			}
			return pgproxy.Cut
		})
		return Pool(newPool(t, proxy.URL()), Options{Schema: db.Schema})
	}
	storetest.RunModelOfLostAnswers(t, 20, lossy, func(*testing.T) store.Opener { return sqlite.Memory() })
	t.Logf("%d answers were lost", lost.Load())
	if lost.Load() == 0 {
		t.Error("no answer was lost")
	}
}

// answersTwice reports whether a commit belongs to a call whose answer is the
// same when it is asked for again.
func answersTwice(statements []string) bool {
	if strings.HasPrefix(statements[0], "BEGIN;") { // a transaction of Begin
		return false
	}
	resends := func(s string) bool { return strings.Contains(s, ".tombstone AS t ON") }
	if slices.ContainsFunc(statements, resends) { // it may find its own job, and call it a duplicate: it is there
		return false
	}
	return slices.ContainsFunc(statements, func(s string) bool {
		return strings.Contains(s, ".job (namespace, state, due, created") || // enqueue
			strings.Contains(s, "AND job.worker = e.worker AND job.state = e.running ORDER BY job.id FOR UPDATE OF job") || // finish
			strings.Contains(s, "WITH beaten AS") // beat
	})
}
