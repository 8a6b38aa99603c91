package storetest

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// The steps of a program that move jobs. Each draws what to do, does it in the
// model and in every store, and compares the answers.

var modelQueues = []string{"a", "b", forgetful}

func (p *program) enqueue(t *rapid.T) {
	var list []modelDraft
	for range rapid.IntRange(1, 3).Draw(t, "drafts") {
		d := modelDraft{
			id: job.NewID(), resend: rapid.Bool().Draw(t, "resend"), attempts: 3,
			queue:    rapid.SampledFrom(modelQueues).Draw(t, "queue"),
			kind:     rapid.SampledFrom([]string{"k", "k", "k", "rare"}).Draw(t, "kind"),
			version:  rapid.IntRange(0, 1).Draw(t, "version"),
			priority: rapid.SampledFrom([]int{5, 5, 1, 9}).Draw(t, "priority"),
			key:      rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(t, "key"),
		}
		if d.key != "" {
			d.period = rapid.SampledFrom([]int{0, 2, 7}).Draw(t, "period")
		}
		switch rapid.SampledFrom([]string{"now", "now", "in", "at"}).Draw(t, "when") {
		case "in":
			d.in = rapid.IntRange(1, 4).Draw(t, "ticks")
		case "at":
			at := p.model.now.tick + rapid.IntRange(-2, 4).Draw(t, "ticks")
			d.at = &at
		}
		if rapid.IntRange(0, 4).Draw(t, "deadline") == 4 {
			deadline := p.model.now.tick + rapid.IntRange(1, 5).Draw(t, "ticks")
			d.deadline = &deadline
		}
		list = append(list, d)
	}
	if len(list) > 1 && rapid.Bool().Draw(t, "swap ids") { // ids need not arrive in their order
		list[0].id, list[1].id = list[1].id, list[0].id
	}
	p.send(t, list)
}

// resend repeats drafts that were sent before, as one does whose answer was lost.
func (p *program) resend(t *rapid.T) {
	var list []modelDraft
	for range rapid.IntRange(1, 2).Draw(t, "drafts") {
		d := pick(t, p.sent, "draft")
		if until, buried := p.model.graves[d.id]; buried && !until.after(p.model.now) {
			t.Skip("a grave past its time may be there or not until the next purge")
		}
		d.resend = true
		list = append(list, d)
	}
	p.send(t, list)
}

func (p *program) send(t *rapid.T, list []modelDraft) {
	p.sent = append(p.sent, list...)
	play(t, p, fmt.Sprintf("enqueue %v", list), func(m *model) ([]job.Receipt, error) {
		var receipts []job.Receipt
		for _, d := range list {
			receipts = append(receipts, m.enqueue(d))
		}
		return receipts, nil
	}, func(pl *player) ([]job.Receipt, error) {
		var drafts []job.Draft
		for _, d := range list {
			drafts = append(drafts, pl.draft(d))
		}
		return pl.store.Enqueue(pl.ctx, drafts)
	})
}

// leased is what both sides must agree on about a claimed job.
type leased struct {
	ID    job.ID
	Run   int64
	Begun bool
}

func (p *program) claim(t *rapid.T) {
	c := pastClaim{worker: p.worker(t, anyWorker), offer: job.Offer{Kinds: map[string]int{"k": rapid.IntRange(0, 1).Draw(t, "newest")}}}
	if rapid.Bool().Draw(t, "knows the rare kind") {
		c.offer.Kinds["rare"] = 1
	}
	c.seq = p.model.workers[c.worker].seq + 1
	for _, q := range some(t, modelQueues, "queue") {
		limit := rapid.IntRange(0, 4).Draw(t, "limit")
		c.queues = append(c.queues, store.QueueClaim{Queue: q, Limit: limit, Start: rapid.IntRange(0, limit).Draw(t, "start")})
	}
	begun := some(t, p.held(c.worker), "begun")
	p.ask(t, c, begun)
	p.claims = append(p.claims, c)
	if rapid.IntRange(0, 3).Draw(t, "answer lost") == 3 {
		p.ask(t, c, begun)
	}
}

// claimAgain repeats an older claim: it gives what is left of it, and nothing new.
func (p *program) claimAgain(t *rapid.T) {
	p.ask(t, pick(t, p.claims, "claim"), nil)
}

