package hints

import (
	"encoding/json"
	"hash/fnv"
	"strconv"
	"sync"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres/internal/pg"
)

const (
	// notifyEvery is the shortest time between two notifications of a process.
	// What is told in between is told together.
	notifyEvery = 10 * time.Millisecond
	// throttle is the same for each queue within transactions of users, where
	// every notification slows the commit (to less than half the rate, measured).
	throttle = 100 * time.Millisecond
	// maxTold bounds a message; beyond it the message is "look at everything".
	// Postgres takes 8000 bytes.
	maxTold = 7000
)

// message is what processes tell each other. It is never needed: who misses one
// finds out by polling.
type message struct {
	By      string  `json:"by"`
	Hints   []named `json:"hints,omitempty"`
	Cancel  bool    `json:"cancel,omitempty"`
	Members bool    `json:"members,omitempty"`
	Look    bool    `json:"look,omitempty"` // at everything
}

type named struct {
	Queue    string `json:"q"`
	Priority int    `json:"p,omitempty"`
	Due      int64  `json:"d,omitempty"` // microseconds since the epoch
}

// notifier gathers what a namespace has to tell other processes of its commits,
// after them: NOTIFY inside each transaction would make them wait for each other.
// The wire sends it.
type notifier struct {
	room *Room
	pace pg.Pace // for transactions of users

	mu      sync.Mutex
	pending message
	told    Set
	some    bool
}

func newNotifier(r *Room) *notifier { return &notifier{room: r, pace: pg.Pace{Every: throttle}} }

// tell passes hints on.
func (n *notifier) tell(told Set) {
	n.add(func() { n.told.Join(told) })
}

// Cancel says that some run was asked to cancel.
func (n *notifier) Cancel() { n.add(func() { n.pending.Cancel = true }) }

// Members says that a worker with totals came, left or was lost.
func (n *notifier) Members() { n.add(func() { n.pending.Members = true }) }

// Look says that a queue should be looked at.
func (n *notifier) Look(queue string) {
	n.add(func() { n.pending.Hints = append(n.pending.Hints, named{Queue: queue}) })
}

func (n *notifier) add(change func()) {
	n.mu.Lock()
	change()
	known := n.some
	n.some = true
	n.mu.Unlock()
	if !known {
		n.room.wire.add(n)
	}
}

// take is what has gathered, as a message.
func (n *notifier) take() string {
	n.mu.Lock()
	m, told := n.pending, n.told
	n.some, n.pending, n.told = false, message{}, nil
	n.mu.Unlock()
	for name, due := range told {
		m.Hints = append(m.Hints, named{name.Queue, name.Priority, due.UnixMicro()})
	}
	return encode(n.room.instance, m)
}

// encode writes a message of a store.
func encode(by string, m message) string {
	m.By = by
	text, err := json.Marshal(m)
	if err != nil { // strings, numbers and booleans
		panic("postgres: encode a notification: " + err.Error())
	}
	if len(text) > maxTold {
		return encode(by, message{Cancel: m.Cancel, Members: m.Members, Look: true})
	}
	return string(text)
}

// channel is where the processes of a namespace hear each other. Channels belong
// to the database, so its name says which schema it is about.
func (r *Room) channel() string {
	h := fnv.New64a()
	h.Write([]byte(r.pg.Schema))
	return "pawl_" + strconv.FormatUint(h.Sum64(), 36) + "_" + strconv.Itoa(int(r.pg.Namespace))
}

// hear takes a message over: frontiers first, so that a look it wakes sees it.
func (r *Room) hear(text string, tell func(store.Hint)) {
	var m message
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		m = message{Look: true, Members: true} // a message of another build: look, then
	}
	if m.By == r.instance {
		return
	}
	if m.Look {
		r.frontier.Drop()
		tell(store.Hint{})
	}
	for _, h := range m.Hints {
		hint := store.Hint{Queue: h.Queue, Priority: h.Priority}
		if h.Due == 0 {
			r.frontier.Wake(h.Queue)
		} else {
			hint.Due = time.UnixMicro(h.Due).UTC()
			r.frontier.Lower(h.Queue, h.Priority, hint.Due)
		}
		tell(hint)
	}
	if m.Cancel {
		tell(store.Hint{Cancel: true})
	}
	if m.Members {
		tell(store.Hint{Members: true})
	}
}
