//go:build fault

package fault

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// phase is where a failover stands.
type phase int

const (
	kept   phase = iota // the standby will have it
	doomed              // it may be on the dead primary only
	saved               // the promoted one has taken over
)

// answer is what a sender was told about one number.
type answer int

const (
	accepted answer = iota
	unknown         // whether it was
	refused
)

// load hands in numbered Effect jobs all the time, through a failover, and keeps account of the answers.
type load struct {
	t       *testing.T
	e       *pawl.Engine
	senders sync.WaitGroup
	end     context.CancelFunc

	mu      sync.Mutex
	changed *sync.Cond
	now     phase
	in      int // accepted in this phase
	next    int
	answers map[int]answer
	certain map[int]bool // accepted, and not while the standby was cut off
}

func startLoad(t *testing.T, e *pawl.Engine) *load {
	l := &load{t: t, e: e, answers: map[int]answer{}, certain: map[int]bool{}}
	l.changed = sync.NewCond(&l.mu)
	ctx, end := context.WithCancel(t.Context())
	l.end = end
	for range 4 {
		l.senders.Go(func() { l.send(ctx) })
	}
	return l
}

func (l *load) send(ctx context.Context) {
	for ctx.Err() == nil {
		l.mu.Lock()
		n, begun := l.next, l.now
		l.next++
		l.mu.Unlock()
		_, err := l.e.Enqueue(context.WithoutCancel(ctx), Effect{n})
		l.mu.Lock()
		switch {
		case err == nil:
			l.answers[n] = accepted
			l.certain[n] = l.now == kept || begun == saved
			if begun == l.now {
				l.in++
			}
		case errors.Is(err, pawl.ErrOutcomeUnknown):
			l.answers[n] = unknown
		case errors.Is(err, store.ErrUnavailable):
			l.answers[n] = refused
		default:
			l.t.Errorf("sending failed with an error that says neither: %v", err)
		}
		l.changed.Broadcast()
		l.mu.Unlock()
	}
}

// enter begins a phase.
func (l *load) enter(p phase) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now, l.in = p, 0
}

// await waits until so many jobs were accepted in this phase.
func (l *load) await(n int) {
	l.t.Helper()
	late := time.AfterFunc(awaitLimit, l.changed.Broadcast)
	defer late.Stop()
	begin := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.in < n {
		if time.Since(begin) >= awaitLimit {
			l.t.Fatalf("%d jobs were accepted in %v, want %d", l.in, awaitLimit, n)
		}
		l.changed.Wait()
	}
}

func (l *load) stop() {
	l.end()
	l.senders.Wait()
}

// judge compares what the senders were told with what the database holds that survived.
func (l *load) judge(g *ground, synchronous bool) {
	l.t.Helper()
	rows, jobs := map[int]int{}, map[int]int{}
	for _, n := range g.rows() {
		rows[n]++
	}
	var reruns int64
	for _, j := range g.jobs() {
		var args struct{ N int }
		if err := json.Unmarshal(j.Args, &args); err != nil {
			l.t.Fatal(err)
		}
		jobs[args.N]++
		reruns += j.Run - 1
		if j.State != job.Done || rows[args.N] != 1 {
			l.t.Errorf("number %d is %s and has %d rows, want it done, once", args.N, j.State, rows[args.N])
		}
	}
	count := map[answer]int{}
	missing := 0
	for n, told := range l.answers {
		count[told]++
		switch {
		case rows[n] > 0 && jobs[n] == 0:
			l.t.Errorf("number %d has a row and no job", n)
		case jobs[n] > 1:
			l.t.Errorf("number %d has %d jobs", n, jobs[n])
		case told == refused && jobs[n] > 0:
			l.t.Errorf("number %d was refused and has a job", n)
		case told == accepted && jobs[n] == 0:
			if missing++; synchronous || l.certain[n] {
				l.t.Errorf("number %d was accepted and has no job", n)
			}
		}
	}
	if !synchronous && missing == 0 {
		l.t.Error("the standby missed nothing: the test proves nothing")
	}
	l.t.Logf("%d accepted (%d of them only by the dead primary), %d unknown, %d refused; %d runs again",
		count[accepted], missing, count[unknown], count[refused], reruns)
}