func (p *program) ask(t *rapid.T, c pastClaim, begun []store.RunRef) {
	repeat := c.seq <= p.model.workers[c.worker].seq
	what := fmt.Sprintf("claim %d of worker %d: %+v %v", c.seq, c.worker, c.queues, c.offer)
	got := play(t, p, what, func(m *model) ([]leased, error) {
		jobs, ok := m.claim(c.worker, c.seq, c.queues, c.offer)
		if !ok {
			return nil, job.ErrWorkerLost
		}
		if !repeat {
			m.begin(c.worker, begun)
		}
		var list []leased
		for _, j := range jobs {
			list = append(list, leased{j.id, j.run, j.begun})
			p.runs = append(p.runs, pastRun{c.worker, j.queue, store.RunRef{ID: j.id, Run: j.run}})
		}
		return inOrder(list, repeat), nil
	}, func(pl *player) ([]leased, error) {
		claimed, err := pl.store.Claim(pl.ctx, store.Claim{Worker: pl.workers[c.worker], Seq: c.seq, Queues: c.queues, Offer: c.offer, Begun: begun})
		var list []leased
		for _, j := range claimed.Jobs {
			list = append(list, leased{j.ID, j.Run, j.Begun})
		}
		return inOrder(list, repeat), err
	})
	if repeat && len(got) > 0 {
		p.runs = p.runs[:len(p.runs)-len(got)] // known already
	}
}

func (p *program) finish(t *rapid.T) {
	var ends []modelEnd
	var queues []string
	w := -1
	for range rapid.IntRange(1, 3).Draw(t, "ends") {
		r := pick(t, p.runs, "run")
		if w < 0 {
			w = r.worker
			if rapid.IntRange(0, 9).Draw(t, "impostor") == 9 {
				w = p.worker(t, anyWorker)
			}
		}
		e := modelEnd{id: r.ID, run: r.Run}
		if rapid.IntRange(0, 9).Draw(t, "off by one") == 9 {
			e.run += int64(rapid.SampledFrom([]int{-1, 1}).Draw(t, "by"))
		}
		switch rapid.SampledFrom([]string{"done", "done", "failed", "failed", "dead", "snooze", "back", "parked", "called"}).Draw(t, "outcome") {
		case "done":
			e.to, e.result = job.Done, rapid.SampledFrom([]string{"", "result"}).Draw(t, "result")
		case "failed":
			e.to, e.failure, e.delay = job.Waiting, "failure", rapid.IntRange(0, 3).Draw(t, "backoff")
		case "dead":
			e.to, e.failure, e.reason = job.Dead, "last failure", "gave up"
		case "snooze":
			e.to, e.snooze, e.delay = job.Waiting, true, rapid.IntRange(0, 3).Draw(t, "snooze")
		case "back":
			e.to = job.Waiting
		case "parked":
			e.to, e.reason = job.Suspended, "parked: x"
		case "called":
			e.to, e.reason = job.Cancelled, "cancelled while running"
		}
		ends, queues = append(ends, e), append(queues, r.queue)
	}
	for range 1 + rapid.IntRange(0, 3).Draw(t, "answer lost")/3 { // finishing again changes nothing
		play(t, p, fmt.Sprintf("finish of worker %d: %+v", w, ends), func(m *model) ([]job.Verdict, error) {
			var verdicts []job.Verdict
			for _, e := range ends {
				verdicts = append(verdicts, m.finish(w, e))
			}
			return verdicts, nil
		}, func(pl *player) ([]job.Verdict, error) {
			var list []job.End
			for i, e := range ends {
				list = append(list, e.end(queues[i]))
			}
			return pl.store.Finish(pl.ctx, pl.workers[w], list)
		})
	}
}

// operate is one of the operator's verbs.
func (p *program) operate(what string, expect func(*model, job.ID) store.Change, step func(*player, []job.ID) ([]store.Change, error)) func(*rapid.T) {
	return func(t *rapid.T) {
		list := p.ids(t)
		play(t, p, fmt.Sprintf("%s %v", what, list), func(m *model) ([]store.Change, error) {
			var changes []store.Change
			for _, id := range list {
				changes = append(changes, expect(m, id))
			}
			return changes, nil
		}, func(pl *player) ([]store.Change, error) { return step(pl, list) })
	}
}
