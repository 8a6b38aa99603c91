// Package crews remembers who shares the totals of a process's workers, by the version
// of the registry in which they do.
//
// While that is the version there is, nobody who shares has come, left, been lost or
// changed its totals; and once everybody has stored it, it stays settled. So a beat
// compares one number, and reads no other worker.
package crews

import (
	"sync"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Known are the crews of the workers of one namespace in this process.
type Known struct {
	mu   sync.Mutex
	crew map[job.WorkerID]known
}

type known struct {
	version int64
	crews   map[string]store.Crew
}

// Of are the crews of a worker in a version, if they are known. Nobody changes them.
func (k *Known) Of(w job.WorkerID, version int64) (map[string]store.Crew, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	of, ok := k.crew[w]
	return of.crews, ok && version != 0 && of.version == version
}

// Note takes over the answer to a beat. What is not settled is not remembered, nor what
// those still hold that left: it changes within a version.
func (k *Known) Note(b *store.Beat, reply *store.BeatReply) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.crew, b.Worker)
	if !b.Splits || !reply.Settled || reply.Version != b.Version { // else it has not stored the version
		return
	}
	for _, c := range reply.Crews {
		if !c.Shares() || c.Held > 0 {
			return
		}
	}
	if k.crew == nil {
		k.crew = map[job.WorkerID]known{}
	}
	k.crew[b.Worker] = known{b.Version, reply.Crews}
}

// Forget is for a worker that serves something else now, or is no more.
func (k *Known) Forget(w job.WorkerID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.crew, w)
}
