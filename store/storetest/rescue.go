package storetest

import (
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func rescue() []testCase {
	limited := store.Settings{MaxLost: 2, Keep: func(string) job.Keep { return keep }}
	return []testCase{
		{name: "J12_LostWorkersJobsGoBack", run: func(d *database) {
			id := d.one()
			w := d.hire()
			w.begin()
			equal(d, "rescued from a live worker", d.rescue(), store.RescueReply{})
			d.lose(w)
			from := d.now()
			equal(d, "rescued", d.rescue(), store.RescueReply{Waiting: 1})
			got := d.get(id)
			within(d, "due", got.Due, from, d.now())
			equal(d, "state", got.State, job.Waiting)
			equal(d, "used, lost, rescues", [3]int{got.Used, got.Lost, got.Rescues}, [3]int{0, 1, 1})
			if len(got.Failures.List()) != 1 || got.Failures.List()[0].Worker != w.id || got.Failures.List()[0].Run != 1 {
				d.Errorf("failures %+v, want one of worker %d and run 1", got.Failures, w.id)
			}
			equal(d, "rescued twice", d.rescue(), store.RescueReply{})
			equal(d, "run", d.hire().take().Run, 2)
		}},
		{name: "J12_OnlyBegunRunsCountAsLost", run: func(d *database) {
			d.enqueue(drafts(4)...)
			w := d.hire()
			got := w.ask(store.QueueClaim{Queue: queue, Limit: 4, Start: 1}).Jobs
			w.beat(ref(got[1]))
			must[store.ClaimReply](d, "claim")(d.Store.Claim(d.ctx, store.Claim{Worker: w.id, Seq: 2, Offer: everything, Begun: []store.RunRef{ref(got[2])}}))
			d.lose(w)
			equal(d, "rescued", d.rescue(), store.RescueReply{Waiting: 4})
			var lost, rescues []int
			for _, j := range got {
				now := d.get(j.ID)
				lost, rescues = append(lost, now.Lost), append(rescues, now.Rescues)
			}
			equal(d, "lost", lost, []int{0, 1, 1, 0}) // the first was claimed to start, and may not have
			equal(d, "rescues", rescues, []int{1, 1, 1, 1})
		}},
		{name: "P2_BegunIsFenced", run: func(d *database) {
			d.one()
			w, v := d.hire(), d.hire()
			got := w.ask(store.QueueClaim{Queue: queue, Limit: 1}).Jobs[0]
			v.beat(ref(got)) // not its own
			w.beat(store.RunRef{ID: got.ID, Run: got.Run + 1}, store.RunRef{ID: job.NewID(), Run: 1})
			d.lose(w, v)
			d.rescue()
			equal(d, "lost", d.get(got.ID).Lost, 0)
		}},
		{name: "J12_LostTooOftenIsDead", settings: limited, run: func(d *database) {
			id := d.one(once("x", 0))
			for i := range 2 {
				w := d.hire()
				w.begin()
				d.lose(w)
				equal(d, "rescued", d.rescue(), []store.RescueReply{{Waiting: 1}, {Dead: 1}}[i])
			}
			got := d.get(id)
			equal(d, "state", got.State, job.Dead)
			equal(d, "used, lost", [2]int{got.Used, got.Lost}, [2]int{0, 2})
			equal(d, "kept for", got.Expires.Sub(got.Finished), keep.Dead)
			if got.Reason == "" {
				d.Error("a dead job has no reason")
			}
			d.one(once("x", 0))
		}},
		{name: "J28_WhoDiesOfItsLossesIsNamed", settings: limited, run: func(d *database) {
			id := d.one()
			want := []store.RescueReply{{Waiting: 1}, {Dead: 1}}
			for i := range 2 {
				w := d.hire()
				w.begin()
				d.lose(w)
				if want[i].Dead > 0 {
					want[i].Deaths = []store.Death{{ID: id, Kind: kind, Queue: queue, Run: 2, Attempt: 1, MaxAttempts: 5, Reason: "lost with its worker 2 times"}}
				}
				equal(d, "rescued", must[store.RescueReply](d, "rescue")(d.Store.Rescue(d.ctx, 10)), want[i])
			}
		}},
		{name: "J12_FiveLossesByDefault", run: func(d *database) {
			id := d.one()
			for i := range job.MaxLost {
				equal(d, "state before", d.get(id).State, job.Waiting)
				w := d.hire()
				w.begin()
				d.lose(w)
				d.rescue()
				equal(d, "lost", d.get(id).Lost, i+1)
			}
			equal(d, "state", d.get(id).State, job.Dead)
			equal(d, "kept for", d.get(id).Expires.Sub(d.get(id).Finished), job.KeepDead)
		}},
		{name: "J12_ClaimsThatKillTheirProcessKillNoJob", run: func(d *database) {
			id := d.one()
			for range 2 * job.MaxLost {
				w := d.hire()
				w.take() // it dies of the answer: no handler begins
				d.lose(w)
				equal(d, "rescued", d.rescue(), store.RescueReply{Waiting: 1})
			}
			got := d.get(id)
			equal(d, "lost", got.Lost, 0)
			equal(d, "failures", len(got.Failures.List()), 0)
		}},
		{name: "J12_AskedToCancelIsCancelled", run: func(d *database) {
			id := d.one()
			w := d.hire()
			w.take()
			d.cancel(id)
			d.lose(w)
			equal(d, "rescued", d.rescue(), store.RescueReply{Cancelled: 1})
			equal(d, "state", d.get(id).State, job.Cancelled)
		}},
		{name: "P10_BoundedAndRepeatable", run: func(d *database) {
			d.enqueue(drafts(10)...)
			w := d.hire()
			w.claim(10)
			d.lose(w)
			var counts []int
			for {
				r := must[store.RescueReply](d, "rescue")(d.Store.Rescue(d.ctx, 4))
				if r.Total() == 0 {
					break
				}
				counts = append(counts, r.Total())
			}
			equal(d, "rescued", counts, []int{4, 4, 2})
			equal(d, "waiting", d.count(job.Waiting), 10)
		}},
		{name: "J12_LiveColleaguesKeepTheirs", run: func(d *database) {
			d.enqueue(drafts(2)...)
			w, v := d.hire(), d.hire()
			lost, kept := w.take(), v.take()
			d.lose(w, v)
			equal(d, "rescued", d.rescue(), store.RescueReply{Waiting: 1})
			equal(d, "states", d.states(lost.ID, kept.ID), []job.State{job.Waiting, job.Running})
			v.end(kept, job.Done)
		}},
		{name: "J12_WhoAsksIsToldWhetherThereIsSomethingToRescue", run: func(d *database) {
			d.enqueue(drafts(2)...)
			w, v := d.hire(), d.hire()
			w.take()
			v.take()
			orphans := func() bool {
				return must[store.MarkLostReply](d, "lose")(v.store.MarkLost(d.ctx, store.MarkLostRequest{By: v.id})).Orphans
			}
			equal(d, "while both live", orphans(), false)
			if err := d.Store.Deregister(d.ctx, w.id); err != nil {
				d.Fatal(err)
			}
			equal(d, "after one has left its run", orphans(), true)
			d.rescue()
			equal(d, "after the rescue", orphans(), false)
		}},
		{name: "J12_LosingCountsOnce", run: func(d *database) {
			d.hire()
			d.hire()
			w := d.hire()
			w.beat()
			d.advance(lostAfter / 2)
			equal(d, "lost early", w.declare(), 0)
			d.advance(lostAfter)
			w.beat()
			equal(d, "lost", w.declare(), 2)
			equal(d, "lost again", w.declare(), 0)
			w.beat()
		}},
		{name: "J12_EachByItsOwnLimit", run: func(d *database) {
			patient := must[job.WorkerID](d, "register")(d.Store.Register(d.ctx, store.Worker{Queues: []string{queue}, LostAfter: 10 * lostAfter}))
			w := d.hire()
			d.lose(w)
			must[store.BeatReply](d, "beat")(d.Store.Beat(d.ctx, store.Beat{Worker: patient}))
		}},
		{name: "J12_TheDeclarerWasSteadyForAsLongAsTheOtherMayBeSilent", run: func(d *database) {
			patient := must[job.WorkerID](d, "register")(d.Store.Register(d.ctx, store.Worker{Queues: []string{queue}, LostAfter: 10 * lostAfter}))
			d.hire()
			w := d.hire()
			d.advance(11 * lostAfter)
			w.beat()
			equal(d, "lost, by one that was not steady", w.declareAfter(lostAfter-1), 0)
			equal(d, "lost, by one that was steady for its own time", w.declareAfter(lostAfter), 1)
			equal(d, "lost, by one that was steady for nearly the other's", w.declareAfter(10*lostAfter-time.Microsecond), 0)
			must[store.BeatReply](d, "beat")(d.Store.Beat(d.ctx, store.Beat{Worker: patient}))
			d.advance(11 * lostAfter)
			w.beat()
			equal(d, "lost, by one that was steady for the other's", w.declareAfter(10*lostAfter), 1)
		}},
		{name: "J12_TheDeadAreLostAtOnce", run: func(d *database) {
			id := d.one()
			w, v := d.hire(), d.hire()
			w.take()
			w.beat()
			equal(d, "lost", must[int](d, "mark dead")(d.Store.MarkDead(d.ctx, []job.WorkerID{w.id, 999})), 1)
			equal(d, "lost again", must[int](d, "mark dead")(d.Store.MarkDead(d.ctx, []job.WorkerID{w.id})), 0)
			equal(d, "lost, of none", must[int](d, "mark dead")(d.Store.MarkDead(d.ctx, nil)), 0)
			_, err := d.Store.Beat(d.ctx, store.Beat{Worker: w.id})
			means(d, "beat", err, job.ErrWorkerLost)
			equal(d, "rescued", d.rescue(), store.RescueReply{Waiting: 1})
			equal(d, "state", d.get(id).State, job.Waiting)
			v.beat()
		}},
		{name: "J12_NeighboursAreThoseOfTheMachine", run: func(d *database) {
			on := func(machine string, process int) store.Worker {
				return store.Worker{Label: machine, Machine: machine, Process: process, Start: "5 time", Queues: []string{queue}, LostAfter: lostAfter}
			}
			register := func(w store.Worker) job.WorkerID {
				return must[job.WorkerID](d, "register")(d.Store.Register(d.ctx, w))
			}
			me := register(on("here", 1))
			near, gone, dead := register(on("here", 2)), register(on("here", 3)), register(on("here", 4))
			register(on("", 7))
			if err := d.Store.Deregister(d.ctx, gone); err != nil {
				d.Fatal(err)
			}
			must[int](d, "mark dead")(d.Store.MarkDead(d.ctx, []job.WorkerID{dead}))
			d.rescue() // which finds that the lost hold nothing
			lost := must[store.MarkLostReply](d, "lose")(d.Store.MarkLost(d.ctx, store.MarkLostRequest{By: me, Machine: "here"}))
			// A store with proof of its own may name more.
			lost.Neighbours = slices.DeleteFunc(lost.Neighbours, func(n store.Neighbour) bool { return n.Machine != "here" })
			equal(d, "lost", lost, store.MarkLostReply{Neighbours: []store.Neighbour{{ID: near, Label: "here", Machine: "here", Process: 2, Start: "5 time"}}})
			lost = must[store.MarkLostReply](d, "lose")(d.Store.MarkLost(d.ctx, store.MarkLostRequest{By: me}))
			equal(d, "lost, of one that cannot tell", lost, store.MarkLostReply{})
			_, err := d.Store.MarkLost(d.ctx, store.MarkLostRequest{By: dead, Machine: "here"})
			means(d, "lose of a lost worker", err, job.ErrWorkerLost)
		}},
		{name: "J32_ClockStepsBackLoseNobody", run: func(d *database) {
			id := d.one()
			w, v := d.hire(), d.hire()
			w.take()
			d.advance(-10 * time.Minute)
			v.beat()
			equal(d, "lost", v.declare(), 0)
			equal(d, "rescued", d.rescue(), store.RescueReply{})
			equal(d, "state", d.get(id).State, job.Running)
			w.beat()
		}},
		{name: "J32_ClockStepsForwardLoseNobody", run: func(d *database) {
			w, v := d.hire(), d.hire()
			v.beat()
			d.advance(2 * lostAfter) // between two beats of each
			equal(d, "lost", v.declare(), 0)
			w.beat()
			v.beat()
			equal(d, "lost", v.declare(), 0)
		}},
		{name: "J32_BeatThatIsNotAnsweredYetDeclaresNobodyLost", run: func(d *database) {
			w, v := d.hire(), d.hire()
			v.beat()
			before := v.known
			d.advance(2 * lostAfter)
			v.beat()
			v.known = before // the answer is still on its way: v has not met the step of the clock
			equal(d, "lost", v.declare(), 0)
			w.beat()
		}},
		{name: "J32_WhoDiedBeforeAStepBackIsLostInTime", run: func(d *database) {
			id := d.one()
			w, v := d.hire(), d.hire()
			w.take()
			d.advance(-10 * time.Minute)
			v.beat()
			equal(d, "lost at the step", v.declare(), 0)
			d.advance(lostAfter + lostAfter/2)
			v.beat()
			equal(d, "lost", v.declare(), 1)
			equal(d, "rescued", d.rescue(), store.RescueReply{Waiting: 1})
			equal(d, "state", d.get(id).State, job.Waiting)
		}},
	}
}
