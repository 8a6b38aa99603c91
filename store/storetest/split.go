package storetest

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// sharer is a worker that shares totals.
type sharer struct {
	*employee
	version int64 // that it was told last
}

// share registers a worker with totals. It shares them when it has beaten twice.
func (d *database) share(totals ...store.Total) *sharer {
	d.Helper()
	var queues []string
	for _, t := range totals {
		queues = append(queues, t.Queue)
	}
	w := &employee{d: d, store: d.Store, offer: everything}
	w.id = must[job.WorkerID](d, "register")(d.Store.Register(d.ctx, store.Worker{
		Label: "sharer", Queues: queues, Totals: totals, Offer: everything, LostAfter: lostAfter,
	}))
	return &sharer{employee: w}
}

// hear beats: it stores the version that the worker was told last, and returns
// what it is told now.
func (w *sharer) hear() store.BeatReply {
	w.d.Helper()
	answer := must[store.BeatReply](w.d, "beat")(w.store.Beat(w.d.ctx, store.Beat{Worker: w.id, Splits: true, Version: w.version}))
	w.known, w.version = answer.Now, answer.Version
	return answer
}

// hearAgain beats with a version of the caller's choice.
func (w *sharer) hearAgain(version int64) store.BeatReply {
	w.d.Helper()
	told := w.version
	defer func() {
		if told != 0 {
			w.version = told
		}
	}()
	w.version = version
	return w.hear()
}

