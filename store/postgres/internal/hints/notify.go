package hints

import (
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
)

// notifier gathers what a namespace has to tell other processes of its commits,
// after them: NOTIFY inside each transaction would make them wait for each other.
// The wire sends it.
type notifier struct {
	room *Room
	pace pg.Pace // for transactions of users

	mu      sync.Mutex
	pending map[store.Hint]bool // besides what told holds
	told    Set
	some    bool
}

func newNotifier(r *Room) *notifier { return &notifier{room: r, pace: pg.Pace{Every: throttle}} }

// tell passes hints on.
func (n *notifier) tell(told Set) {
	n.add(func() { n.told.Join(told) })
}

// Cancel says that some run was asked to cancel.
func (n *notifier) Cancel() { n.Say(store.Hint{Subject: store.SubjectJob}) }

// Members says that a worker with totals came, left or was lost.
func (n *notifier) Members() { n.Say(store.Hint{Subject: store.SubjectMembers}) }

// Settings says that something was declared, set or paused.
func (n *notifier) Settings() { n.Say(store.Hint{Subject: store.SubjectSetting}) }

// Look says that a queue should be looked at.
func (n *notifier) Look(queue string) {
	n.Say(store.Hint{Subject: store.SubjectQueue, Name: queue})
}

// Say passes on a hint that lowers no frontier.
func (n *notifier) Say(hint store.Hint) {
	n.add(func() {
		if n.pending == nil {
			n.pending = map[store.Hint]bool{}
		}
		n.pending[hint] = true
	})
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
	pending, told := n.pending, n.told
	n.some, n.pending, n.told = false, nil, nil
	n.mu.Unlock()
	m := message{By: n.room.instance}
	for hint := range pending {
		m.add(hint)
	}
	for name, due := range told {
		m.add(name.hint(due))
	}
	return m.encode()
}

// channel is where the processes of a namespace hear each other. Channels belong
// to the database, so its name says which schema it is about.
func (r *Room) channel() string {
	h := fnv.New64a()
	h.Write([]byte(r.pg.Schema))
	return "pawl_" + strconv.FormatUint(h.Sum64(), 36) + "_" + strconv.Itoa(int(r.pg.Namespace))
}
