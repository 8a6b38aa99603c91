package runner_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

// peer is one process of a simulated cluster. It does what beatOnce and splitTotals do with the totals, and nothing else.
type peer struct {
	id      job.WorkerID
	total   store.Total
	version int64
	portion int // that it uses
	beat    *sentBeat
}

// sentBeat is on its way to the store, or its answer is on its way back.
type sentBeat struct {
	worker  job.WorkerID
	version int64
	done    bool
	answer  store.Beaten
	err     error
}

// cluster is peers that share one total, in any order of events.
type cluster struct {
	t     *rapid.T
	ctx   context.Context
	store store.Store
	peers []*peer
	late  []*sentBeat // given up by their senders, and still under way
	gone  []job.WorkerID
	did   []string
}

const sharedQueue, sharedTotal = "q", 5

// TestJ18_PortionsNeverAddUpToMoreThanTheTotal lets workers come, leave, die and be declared lost while they beat, with
// beats and answers that are late, lost, or carried out after their sender has given up. Whatever happens, the portions in
// use never add up to more than the total; and when it is over, all of the total is in use.
func TestJ18_PortionsNeverAddUpToMoreThanTheTotal(t *testing.T) {
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		st, err := sqlite.Memory().Open(ctx, store.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		c := &cluster{t: t, ctx: ctx, store: st}
		// Mostly beats, of which most arrive: where nobody ever has a portion, nothing is proven.
		var events []func()
		for _, e := range []struct {
			often int
			do    func()
		}{
			{12, c.wholeBeat}, {3, c.send}, {3, c.carryOut}, {3, c.deliver}, {1, c.loseAnswer}, {1, c.giveUp}, {1, c.carryOutLate},
			{2, c.join}, {1, c.leave}, {1, c.die}, {1, c.bury}, {1, c.cutOff},
		} {
			for range e.often {
				events = append(events, e.do)
			}
		}
		c.join()
		for _, event := range rapid.SliceOfN(rapid.SampledFrom(upTo(len(events))), 40, 200).Draw(t, "events") {
			events[event]()
			c.check()
		}
		c.settle()
	})
}

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// wholeBeat is a beat that takes no time.
func (c *cluster) wholeBeat() {
	if p := c.any(func(p *peer) bool { return p.beat == nil }); p != nil {
		p.beat = &sentBeat{worker: p.id, version: p.version}
		c.do(p.beat)
		c.take(p)
	}
}

func (c *cluster) say(format string, args ...any) {
	c.did = append(c.did, fmt.Sprintf(format, args...))
}

// check is the invariant.
func (c *cluster) check() {
	sum := 0
	for _, p := range c.peers {
		sum += p.portion
	}
	if sum > sharedTotal {
		for _, did := range c.did {
			c.t.Log(did)
		}
		c.t.Fatalf("portions add up to %d, the total is %d", sum, sharedTotal)
	}
}