// agree lets workers beat until all of them share, and each has stored what the
// others know.
func (d *database) agree(workers ...*sharer) {
	d.Helper()
	for range 2 + 2*len(workers) {
		for _, w := range workers {
			w.hear()
		}
	}
	for _, w := range workers {
		answer := w.hear()
		for queue, crew := range answer.Crews {
			if !answer.Settled || !crew.Shares() {
				d.Fatalf("worker %d: settled %t, and its crew of %s is %+v", w.id, answer.Settled, queue, crew)
			}
		}
	}
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
			d.agree(a, b, c)
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
			d.lose(b.employee, c.employee)
			equal(d, "after one was lost", c.hear().Crews, map[string]store.Crew{
				"x": {Total: 8, Workers: []int{8}}, "y": {Total: 5, Workers: []int{9}},
			})
		}},
		{name: "J18_BeatTellsTheWeights", run: func(d *database) {
			weighing := func(t store.Total, weight int) store.Total { t.Weight = weight; return t }
			a, b, c := d.share(x(8, 2), y(5, 1)), d.share(weighing(x(8, 3), 3)), d.share(y(5, 9), weighing(x(8, 8), 1))
			d.agree(a, b, c)
			equal(d, "of those that have one and those that have none", a.hear().Crews, map[string]store.Crew{
				"x": {Total: 8, Workers: []int{2, 3, 8}, Weights: []int{1, 3, 1}}, "y": {Total: 5, Workers: []int{1, 9}},
			})
			b.leave()
			equal(d, "where all are 1", c.hear().Crews["x"], store.Crew{Total: 8, Workers: []int{2, 8}, Index: 1})
		}},
		{name: "J18_AnotherWeightIsAnotherTotal", run: func(d *database) {
			a, b := d.share(x(8, 4)), d.share(x(8, 4))
			d.agree(a, b)
			before := a.hear()
			equal(d, "settled", before.Settled, true)
			changed := x(8, 4)
			changed.Weight = 2
			must[store.BeatReply](d, "beat")(d.Store.Beat(d.ctx, store.Beat{
				Worker: b.id, Splits: true, Version: b.version, Serves: &store.Serves{Queues: []string{"x"}, Totals: []store.Total{changed}},
			}))
			after := a.hear()
			equal(d, "weights", after.Crews["x"].Weights, []int{1, 2})
			if after.Version == before.Version {
				d.Errorf("the registry is of version %d as before", after.Version)
			}
		}},
		{name: "J18_WithoutTotalsNothingIsTold", run: func(d *database) {
			w := d.hire()
			d.agree(d.share(x(1, 1)))
			answer := w.beat()
			equal(d, "version", answer.Version, 0)
			equal(d, "crews", len(answer.Crews), 0)
			b := d.share(x(1, 1))
			b.hear()
			b.hear()
			before := b.hear().Version
			d.hire("x")
			equal(d, "a worker without totals changed the version", b.hear().Version, before)
		}},
		{name: "J18_ANewcomerWaitsUntilTheOthersHaveStoredItsVersion", run: func(d *database) {
			a := d.share(x(4, 4))
			d.agree(a)
			equal(d, "alone again", settled(a), []bool{true})
			b := d.share(x(4, 4))
			b.hear()
			b.hear()
			equal(d, "the newcomer, before the other has heard", settled(b, b), []bool{false, false})
			a.hear() // it hears now, and has stored the old version
			equal(d, "the newcomer, before the other has stored it", settled(b), []bool{false})
			a.hear()
			equal(d, "the newcomer, after that", settled(b, b), []bool{true, true})
			equal(d, "the other", settled(a), []bool{true})
		}},
		{name: "J18_AnAnswerThatWasLostStoresNothingNew", run: func(d *database) {
			a := d.share(x(4, 4))
			d.agree(a)
			b := d.share(x(4, 4))
			b.hear()
			b.hear()
			old := a.version
			for range 3 { // the answers do not arrive: it goes on splitting by the old version
				a.hear()
				a.version = old
			}
			equal(d, "the newcomer", settled(b), []bool{false})
		}},
		{name: "J18_ALateBeatOfAnOlderVersionTakesNothingBack", run: func(d *database) {
			a := d.share(x(4, 4))
			d.agree(a)
			old := a.version
			b := d.share(x(4, 4))
			d.agree(a, b)
			equal(d, "before", settled(b), []bool{true})
			must[store.BeatReply](d, "beat")(d.Store.Beat(d.ctx, store.Beat{Worker: a.id, Splits: true, Version: old}))
			equal(d, "after: the other has heard of the newer one", settled(b), []bool{true})
			c := d.share(x(4, 4))
			for range 3 { // all who share have stored what there is: it is let in
				c.hear()
			}
			equal(d, "crew with one that came then", len(b.hear().Crews["x"].Workers), 3)
		}},
		{name: "J18_WhoHasNotHeardTakesNothing", run: func(d *database) {
			a, b := d.share(x(4, 4)), d.share(x(4, 4))
			d.agree(a, b)
			before := a.hear()
			ghosts := []*sharer{d.share(x(1, 4)), d.share(x(1, 4)), d.share(x(1, 4))} // they die
			ghosts[1].hear()
			ghosts[2].hear()
			equal(d, "crew as one sees it that does not share", ghosts[2].hearAgain(0).Crews, map[string]store.Crew{"x": {Total: 4, Workers: []int{4, 4}, Index: -1}})
			for _, w := range []*sharer{a, b} {
				after := w.hear()
				equal(d, "version", after.Version, before.Version)
				equal(d, "settled", after.Settled, true)
				equal(d, "workers", after.Crews["x"].Workers, []int{4, 4})
				equal(d, "total", after.Crews["x"].Total, 4)
			}
			must[int](d, "mark dead")(d.Store.MarkDead(d.ctx, []job.WorkerID{ghosts[0].id}))
			if err := d.Store.Deregister(d.ctx, ghosts[1].id); err != nil {
				d.Fatal(err)
			}
			d.lose(ghosts[2].employee, a.employee, b.employee)
			equal(d, "version when they are gone", a.hear().Version, before.Version)
			c := d.share(x(4, 4))
			d.share(x(4, 4)).hear()
			d.agree(a, b, c)
			equal(d, "crew with one that lives", a.hear().Crews["x"].Workers, []int{4, 4, 4})
		}},
		{name: "J18_OnlyWhoOthersHaveHeardOfLetsAnotherIn", run: func(d *database) {
			a, dead := d.share(x(4, 4)), d.share(x(4, 4))
			d.agree(a, dead)
			b := d.share(x(4, 4)) // comes when one has died that has stored all there is
			b.hear()
			b.hear()
			equal(d, "crew with the first", len(a.hear().Crews["x"].Workers), 3)
			c := d.share(x(4, 4)) // was told what the dead one has not stored
			for range 3 {
				a.hear()
				b.hear()
				c.hearAgain(c.version)
			}
			equal(d, "crew without the second", len(a.hear().Crews["x"].Workers), 3)
			must[int](d, "mark dead")(d.Store.MarkDead(d.ctx, []job.WorkerID{dead.id}))
			d.agree(a, b, c)
			equal(d, "crew when the dead one is lost", a.hear().Crews["x"].Workers, []int{4, 4, 4})
		}},
		{name: "J18_ALateFirstBeatDoesNotUndoThatItShares", run: func(d *database) {
			a, b := d.share(x(4, 4)), d.share(x(4, 4))
			d.agree(a, b)
			before := b.hear().Version
			b.hearAgain(0)
			equal(d, "crew", a.hear().Crews["x"].Workers, []int{4, 4})
			equal(d, "settled", settled(a, b), []bool{true, true})
			equal(d, "version", a.hear().Version, before)
		}},
		{name: "J18_WhoeverLeavesOrIsLostChangesTheVersion", run: func(d *database) {
			a, b, c, e := d.share(x(4, 4)), d.share(x(4, 4)), d.share(x(4, 4)), d.share(x(4, 4))
			d.agree(a, b, c, e)
			versions := map[int64]bool{a.hear().Version: true}
			if err := d.Store.Deregister(d.ctx, b.id); err != nil {
				d.Fatal(err)
			}
			versions[a.hear().Version] = true
			equal(d, "marked dead", must[int](d, "mark dead")(d.Store.MarkDead(d.ctx, []job.WorkerID{c.id})), 1)
			versions[a.hear().Version] = true
			d.lose(e.employee, a.employee)
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
			a, b := d.share(x(4, 4), y(4, 4)), d.share(x(4, 4))
			d.agree(a, b)
			d.one(onQueue("x"))
			d.one(onQueue("z"))
			d.one(onQueue("y"))
			for _, q := range []string{"x", "y", "z"} { // it has a total for one of them only
				equal(d, "claimed", len(b.ask(store.QueueClaim{Queue: q, Limit: 1, Start: 1}).Jobs), 1)
			}
			held := func() []int {
				crews := a.hear().Crews
				return []int{crews["x"].Held, crews["y"].Held}
			}
			equal(d, "held, of x and y, while it lives", held(), []int{0, 0})
			must[int](d, "mark dead")(d.Store.MarkDead(d.ctx, []job.WorkerID{b.id}))
			equal(d, "while its runs are not rescued", held(), []int{1, 0})
			equal(d, "total", a.hear().Crews["x"].Total, 4)
			equal(d, "rescued", d.rescue(), store.RescueReply{Waiting: 3})
			equal(d, "after that", held(), []int{0, 0})
			c := d.share(x(4, 4))
			d.agree(a, c)
			equal(d, "claimed", len(c.ask(store.QueueClaim{Queue: "x", Limit: 1, Start: 1}).Jobs), 1)
			if err := d.Store.Deregister(d.ctx, c.id); err != nil {
				d.Fatal(err)
			}
			equal(d, "left with a run", held(), []int{1, 0})
			d.rescue()
			equal(d, "without", held(), []int{0, 0})
		}},
		{name: "J18_WhatOneHoldsThatNeverSharedIsNobodysPortion", run: func(d *database) {
			a := d.share(x(4, 4))
			d.agree(a)
			b := d.share(x(4, 4)) // the version of the registry does not tell that it comes or goes
			d.one(onQueue("x"))
			equal(d, "claimed", len(b.ask(store.QueueClaim{Queue: "x", Limit: 1, Start: 1}).Jobs), 1)
			must[int](d, "mark dead")(d.Store.MarkDead(d.ctx, []job.WorkerID{b.id}))
			equal(d, "crew", a.hear().Crews["x"], store.Crew{Total: 4, Workers: []int{4}})
			c := d.share(x(4, 4))
			d.agree(a, c)
			equal(d, "crew of another version", a.hear().Crews["x"], store.Crew{Total: 4, Workers: []int{4, 4}})
		}},
		{name: "J18_WhatALostWorkerHoldsKeepsNobodyFromSharing", run: func(d *database) {
			a, b := d.share(x(4, 4)), d.share(x(4, 4))
			d.agree(a, b)
			d.one(onQueue("x"))
			equal(d, "claimed", len(b.ask(store.QueueClaim{Queue: "x", Limit: 1, Start: 1}).Jobs), 1)
			must[int](d, "mark dead")(d.Store.MarkDead(d.ctx, []job.WorkerID{b.id}))
			c := d.share(x(4, 4), y(2, 2)) // nobody takes the run back meanwhile: its row may be locked
			d.agree(a, c)
			equal(d, "crews of the newcomer", c.hear().Crews, map[string]store.Crew{
				"x": {Total: 4, Held: 1, Workers: []int{4, 4}, Index: 1}, "y": {Total: 2, Workers: []int{2}},
			})
		}},
	}
}
