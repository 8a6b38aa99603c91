package storetest

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// What the model knows of keys: some queues have a limit for each key. A claim asks for
// more than there is, so whose turn it is does not matter: it takes all that the limit
// lets through, whichever way the stores found it.

// modelLimit bounds how many jobs of each key of a queue run at once.
type modelLimit struct {
	most    int
	ordered bool
}

// modelKey is one key of a queue.
type modelKey struct{ queue, key string }

// modelKeys are those that jobs have; without one a job is not bounded.
var modelKeys = []string{"", "x", "y"}

// more than a program ever has waiting.
const moreThanAll = 200

// through lists what a claim takes of a queue that has a limit.
func (m *model) through(queue string, l modelLimit, offer job.Offer) (list []*modelJob) {
	for _, key := range modelKeys {
		if of := (modelKey{queue, key}); key == "" {
			list = append(list, m.ofKey(m.ready(queue, offer), key)...)
		} else if l.ordered {
			list = append(list, m.nextInOrder(of, offer)...)
		} else {
			ready := m.ofKey(m.ready(queue, offer), key)
			list = append(list, ready[:min(len(ready), max(l.most-m.runningOf(of), 0))]...)
		}
	}
	return list
}

// nextInOrder is the job of a key whose turn it is, if it can be taken. The one that was
// taken last comes first as long as it has not ended.
func (m *model) nextInOrder(of modelKey, offer job.Offer) []*modelJob {
	if m.runningOf(of) > 0 {
		return nil
	}
	anybody := job.Offer{Kinds: map[string]int{"k": 1, "rare": 1}}
	turn := m.ofKey(m.ready(of.queue, anybody), of.key)
	waits := 0
	for _, j := range m.jobs {
		if j.queue == of.queue && j.owner == of.key && j.state == job.Waiting {
			waits++
		}
	}
	if head := m.jobs[m.heads[of]]; head != nil && !head.state.Final() {
		if i := slices.Index(turn, head); i >= 0 {
			turn = turn[i : i+1]
		} else {
			turn = nil
		}
	} else if waits > 0 {
		delete(m.heads, of) // whoever looks forgets it
	}
	if len(turn) == 0 || !slices.Contains(m.ready(of.queue, offer), turn[0]) {
		return nil
	}
	m.heads[of] = turn[0].id
	return turn[:1]
}

func (m *model) ofKey(jobs []*modelJob, key string) (list []*modelJob) {
	for _, j := range jobs {
		if j.owner == key {
			list = append(list, j)
		}
	}
	return list
}

func (m *model) runningOf(of modelKey) (n int) {
	for _, j := range m.jobs {
		if j.state == job.Running && j.queue == of.queue && j.owner == of.key {
			n++
		}
	}
	return n
}

// rules are the limits as claims bring them. The one of nobody is another each time, so
// that the stores look afresh: what they remember of gates only saves work, and when they
// look again is measured in real time, which programs do not have.
func (p *program) rules(fresh int64) *job.GateRules {
	limits := map[string]job.LimitSettings{"nobody": {Queue: "nobody", Concurrent: int(fresh)}}
	for queue, l := range p.model.limits {
		limits[queue] = job.LimitSettings{Queue: queue, PerKey: true, Concurrent: l.most, Ordered: l.ordered}
	}
	return job.NewGateRules(limits)
}

// claimKeys claims from one of the queues with a limit: in a store that loses answers a
// claim ends with the first transaction whose answer it had to look for.
func (p *program) claimKeys(t *rapid.T) {
	c := pastClaim{worker: p.mostlyLive(t), offer: job.Offer{Kinds: map[string]int{"k": choose(t, "newest", 1, 1, 0)}}}
	if !oneIn(t, 3, "does not know the rare kind") {
		c.offer.Kinds["rare"] = 1
	}
	if oneIn(t, 4, "limit changes") {
		p.model.limits[p.keyed[0]] = modelLimit{most: choose(t, "most", 1, 2, 3)}
	}
	c.seq = p.model.workers[c.worker].seq + 1
	c.queues = []store.QueueClaim{{Queue: choose(t, "queue", p.keyed...), Limit: moreThanAll, Start: moreThanAll}}
	c.rules = p.rules(int64(len(p.claims)) + 1)
	p.ask(t, c, nil)
	p.claims = append(p.claims, c)
	if oneIn(t, 4, "answer lost") {
		p.ask(t, c, nil)
	}
}

// owners are the keys that jobs may have. Where answers are lost all have one: see
// claimKeys.
func (p *program) owners() []string {
	if p.lossy {
		return modelKeys[1:]
	}
	return modelKeys
}
