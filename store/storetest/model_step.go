package storetest

import (
	"fmt"
	"slices"
	"strconv"

	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// The steps of a program that move jobs. Each draws what to do, does it in the
// model and in every store, and compares the answers.

// modelQueues names the queues of one program; the last keeps nothing.
func modelQueues(program int) []string {
	n := strconv.Itoa(program)
	return []string{"a" + n, "b" + n, "c" + n}
}

func keyedQueues(program int) []string {
	n := strconv.Itoa(program)
	return []string{"d" + n, "e" + n}
}

func (p *program) enqueue(t *rapid.T) {
	var list []modelDraft
	for range choose(t, "drafts", 1, 2, 3) {
		d := modelDraft{
			id: job.NewID(), resend: rapid.Bool().Draw(t, "resend"), attempts: 3,
			queue:    choose(t, "queue", append(p.keyed, p.queues...)...),
			kind:     choose(t, "kind", "k", "k", "k", "rare"),
			version:  choose(t, "version", 0, 0, 0, 1),
			priority: choose(t, "priority", 5, 5, 1, 9),
			key:      choose(t, "key", "", "", "x", "y"),
		}
		if slices.Contains(p.keyed, d.queue) {
			d.owner = choose(t, "owner", p.owners()...)
		}
		if d.key != "" {
			d.key = p.prefix + d.key
			d.period = choose(t, "period", 0, 2, 7)
		}
		switch choose(t, "when", "now", "now", "now", "in", "at") {
		case "in":
			d.in = choose(t, "ticks", 1, 2, 3)
		case "at":
			at := p.model.now.tick + choose(t, "ticks", -2, -1, 0, 1, 2, 3)
			d.at = &at
		}
		plain := !d.resend && d.key == "" && d.in == 0 && d.at == nil && d.owner == "" && !slices.Contains(p.keyed, d.queue)
		if plain && !p.model.paused[d.queue] && oneIn(t, 3, "begins") {
			d.beginner, d.outdated = 1+p.mostlyLive(t), oneIn(t, 4, "outdated")
		}
		if oneIn(t, 5, "deadline") {
			deadline := p.model.now.tick + choose(t, "ticks", 1, 2, 5)
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
	for range choose(t, "drafts", 1, 2) {
		d := pick(t, p.sent, "draft")
		if until, buried := p.model.graves[d.id]; buried && !until.after(p.model.now) {
			t.Skip("a grave past its time may be there or not until the next purge")
		}
		d.resend, d.beginner = true, 0
		list = append(list, d)
	}
	p.send(t, list)
}

// accepted is what both sides must agree on about drafts.
type accepted struct {
	Receipts []job.Receipt
	Began    []bool
}

func (p *program) send(t *rapid.T, list []modelDraft) {
	p.sent = append(p.sent, list...)
	play(t, p, fmt.Sprintf("enqueue %v", list), func(m *model) (a accepted, _ error) {
		for _, d := range list {
			a.Receipts = append(a.Receipts, m.enqueue(d))
			began := m.beginAtOnce(d)
			if a.Began = append(a.Began, began); began {
				p.runs = append(p.runs, pastRun{d.beginner - 1, d.queue, store.RunRef{ID: d.id, Run: 1}})
			}
		}
		return a, nil
	}, func(pl *player) (a accepted, err error) {
		var drafts []job.Draft
		takers := make([]*taker, len(list))
		for i, d := range list {
			drafts = append(drafts, pl.draft(d, p.rules(1)))
			if takers[i] = (&taker{}); d.beginner > 0 {
				settings, err := pl.store.Settings(pl.ctx)
				if err != nil {
					return a, err
				}
				if d.outdated {
					settings.Revision--
				}
				drafts[i].HandOver = &job.HandOver{Worker: pl.workers[d.beginner-1], Revision: settings.Revision, Taker: takers[i]}
			}
		}
		a.Receipts, err = pl.store.Enqueue(pl.ctx, drafts)
		for i := range list {
			h, told := takers[i].told()
			if list[i].beginner > 0 && !told {
				t.Fatalf("nobody was told what became of %v", list[i])
			}
			a.Began = append(a.Began, !h.Started.IsZero())
		}
		return a, err
	})
}

// leased is what both sides must agree on about a claimed job.
type leased struct {
	ID    job.ID
	Run   int64
	Begun bool
}

func (p *program) claim(t *rapid.T) {
	c := pastClaim{worker: p.mostlyLive(t), offer: job.Offer{Kinds: map[string]int{"k": choose(t, "newest", 1, 0)}}}
	if rapid.Bool().Draw(t, "knows the rare kind") {
		c.offer.Kinds["rare"] = 1
	}
	c.seq = p.model.workers[c.worker].seq + 1
	for _, q := range p.queues {
		if oneIn(t, 4, "not this queue") {
			continue
		}
		limit := choose(t, "limit", 1, 2, 3, 0)
		c.queues = append(c.queues, store.QueueClaim{Queue: q, Limit: limit, Start: min(limit, choose(t, "start", 3, 3, 1, 0))})
	}
	begun := some(t, p.held(c.worker), "begun")
	p.ask(t, c, begun)
	p.claims = append(p.claims, c)
	if oneIn(t, 4, "answer lost") {
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
		return inOrder(list, repeat || c.rules != nil), nil
	}, func(pl *player) ([]leased, error) {
		claimed, err := pl.store.Claim(pl.ctx, store.Claim{Worker: pl.workers[c.worker], Seq: c.seq, Queues: c.queues, Offer: c.offer, Begun: begun, Gates: c.rules})
		var list []leased
		for _, j := range claimed.Jobs {
			list = append(list, leased{j.ID, j.Run, j.Begun})
		}
		return inOrder(list, repeat || c.rules != nil), err
	})
	if repeat && len(got) > 0 {
		p.runs = p.runs[:len(p.runs)-len(got)] // known already
	}
}

func (p *program) finish(t *rapid.T) {
	var ends []modelEnd
	var queues []string
	w := -1
	for range choose(t, "ends", 1, 1, 2, 3) {
		runs := p.running(w)
		if oneIn(t, 6, "any run there was") {
			runs = p.runs
		}
		r := pick(t, runs, "run")
		if w < 0 {
			w = r.worker
			if oneIn(t, 16, "impostor") {
				w = p.worker(t, anyWorker)
			}
		}
		e := modelEnd{id: r.ID, run: r.Run}
		if oneIn(t, 16, "off by one") {
			e.run += int64(choose(t, "by", -1, 1))
		}
		switch choose(t, "outcome", "done", "done", "failed", "failed", "dead", "snooze", "back", "deferred", "parked", "called") {
		case "done":
			e.to, e.result = job.Done, choose(t, "result", "", "result")
		case "failed":
			e.to, e.failure, e.delay = job.Waiting, "failure", choose(t, "backoff", 0, 1, 2)
		case "dead":
			e.to, e.failure, e.reason = job.Dead, "last failure", "gave up"
		case "snooze":
			e.to, e.snooze, e.delay, e.reason = job.Waiting, true, choose(t, "snooze", 0, 1, 2), choose(t, "reason", "", "later")
		case "back":
			e.to = job.Waiting
		case "deferred":
			e.to, e.deferred, e.delay = job.Waiting, true, choose(t, "again", 0, 1)
		case "parked":
			e.to, e.reason, e.wait = job.Suspended, "x", choose(t, "wait", job.Parked, job.Parked, job.Wait(7))
		case "called":
			e.to, e.reason = job.Cancelled, "cancelled while running"
		}
		ends, queues = append(ends, e), append(queues, r.queue)
	}
	if p.lossy && !p.model.workers[w].live() {
		t.Skip("whether a lost worker ended its run itself cannot be told")
	}
	var before []job.Verdict
	for range choose(t, "times", 1, 1, 1, 2) { // the answer was lost: finishing again changes nothing
		if before != nil && rapid.Bool().Draw(t, "says that it was sent before") {
			for i := range ends {
				ends[i].again = before[i] == job.Applied
			}
		}
		before = play(t, p, fmt.Sprintf("finish of worker %d: %+v", w, ends), func(m *model) ([]job.Verdict, error) {
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
func (p *program) operate(what string, expect func(*model, job.ID) store.Change, step func(*player, []job.ID) ([]store.Change, error), meant ...job.State) func(*rapid.T) {
	return func(t *rapid.T) {
		list := p.ids(t, meant...)
		play(t, p, fmt.Sprintf("%s %v", what, list), func(m *model) ([]store.Change, error) {
			var changes []store.Change
			for _, id := range list {
				changes = append(changes, expect(m, id))
			}
			return changes, nil
		}, func(pl *player) ([]store.Change, error) { return step(pl, list) })
	}
}