func (c *cluster) any(which func(*peer) bool) *peer {
	var fit []*peer
	for _, p := range c.peers {
		if which == nil || which(p) {
			fit = append(fit, p)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return rapid.SampledFrom(fit).Draw(c.t, "peer")
}

func (c *cluster) join() {
	if len(c.peers) >= 5 {
		return
	}
	p := &peer{total: store.Total{Queue: sharedQueue, Total: sharedTotal, Workers: rapid.IntRange(1, 6).Draw(c.t, "workers")}}
	c.register(p)
	c.peers = append(c.peers, p)
}

func (c *cluster) register(p *peer) {
	id, err := c.store.Register(c.ctx, store.Worker{Label: "peer", Queues: []string{sharedQueue}, Totals: []store.Total{p.total}, LostAfter: time.Hour})
	if err != nil {
		c.t.Fatal(err)
	}
	p.id, p.version, p.portion, p.beat = id, 0, 0, nil
	c.say("%d comes with %d workers", id, p.total.Workers)
}

func (c *cluster) send() {
	if p := c.any(func(p *peer) bool { return p.beat == nil }); p != nil {
		p.beat = &sentBeat{worker: p.id, version: p.version}
		c.say("%d sends version %d", p.id, p.version)
	}
}

func (c *cluster) do(b *sentBeat) {
	b.done = true
	b.answer, b.err = c.store.Beat(c.ctx, store.Beat{Worker: b.worker, Splits: true, Version: b.version})
	if b.err != nil && !errors.Is(b.err, job.ErrWorkerLost) {
		c.t.Fatal(b.err)
	}
	c.say("beat of %d with version %d: version %d, settled %t, %v %v", b.worker, b.version, b.answer.Version, b.answer.Settled, b.answer.Crews, b.err)
}

func (c *cluster) carryOut() {
	if p := c.any(func(p *peer) bool { return p.beat != nil && !p.beat.done }); p != nil {
		c.do(p.beat)
	}
}

func (c *cluster) deliver() {
	p := c.any(func(p *peer) bool { return p.beat != nil && p.beat.done })
	if p != nil {
		c.take(p)
	}
}

// take takes the answer to a beat over.
func (c *cluster) take(p *peer) {
	b := p.beat
	p.beat = nil
	if b.err != nil { // lost: it begins anew
		c.register(p)
		return
	}
	p.version, p.portion = b.answer.Version, runner.Portion(sharedQueue, p.portion, b.answer)
	c.say("%d is told version %d and uses %d", p.id, p.version, p.portion)
}

func (c *cluster) loseAnswer() {
	if p := c.any(func(p *peer) bool { return p.beat != nil && p.beat.done }); p != nil {
		p.beat = nil
		c.say("the answer to %d is lost", p.id)
	}
}

func (c *cluster) giveUp() {
	if p := c.any(func(p *peer) bool { return p.beat != nil && !p.beat.done }); p != nil {
		c.late, p.beat = append(c.late, p.beat), nil
	}
}

func (c *cluster) carryOutLate() {
	if len(c.late) > 0 {
		c.do(c.late[0])
		c.late = c.late[1:]
	}
}

func (c *cluster) remove(p *peer) {
	for i := range c.peers {
		if c.peers[i] == p {
			c.peers = append(c.peers[:i], c.peers[i+1:]...)
			return
		}
	}
}

func (c *cluster) leave() {
	if p := c.any(nil); p != nil {
		c.remove(p)
		if err := c.store.Deregister(c.ctx, p.id); err != nil {
			c.t.Fatal(err)
		}
		c.say("%d leaves", p.id)
	}
}

// die ends a process; the store learns of it later, if at all.
func (c *cluster) die() {
	if p := c.any(nil); p != nil {
		c.remove(p)
		c.gone = append(c.gone, p.id)
		c.say("%d dies", p.id)
	}
}

func (c *cluster) bury() {
	if len(c.gone) > 0 {
		c.declare(c.gone[0])
		c.gone = c.gone[1:]
	}
}

func (c *cluster) declare(w job.WorkerID) {
	if _, err := c.store.MarkDead(c.ctx, []job.WorkerID{w}); err != nil {
		c.t.Fatal(err)
	}
	c.say("%d is declared lost", w)
}

// cutOff is a worker that lives and is declared lost: it has stopped using its portion before (leaseExpired), and an
// answer that is still on its way to it is older than its lease.
func (c *cluster) cutOff() {
	if p := c.any(nil); p != nil {
		p.portion = 0
		if p.beat != nil && p.beat.done {
			p.beat = nil
		}
		c.say("the lease of %d is over", p.id)
		c.declare(p.id)
	}
}

// settle lets everything that is under way arrive, and requires that nothing of the total is left unused.
func (c *cluster) settle() {
	for len(c.late) > 0 {
		c.carryOutLate()
		c.check()
	}
	for len(c.gone) > 0 {
		c.bury()
		c.check()
	}
	for range 4 {
		for _, p := range c.peers {
			if p.beat == nil {
				p.beat = &sentBeat{worker: p.id, version: p.version}
			}
			if !p.beat.done {
				c.do(p.beat)
			}
			c.take(p)
			c.check()
		}
	}
	used, able := 0, 0
	for _, p := range c.peers {
		used, able = used+p.portion, able+p.total.Workers
	}
	if want := min(able, sharedTotal); used != want {
		c.t.Fatalf("all have heard, and %d of %d are in use", used, want)
	}
}
