package hints

import (
	"hash/fnv"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/pawlwork/pawl/store"
)

const (
	// notifyEvery is the shortest time between two notifications of a process.
	// What is told in between is told together.
	notifyEvery = 10 * time.Millisecond
	// leftWait is how long after a transaction of a user has left something everybody is told to look for it. Most of
	// them have committed by then. What commits later is found by the looks that follow a hint from outside (after 0.1,
	// 0.5 and 2 s), and then by a poll. It also bounds how often: whatever is left meanwhile is told with it.
	leftWait = 50 * time.Millisecond
)

// notifier gathers what a namespace has to tell other processes of its commits,
// after them: NOTIFY inside each transaction would make them wait for each other.
// The wire sends it.
type notifier struct {
	room *Room

	mu      sync.Mutex
	pending map[store.Hint]bool // besides what told holds
	told    Set
	left    map[store.Hint]bool // by transactions whose end is not seen
	soon    *time.Timer         // until it is told; nil while nothing was left
	public  map[store.Hint]bool // what was left and is to be told now
	some    bool
}

func newNotifier(r *Room) *notifier { return &notifier{room: r} }

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

// Left has everybody told soon, this process too, that a transaction whose end is not seen has left something.
func (n *notifier) Left(hint store.Hint) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.soon == nil {
		n.left, n.soon = map[store.Hint]bool{}, time.AfterFunc(leftWait, n.tellLeft)
	}
	n.left[hint] = true
}

// tellLeft passes on what was left.
func (n *notifier) tellLeft() {
	n.add(func() {
		if n.soon == nil {
			return
		}
		n.soon.Stop()
		if n.public == nil {
			n.public = map[store.Hint]bool{}
		}
		maps.Copy(n.public, n.left)
		n.left, n.soon = nil, nil
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

// take is what has gathered: a message for others, and one for everybody.
func (n *notifier) take() (messages []string) {
	n.mu.Lock()
	pending, told, public := n.pending, n.told, n.public
	n.some, n.pending, n.told, n.public = false, nil, nil, nil
	n.mu.Unlock()
	own, all := message{By: n.room.instance}, message{}
	for hint := range pending {
		own.add(hint)
	}
	for name, due := range told {
		own.add(name.hint(due))
	}
	for hint := range public {
		all.add(hint)
	}
	for _, m := range []*message{&own, &all} {
		if len(m.Hints) > 0 {
			messages = append(messages, m.encode())
		}
	}
	return messages
}

// channel is where the processes of a namespace hear each other. Channels belong
// to the database, so its name says which schema it is about.
func (r *Room) channel() string {
	h := fnv.New64a()
	h.Write([]byte(r.pg.Schema))
	return "pawl_" + strconv.FormatUint(h.Sum64(), 36) + "_" + strconv.Itoa(int(r.pg.Namespace))
}
