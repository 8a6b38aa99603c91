package consumer

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/stream"
)

// stage is where an open delivery is; in one at a time.
type stage uint8

const (
	waiting  stage = iota // behind another of its key
	ready                 // for a slot
	acking                // it has a slot, and runs when its acknowledgement is stored
	running               // a handler works on it
	settling              // its verdict is on its way
	resting               // it failed or was dropped, and is tried again here after a while
)

// task is an open delivery. Its fields are under Consumer.mu.
type task struct {
	delivery *stream.Delivery
	life     *life
	line     *line // in ordered mode
	stage    stage
	place    int // in life.open; -1 when it is not there any more
	failures int
	rest     time.Duration // after its Kept is stored
	until    time.Time     // of resting
}

// line holds the open deliveries of one topic and key in ordered mode, by position.
type line struct {
	key     [2]string
	stripe  int16
	tasks   []*task
	busy    *task // whose handler runs; maybe of a life that is over
	blocked bool  // its stripe is not fetched
}

// insert puts a task in its place: one that was given back comes again before those that
// were behind it.
func (l *line) insert(it *task) {
	i, _ := slices.BinarySearchFunc(l.tasks, it, func(a, b *task) int {
		order, ok := a.delivery.Event.Position.Compare(b.delivery.Event.Position)
		if !ok {
			return -1 // the log was restored meanwhile: what comes later is later
		}
		return order
	})
	l.tasks = slices.Insert(l.tasks, i, it)
}

func (l *line) remove(it *task) {
	l.tasks = slices.DeleteFunc(l.tasks, func(x *task) bool { return x == it })
}

// behind is how many wait for the first.
func (l *line) behind() int { return max(0, len(l.tasks)-1) }

// next is the first, when it may run and does not know it yet.
func (l *line) next() *task {
	if l.busy == nil && len(l.tasks) > 0 && l.tasks[0].stage == waiting {
		return l.tasks[0]
	}
	return nil
}

// Blocked is a key that keeps its stripe from being fetched: too many events of it wait
// behind one.
type Blocked struct {
	Topic, Key string
	Stripe     int16
	Behind     int       // that wait
	Failures   int       // of the first
	Until      time.Time // the first is tried again then; zero: it runs, or is about to
}

func (b Blocked) String() string {
	first := "one that is being handled"
	if !b.Until.IsZero() {
		at := b.Until.UTC().Format(time.RFC3339)
		first = fmt.Sprintf("one that has failed %d times and is tried again at %s", b.Failures, at)
	}
	return fmt.Sprintf("stripe %d is not read: %d events of key %q of %s wait behind %s",
		b.Stripe, b.Behind, b.Key, b.Topic, first)
}

func (l *line) why() Blocked {
	first := l.tasks[0]
	return Blocked{l.key[0], l.key[1], l.stripe, l.behind(), first.failures, first.until}
}
