package workers

import (
	"sync"

	"github.com/pawlwork/pawl/job"
)

// leader remembers who led last: the search for the leader begins there. Nobody
// before it can lead again, because numbers ascend and who is lost never lives
// again; and while somebody holds a snapshot the entries of those who left stay, as many
// as deploys have replaced. Without this every beat would step over all of them.
//
// A number may be committed after a higher one, and lower ones come again when the
// clock is set back and the rows of those who left are gone. So the search begins in
// front now and then, and when somebody beats who is before the last. Until then two
// may lead, which costs work and nothing else. Who leads itself looks more often: it
// is the one of the two that has to find out, and only one pays for it.
type leader struct {
	mu    sync.Mutex
	last  job.WorkerID
	beats int
}

// After how many beats the search begins in front: about ten minutes, and one minute
// for who leads itself.
const (
	leaderAnew  = 120
	leadingAnew = 12
)

// From is where the search begins for a worker that beats.
func (l *leader) From(w job.WorkerID) job.WorkerID {
	l.mu.Lock()
	defer l.mu.Unlock()
	anew := leaderAnew
	if w == l.last {
		anew = leadingAnew
	}
	if l.beats++; l.beats%anew == 0 || w < l.last {
		l.last = 0
	}
	return l.last
}

func (l *leader) found(w job.WorkerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = w
}
