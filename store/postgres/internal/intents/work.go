package intents

import (
	"context"
	"time"

	"github.com/pawlwork/pawl/store"
)

// laterLooks are the pauses between looks after a transaction has left intents
// whose end is not seen: none is found later than twice the time its transaction
// took. After the last of them, the sweep finds it.
var laterLooks = []time.Duration{
	20 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond, 160 * time.Millisecond,
	320 * time.Millisecond, 640 * time.Millisecond, 1280 * time.Millisecond, 2560 * time.Millisecond,
}

// atOnce is how many intents one transaction of this loop applies.
const atOnce = 200

// Committed says that a transaction with intents has committed, here or elsewhere.
func (r *Room) Committed() { give(r.committed) }

// Left says that a transaction has left intents whose end will not be seen.
func (r *Room) Left() { give(r.left) }

func give(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Start begins to apply. The namespace is known.
func (r *Room) Start() {
	r.stopped = make(chan struct{})
	go r.work()
}

// Stop lets others know of what was committed and will not be applied here. No
// call is under way any more.
func (r *Room) Stop() {
	if r.stopped != nil && len(r.committed)+len(r.left) > 0 {
		r.hints.Notifier.Say(store.Hint{Subject: store.SubjectIntent})
	}
}

// Await waits until nothing is applied any more: the store is ending.
func (r *Room) Await() {
	if r.stopped != nil {
		<-r.stopped
	}
}

// work looks when there is reason to. Nothing depends on it: the sweep finds what
// it misses.
func (r *Room) work() {
	defer close(r.stopped)
	ctx := r.pg.Ending
	next := len(laterLooks)
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.left:
			if next != 0 { // else the first look is on its way
				next = 0
				timer.Reset(laterLooks[0])
			}
			continue
		case <-timer.C:
			if next++; next < len(laterLooks) {
				timer.Reset(laterLooks[next])
			}
		case <-r.committed:
		}
		r.applyFresh(ctx)
	}
}

// applyFresh applies what has come since the last look, until there is no more.
// Where one transaction does not take them all, others are asked to help.
func (r *Room) applyFresh(ctx context.Context) {
	for more, told := true, false; more; {
		reply, err := r.apply(ctx, want{kinds: r.Known(), limit: atOnce, from: r.begin()})
		if err != nil {
			r.pg.Logger.Debug("intents were not applied, the sweep goes on", "error", err)
			return
		}
		if len(reply.PutOff) > 0 || reply.More && reply.Applied == 0 {
			r.Left() // what somebody else is at, or held up, may soon be free
		}
		more = reply.More && reply.Applied+len(reply.PutOff) > 0
		if more && !told {
			told = true
			r.hints.Notifier.Say(store.Hint{Subject: store.SubjectIntent})
		}
	}
}
