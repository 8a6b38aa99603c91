package storetest

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// sharer is a worker that shares totals.
type sharer struct {
	*hand
	version int64 // that it was told last
}

// share registers a worker with totals.
func (d *database) share(totals ...store.Total) *sharer {
	d.Helper()
	var queues []string
	for _, t := range totals {
		queues = append(queues, t.Queue)
	}
	w := &hand{d: d, store: d.Store, offer: everything}
	w.id = must[job.WorkerID](d, "register")(d.Store.Register(d.ctx, store.Worker{
		Label: "sharer", Queues: queues, Totals: totals, Offer: everything, LostAfter: lostAfter,
	}))
	return &sharer{hand: w}
}

// hear beats: it stores the version that the worker was told last, and returns
// what it is told now.
func (w *sharer) hear() store.Beaten {
	w.d.Helper()
	answer := must[store.Beaten](w.d, "beat")(w.store.Beat(w.d.ctx, store.Beat{Worker: w.id, Splits: true, Version: w.version}))
	w.known, w.version = answer.Now, answer.Version
	return answer
}

// settled says of each in turn, by one beat, whether it may use more.
func settled(workers ...*sharer) []bool {
	var list []bool
	for _, w := range workers {
		list = append(list, w.hear().Settled)
	}
	return list
}

func split() []testCase {
	x := func(total, workers int) store.Total { return store.Total{Queue: "x", Total: total, Workers: workers} }
	y := func(total, workers int) store.Total { return store.Total{Queue: "y", Total: total, Workers: workers} }
	return []testCase{
		{name: "J18_BeatTellsWhoSharesATotal", run: func(d *database) {
			a, b, c := d.share(x(8, 2), y(5, 1)), d.share(y(4, 3)), d.share(y(5, 9), x(8, 8))
			d.hire("x", "y") // has no total, and is nobody's business
			equal(d, "first", a.hear().Crews, map[string]store.Crew{
				"x": {Total: 8, Workers: []int{2, 8}}, "y": {Total: 4, Workers: []int{1, 3, 9}},
			})
			equal(d, "second", b.hear().Crews, map[string]store.Crew{"y": {Total: 4, Workers: []int{1, 3, 9}, Index: 1}})
			equal(d, "third", c.hear().Crews, map[string]store.Crew{
				"x": {Total: 8, Workers: []int{2, 8}, Index: 1}, "y": {Total: 4, Workers: []int{1, 3, 9}, Index: 2},
			})
			if err := d.Store.Deregister(d.ctx, a.id); err != nil {
				d.Fatal(err)
			}
			equal(d, "after one left", c.hear().Crews, map[string]store.Crew{
				"x": {Total: 8, Workers: []int{8}}, "y": {Total: 4, Workers: []int{3, 9}, Index: 1},
			})
			d.lose(b.hand, c.hand)
			equal(d, "after one was lost", c.hear().Crews, map[string]store.Crew{
				"x": {Total: 8, Workers: []int{8}}, "y": {Total: 5, Workers: []int{9}},
			})
		}},
		{name: "J18_WithoutTotalsNothingIsTold", run: func(d *database) {
			w := d.hire()
			d.share(x(1, 1))
			answer := w.beat()
			equal(d, "version", answer.Version, 0)
			equal(d, "crews", len(answer.Crews), 0)
			b := d.share(x(1, 1))
			before := b.hear().Version
			d.hire("x")
			equal(d, "a worker without totals changed the version", b.hear().Version, before)
		}},
		{name: "J18_ANewcomerWaitsUntilTheOthersHaveStoredItsVersion", run: func(d *database) {
			a := d.share(x(4, 4))
			equal(d, "alone", settled(a), []bool{true})
			equal(d, "alone again", settled(a), []bool{true})
			b := d.share(x(4, 4))
			equal(d, "the newcomer, before the other has heard", settled(b, b), []bool{false, false})
			a.hear() // it hears now, and has stored the old version
			equal(d, "the newcomer, before the other has stored it", settled(b), []bool{false})
			a.hear()
			equal(d, "the newcomer, after that", settled(b, b), []bool{true, true})
			equal(d, "the other", settled(a), []bool{true})
		}},
		{name: "J18_AnAnswerThatWasLostStoresNothingNew", run: func(d *database) {
			a := d.share(x(4, 4))
			a.hear()
			a.hear()
			b := d.share(x(4, 4))
			b.hear()
			old := a.version
			for range 3 { // the answers do not arrive: it goes on splitting by the old version
				a.hear()
				a.version = old
			}
			equal(d, "the newcomer", settled(b), []bool{false})
		}},
		{name: "J18_ALateBeatOfAnOlderVersionSettlesNothing", run: func(d *database) {
			a := d.share(x(4, 4))
			a.hear()
			old := a.version
			b := d.share(x(4, 4))
			a.hear()
			a.hear()
			equal(d, "before", settled(b), []bool{true})
			must[store.Beaten](d, "beat")(d.Store.Beat(d.ctx, store.Beat{Worker: a.id, Splits: true, Version: old}))
			equal(d, "after", settled(b), []bool{false})
		}},
		{name: "J18_WhoeverLeavesOrIsLostChangesTheVersion", run: func(d *database) {
			a, b, c, e := d.share(x(4, 4)), d.share(x(4, 4)), d.share(x(4, 4)), d.share(x(4, 4))
			versions := map[int64]bool{a.hear().Version: true}
			if err := d.Store.Deregister(d.ctx, b.id); err != nil {
				d.Fatal(err)
			}
			versions[a.hear().Version] = true
			equal(d, "marked dead", must[int](d, "mark dead")(d.Store.MarkDead(d.ctx, []job.WorkerID{c.id})), 1)
			versions[a.hear().Version] = true
			d.lose(e.hand, a.hand)
			versions[a.hear().Version] = true
			equal(d, "versions", len(versions), 4)
			for _, w := range []*sharer{b, c, e} { // gone already
				if err := d.Store.Deregister(d.ctx, w.id); err != nil {
					d.Fatal(err)
				}
			}
			must[int](d, "mark dead")(d.Store.MarkDead(d.ctx, []job.WorkerID{b.id, c.id, e.id}))
			versions[a.hear().Version] = true
			equal(d, "versions, after nothing changed", len(versions), 4)
		}},
		{name: "J18_APortionIsFreeWhenItsWorkerHoldsNoRun", run: func(d *database) {
			a, b := d.share(x(4, 4)), d.share(x(4, 4))
			d.one(onQueue("x"))
			equal(d, "claimed", len(b.ask(store.QueueClaim{Queue: "x", Limit: 1, Start: 1}).Jobs), 1)
			equal(d, "both live", settled(a, b, a, b, a), []bool{false, false, false, true, true})
			must[int](d, "mark dead")(d.Store.MarkDead(d.ctx, []job.WorkerID{b.id}))
			equal(d, "while its run is not rescued", settled(a, a), []bool{false, false})
			equal(d, "rescued", d.rescue(), store.Rescued{Waiting: 1})
			equal(d, "after that", settled(a), []bool{true})
			c := d.share(x(4, 4))
			equal(d, "claimed", len(c.ask(store.QueueClaim{Queue: "x", Limit: 1, Start: 1}).Jobs), 1)
			if err := d.Store.Deregister(d.ctx, c.id); err != nil {
				d.Fatal(err)
			}
			equal(d, "left with a run", settled(a, a), []bool{false, false})
			d.rescue()
			equal(d, "without", settled(a), []bool{true})
		}},
	}
}
