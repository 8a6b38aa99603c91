package supervise

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// State is where a service is in its life; the package documentation has the diagram.
type State string

// The states. Stopped, done and failed are final.
const (
	StateNew        State = "new"        // not started yet
	StateRunning    State = "running"    // its function runs
	StateWaiting    State = "waiting"    // a tick between two cycles
	StateRestarting State = "restarting" // failed, its policy's pause is running
	StateStopping   State = "stopping"   // asked to stop, has not ended yet
	StateStopped    State = "stopped"    // ended because it was asked to, or never started
	StateDone       State = "done"       // ended by itself, returning nil
	StateFailed     State = "failed"     // its policy gave up; Wait returns the error
)

// Status is what one service has done up to the moment of the Snapshot.
type Status struct {
	Name  string // with its groups: "keeper/rescue"
	Kind  Kind
	State State

	Cycles   uint64 // runs begun: of a tick its cycles, of a Loop or Once its calls
	Skipped  uint64 // cycles not run because Leadership said they are not ours
	Errors   uint64 // failed runs, of shards each, panics included
	Panics   uint64 // failed runs that panicked
	Restarts uint64 // restarts by the policy

	LastStart    time.Time     // of the last run begun
	LastDuration time.Duration // of the last run ended
	LastSuccess  time.Time     // end of the last run in which nothing failed
	LastError    string        // at most 1,024 bytes
	LastErrorAt  time.Time
	Next         time.Time // when a waiting tick or a restarting service runs next; zero otherwise

	Shards []ShardStatus // of a sharded tick, in its order
}

// ShardStatus is what one shard of a tick has done.
type ShardStatus struct {
	Name         string
	Errors       uint64 // failed runs, panics included
	FailedInARow int    // since its last success
	SkipsLeft    int    // cycles it will still be skipped for
	LastSuccess  time.Time
	LastError    string // at most 1,024 bytes
}

const maxErrorText = 1024

// ledger is the record of one service. The service's goroutine writes it, Snapshot reads it.
type ledger struct {
	mu       sync.Mutex
	status   Status
	stopping bool
}

func (l *ledger) read() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	status := l.status
	status.Shards = slices.Clone(status.Shards)
	if l.stopping && !status.State.final() {
		status.State = StateStopping
		status.Next = time.Time{}
	}
	return status
}

func (s State) final() bool { return s == StateStopped || s == StateDone || s == StateFailed }

// enter moves the service to another state; next is when it will run, if it is going to.
func (l *ledger) enter(state State, next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.State, l.status.Next = state, next
}

func (l *ledger) runBegan(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.State, l.status.Next = StateRunning, time.Time{}
	l.status.Cycles++
	l.status.LastStart = now
}

func (l *ledger) runEnded(now time.Time, success bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.LastDuration = now.Sub(l.status.LastStart)
	if success {
		l.status.LastSuccess = now
	}
}

func (l *ledger) runSkipped() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.Skipped++
}

func (l *ledger) runFailed(now time.Time, err error) {
	text := errorText(err) // the user's code: not under the lock
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.Errors++
	if isPanic(err) {
		l.status.Panics++
	}
	l.status.LastError, l.status.LastErrorAt = text, now
}

func (l *ledger) restarts(next time.Time) (count uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.State, l.status.Next = StateRestarting, next
	l.status.Restarts++
	return l.status.Restarts
}

// isPanic looks at err itself, not into it: a service may return an error that wraps the panic of
// something else, and that is a plain error here.
func isPanic(err error) bool {
	_, panicked := err.(*PanicError)
	return panicked
}

// errorText is the bounded text of err, also if its Error method panics, which fmt survives.
func errorText(err error) string {
	text := fmt.Sprint(err)
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
	}
	return strings.ToValidUTF8(text, "")
}
