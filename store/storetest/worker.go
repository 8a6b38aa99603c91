package storetest

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func workers() []testCase {
	return []testCase{
		{name: "J12_EachBootHasItsOwnNumber", run: func(d *database) {
			a, b := d.hire(), d.hire()
			if a.id <= 0 || b.id <= a.id {
				d.Errorf("workers %d and %d: numbers ascend from 1", a.id, b.id)
			}
			if err := d.Store.Deregister(d.ctx, b.id); err != nil {
				d.Fatal(err)
			}
			if c := d.hire(); c.id <= b.id {
				d.Errorf("worker %d after worker %d left: a number is never given twice", c.id, b.id)
			}
		}},
		{name: "J12_RegistryShowsThem", run: func(d *database) {
			from := d.now()
			w := d.hire("a", "b")
			d.one(onQueue("a"))
			w.ask(store.QueueClaim{Queue: "a", Limit: 1, Start: 1})
			list := must[[]store.WorkerInfo](d, "registry")(d.Store.Registry(d.ctx))
			if len(list) != 1 {
				d.Fatalf("%d workers, want 1", len(list))
			}
			got := list[0]
			within(d, "started", got.Started, from, d.now())
			within(d, "beat", got.Beat, from, d.now())
			want := store.WorkerInfo{ID: w.id, Running: 1, Started: got.Started, Beat: got.Beat, Worker: store.Worker{
				Label: "test-worker-1-a", Host: "host", Process: 7, Queues: []string{"a", "b"}, Offer: everything, LostAfter: lostAfter,
			}}
			equal(d, "worker", got, want)
		}},
		{name: "J12_RegistryShowsMachineAndTotals", run: func(d *database) {
			want := store.Worker{
				Label: "w", Process: 7, Machine: "kernel pid:[1] host", Start: "99 time:[1]", Queues: []string{"a"}, Slots: []int{2},
				Totals: []store.Total{{Queue: "a", Total: 4, Workers: 2, Weight: 3}}, Offer: everything, LostAfter: lostAfter,
			}
			must[job.WorkerID](d, "register")(d.Store.Register(d.ctx, want))
			list := must[[]store.WorkerInfo](d, "registry")(d.Store.Registry(d.ctx))
			if len(list) != 1 {
				d.Fatalf("%d workers, want 1", len(list))
			}
			equal(d, "worker", list[0].Worker, want)
		}},
		{name: "J12_BeatRenewsTheLease", run: func(d *database) {
			w, v := d.hire(), d.hire()
			d.one()
			w.take()
			for range 5 {
				d.advance(lostAfter / 2)
				w.beat()
				v.beat()
				equal(d, "lost", v.declare(), 0)
			}
			equal(d, "rescued", d.rescue(), store.RescueReply{})
		}},
		{name: "J30_TheFirstThatLivesLeads", run: func(d *database) {
			a, b, c := d.hire(), d.hire(), d.hire()
			leads := func(w *employee, splits bool) bool {
				d.Helper()
				return must[store.BeatReply](d, "beat")(d.Store.Beat(d.ctx, store.Beat{Worker: w.id, Splits: splits})).Leader
			}
			for _, splits := range []bool{false, true} {
				equal(d, "who leads", []bool{leads(a, splits), leads(b, splits), leads(c, splits)}, []bool{true, false, false})
			}
			d.one()
			a.take()
			if err := d.Store.Deregister(d.ctx, a.id); err != nil { // its row stays: a job names it
				d.Fatal(err)
			}
			equal(d, "who leads after the leader left", []bool{leads(b, false), leads(c, true)}, []bool{true, false})
			equal(d, "lost", must[int](d, "mark dead")(d.Store.MarkDead(d.ctx, []job.WorkerID{b.id})), 1)
			last := d.hire()
			equal(d, "who leads after the leader was lost", []bool{leads(c, true), leads(last, false)}, []bool{true, false})
			equal(d, "rescued", d.rescue().Total(), 1)
		}},
		{name: "U3_ARemoteWorkerDoesNotLead", run: func(d *database) {
			far := must[job.WorkerID](d, "register")(d.Store.Register(d.ctx, store.Worker{
				Label: "far", Remote: true, Queues: []string{queue}, Slots: []int{1}, Offer: everything, LostAfter: lostAfter,
			}))
			near := d.hire()
			for _, splits := range []bool{false, true} {
				b := must[store.BeatReply](d, "beat")(d.Store.Beat(d.ctx, store.Beat{Worker: near.id, Splits: splits}))
				equal(d, "the first that is not remote leads", b.Leader, true)
			}
			for _, info := range must[[]store.WorkerInfo](d, "registry")(d.Store.Registry(d.ctx)) {
				equal(d, "remote", info.Worker.Remote, info.ID == far)
			}
		}},
		{name: "BeatTellsTheStoresTime", run: func(d *database) {
			w := d.hire()
			from := d.now()
			within(d, "now", w.beat().Now, from, d.now())
		}},
		{name: "J12_LostWorkerIsTold", run: func(d *database) {
			w := d.hire()
			d.lose(w)
			_, err := d.Store.Beat(d.ctx, store.Beat{Worker: w.id})
			means(d, "beat of a lost worker", err, job.ErrWorkerLost)
			_, err = d.Store.Beat(d.ctx, store.Beat{Worker: 999})
			means(d, "beat of an unknown worker", err, job.ErrWorkerLost)
			for _, info := range must[[]store.WorkerInfo](d, "registry")(d.Store.Registry(d.ctx)) {
				if info.ID == w.id && !info.Lost {
					d.Error("the registry shows a lost worker as alive")
				}
			}
		}},
		{name: "J10_CancelsReachTheirWorker", run: func(d *database) {
			d.enqueue(drafts(4)...)
			w, v := d.hire(), d.hire()
			held := w.claim(3)
			other := v.take()
			equal(d, "cancels", len(w.beat().Cancels), 0)
			d.cancel(held[1].ID, other.ID)
			want := []store.RunRef{ref(held[1])}
			equal(d, "in the beat", w.beat().Cancels, want)
			equal(d, "asked for", must[[]store.RunRef](d, "cancels")(d.Store.Cancels(d.ctx, w.id)), want)
			equal(d, "again", must[[]store.RunRef](d, "cancels")(d.Store.Cancels(d.ctx, w.id)), want)
			w.end(held[1], job.Cancelled)
			equal(d, "after its end", must[[]store.RunRef](d, "cancels")(d.Store.Cancels(d.ctx, w.id)), nil)
			equal(d, "the other worker's", must[[]store.RunRef](d, "cancels")(d.Store.Cancels(d.ctx, v.id)), []store.RunRef{ref(other)})
		}},
		{name: "J12_DeregisteredWorkersJobsAreRescued", run: func(d *database) {
			id := d.one()
			w := d.hire()
			held := w.take()
			if err := d.Store.Deregister(d.ctx, w.id); err != nil {
				d.Fatal(err)
			}
			equal(d, "rescued", d.rescue(), store.RescueReply{Waiting: 1})
			equal(d, "state", d.get(id).State, job.Waiting)
			equal(d, "verdict of the late finish", must[[]job.Verdict](d, "finish")(d.Store.Finish(d.ctx, w.id, []job.End{ending(held, job.Done)})), []job.Verdict{job.Stale})
			equal(d, "run", d.hire().take().Run, 2)
		}},
		{name: "DeregisterTwice", run: func(d *database) {
			w := d.hire()
			for range 2 {
				if err := d.Store.Deregister(d.ctx, w.id); err != nil {
					d.Errorf("deregister: %v", err)
				}
			}
			equal(d, "workers", len(must[[]store.WorkerInfo](d, "registry")(d.Store.Registry(d.ctx))), 0)
		}},
	}
}
