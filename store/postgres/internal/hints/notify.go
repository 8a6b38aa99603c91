package hints

import (
	"context"
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

// notifier tells other processes of commits, after them and one message at a
// time: NOTIFY inside each transaction would make them wait for each other.
type notifier struct {
	room *Room
	pace pg.Pace // for transactions of users

	mu      sync.Mutex
	pending map[store.Hint]bool // besides what told holds
	told    Set
	wake    chan struct{}
	quit    chan struct{}
	stopped chan struct{}

	sending     context.Context // ends lastWord after stop
	stopSending context.CancelFunc
}

func startNotifier(r *Room) *notifier {
	n := &notifier{room: r, pace: pg.Pace{Every: throttle}, wake: make(chan struct{}, 1), quit: make(chan struct{}), stopped: make(chan struct{})}
	n.sending, n.stopSending = context.WithCancel(r.pg.Ending)
	go n.work()
	return n
}

// tell passes hints on.
func (n *notifier) tell(told Set) {
	n.mu.Lock()
	n.told.Join(told)
	n.mu.Unlock()
	n.wakeUp()
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
	n.mu.Lock()
	if n.pending == nil {
		n.pending = map[store.Hint]bool{}
	}
	n.pending[hint] = true
	n.mu.Unlock()
	n.wakeUp()
}

func (n *notifier) wakeUp() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *notifier) work() {
	defer close(n.stopped)
	gap := time.NewTimer(0)
	defer gap.Stop()
	for {
		select {
		case <-n.wake:
		case <-n.quit:
			n.send(1)
			return
		}
		select {
		case <-gap.C:
		case <-n.quit:
			n.send(1)
			return
		}
		n.send(notifyTries)
		gap.Reset(notifyEvery)
	}
}

const (
	// notifyTries is how often a message is sent that may not have got through.
	notifyTries = 3
	// closeGrace bounds how long a store that closes goes on telling.
	closeGrace = time.Second
)

// notifyOthers sends a message. Its commit need not reach the disk: nothing else
// is written. It waits for other commits that notify for as long as it may: nobody
// waits for it, and behind a slow disk the lock_timeout of a session is soon over.
const notifyOthers = `SELECT
	set_config('synchronous_commit', 'off', true),
	set_config('lock_timeout', '0', true),
	pg_notify($1, $2)`

// send tells what has gathered. A message that does not get through is not
// missed: it is a hint.
func (n *notifier) send(tries int) {
	n.mu.Lock()
	pending, told := n.pending, n.told
	n.pending, n.told = nil, nil
	n.mu.Unlock()
	if len(pending)+len(told) == 0 {
		return
	}
	m := message{By: n.room.instance}
	for hint := range pending {
		m.add(hint)
	}
	for name, due := range told {
		m.add(name.hint(due))
	}
	ctx, cancel := context.WithTimeout(n.sending, n.room.pg.TryTimeout)
	defer cancel()
	tell := &pg.Statement{Text: notifyOthers, Args: []any{n.room.channel(), m.encode()}}
	for try := 1; ; try++ {
		err := n.room.pg.Send(ctx, n.room.pg.Work, nil, tell)
		switch {
		case err == nil || ctx.Err() != nil:
			return
		case try == tries || !pg.Pause(ctx, try):
			n.room.pg.Logger.Debug("a notification was not sent; others will find out by polling", "error", err)
			return
		}
	}
}

func (n *notifier) stop() {
	close(n.quit)
	defer time.AfterFunc(closeGrace, n.stopSending).Stop()
	<-n.stopped
	n.stopSending()
}

// channel is where the processes of a namespace hear each other. Channels belong
// to the database, so its name says which schema it is about.
func (r *Room) channel() string {
	h := fnv.New64a()
	h.Write([]byte(r.pg.Schema))
	return "pawl_" + strconv.FormatUint(h.Sum64(), 36) + "_" + strconv.Itoa(int(r.pg.Namespace))
}
