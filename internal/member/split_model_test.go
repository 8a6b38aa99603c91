package member_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/internal/member"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

// peer is one process of a simulated cluster. It does what members and their hosts do with the totals, and nothing else.
type peer struct {
	id      job.WorkerID
	total   store.Total
	version int64
	portion int // that it uses
	beat    *sentBeat
	seq     int64 // of its claims
	runs    []job.ID
}

// sentBeat is on its way to the store, or its answer is on its way back.
type sentBeat struct {
	worker  job.WorkerID
	version int64
	done    bool
	answer  store.BeatReply
	err     error
}

// leftRun is a run that its worker left behind.
type leftRun struct {
	job    job.ID
	worker job.WorkerID
}

// cluster is peers that share one total, in any order of events.
type cluster struct {
	t     *rapid.T
	ctx   context.Context
	store store.Store
	peers []*peer
	late  []*sentBeat // given up by their senders, and still under way
	gone  []job.WorkerID
	left  []leftRun // by processes that are no more, as many of each as its portion
	did   []string
}

const sharedQueue, sharedTotal = "q", 5

// TestJ18_PortionsNeverAddUpToMoreThanTheTotal lets workers come, leave, die and be declared lost while they beat, with
// beats and answers that are late, lost, or carried out after their sender has given up. Some leave runs behind, which are
// taken back later. There are ghosts: processes that die before they hear of anything, and are not declared lost. Whatever
// happens, the portions in use and what was left behind never add up to more than the total; and when it is over, all
// of the total is in use, and nothing of it by ghosts.
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
			{2, c.ghost}, {4, c.work}, {1, c.rescue},
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
	sum := len(c.left)
	for _, p := range c.peers {
		sum += p.portion
	}
	if sum > sharedTotal {
		for _, did := range c.did {
			c.t.Log(did)
		}
		c.t.Fatalf("portions and %d runs that were left behind add up to %d, the total is %d", len(c.left), sum, sharedTotal)
	}
}

// ghost is a process that dies before it hears of anything. Nobody declares it lost.
func (c *cluster) ghost() {
	p := &peer{total: store.Total{Queue: sharedQueue, Total: 1, Workers: 6}}
	c.register(p)
	if rapid.Bool().Draw(c.t, "beats") {
		c.do(&sentBeat{worker: p.id})
	}
}

// work lets a peer claim what its portion has room for.
func (c *cluster) work() {
	p := c.any(func(p *peer) bool { return len(p.runs) < p.portion })
	if p == nil {
		return
	}
	n := p.portion - len(p.runs)
	drafts := make([]job.Draft, n)
	for i := range drafts {
		drafts[i] = job.Draft{ID: job.NewID(), Kind: "k", Queue: sharedQueue, Priority: 5, Attempts: 5}
	}
	if _, err := c.store.Enqueue(c.ctx, drafts); err != nil {
		c.t.Fatal(err)
	}
	p.seq++
	claimed, err := c.store.Claim(c.ctx, store.Claim{
		Worker: p.id, Seq: p.seq, Offer: job.Offer{Kinds: map[string]int{"k": 0}}, Queues: []store.QueueClaim{{Queue: sharedQueue, Limit: n, Start: n}},
	})
	if err != nil && !errors.Is(err, job.ErrWorkerLost) {
		c.t.Fatal(err)
	}
	for _, j := range claimed.Jobs {
		p.runs = append(p.runs, j.ID)
	}
	c.say("%d runs %d", p.id, len(p.runs))
}

// abandon leaves the runs of a peer behind. What it began under a larger portion may run over the total.
func (c *cluster) abandon(p *peer) {
	for _, id := range p.runs[:min(len(p.runs), p.portion)] {
		c.left = append(c.left, leftRun{id, p.id})
	}
	p.runs, p.portion = nil, 0
}

// rescue takes back some of what was left behind, of those who are declared lost.
func (c *cluster) rescue() {
	rescued, err := c.store.Rescue(c.ctx, rapid.IntRange(1, 3).Draw(c.t, "rescued"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.say("%d taken back", rescued.Total())
	var left []leftRun
	for _, run := range c.left {
		jobs, err := c.store.Get(c.ctx, []job.ID{run.job})
		if err != nil {
			c.t.Fatal(err)
		}
		if jobs[0].State == job.Running && jobs[0].Worker == run.worker {
			left = append(left, run)
		}
	}
	c.left = left
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
	p := &peer{total: store.Total{
		Queue: sharedQueue, Total: sharedTotal, Workers: rapid.IntRange(1, 6).Draw(c.t, "workers"),
		Weight: rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(c.t, "weight"),
	}}
	c.register(p)
	c.peers = append(c.peers, p)
}

func (c *cluster) register(p *peer) {
	id, err := c.store.Register(c.ctx, store.Worker{Label: "peer", Queues: []string{sharedQueue}, Totals: []store.Total{p.total}, LostAfter: time.Hour})
	if err != nil {
		c.t.Fatal(err)
	}
	p.id, p.version, p.portion, p.beat, p.seq, p.runs = id, 0, 0, nil, 0, nil
	c.say("%d comes with %d workers and weight %d", id, p.total.Workers, p.total.Weight)
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
	p.version, p.portion = b.answer.Version, member.Portion(sharedQueue, p.portion, b.answer)
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
		c.abandon(p)
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
		c.abandon(p)
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
		c.abandon(p)
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
	for len(c.left) > 0 {
		c.rescue()
		c.check()
	}
	if _, err := c.store.Rescue(c.ctx, 1000); err != nil { // what was left beyond the portions
		c.t.Fatal(err)
	}
	for range 4 + 2*len(c.peers) {
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
