package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func jobClaim() []testCase {
	return []testCase{
		{name: "J6_PriorityThenDueThenID", run: func(d *database) {
			now := d.now()
			list := []job.Draft{
				draft(priority(9), at(now.Add(time.Minute))),
				draft(priority(5), at(now.Add(3*time.Minute))),
				draft(priority(5), at(now.Add(2*time.Minute))),
				draft(priority(5), at(now.Add(2*time.Minute))),
				draft(priority(1), at(now.Add(9*time.Minute))),
				draft(priority(5), at(now.Add(time.Minute))),
			}
			list[2].ID, list[3].ID = list[3].ID, list[2].ID // ids decide, not the order of arrival
			d.enqueue(list...)
			d.advance(time.Hour)
			want := []job.ID{list[4].ID, list[5].ID, list[3].ID, list[2].ID, list[1].ID, list[0].ID}
			equal(d, "claimed", ids(d.hire().claim(10)), want)
		}},
		{name: "J6_FirstInFirstOut", run: func(d *database) {
			var want []job.ID
			list := drafts(20)
			for i := len(list) - 1; i >= 0; i-- { // against the order of ids: store time decides first
				want = append(want, d.enqueue(list[i])...)
			}
			equal(d, "claimed", ids(d.hire().claim(20)), want)
		}},
		{name: "J6_OrderHoldsOverClaims", run: func(d *database) {
			want := d.enqueue(drafts(30)...)
			w, v := d.hire(), d.hire()
			var got []job.ID
			for range 5 {
				got = append(got, ids(w.claim(4))...)
				got = append(got, ids(v.claim(2))...)
			}
			equal(d, "claimed", got, want)
		}},
		{name: "J6_LateArrivalOfHighPriorityGoesFirst", run: func(d *database) {
			low := d.enqueue(drafts(4)...)
			w := d.hire()
			equal(d, "claimed", ids(w.claim(2)), low[:2])
			high := d.one(priority(1))
			equal(d, "claimed", ids(w.claim(2)), []job.ID{high, low[2]})
		}},
		{name: "J6_AgingLetsLowPriorityIn", run: func(d *database) {
			old := d.one(priority(9))
			d.advance(10 * time.Minute)
			fresh := d.one(priority(1))
			w := d.hire()
			// 9 minutes after its due time the old one counts, 1 minute after the fresh one.
			aged := store.QueueClaim{Queue: queue, Limit: 1, Start: 1, Aging: time.Minute}
			equal(d, "first", ids(w.ask(aged).Jobs), []job.ID{old})
			equal(d, "second", ids(w.ask(aged).Jobs), []job.ID{fresh})
		}},
		{name: "J6_AgingStillPrefersHighPriority", run: func(d *database) {
			old := d.one(priority(9))
			d.advance(5 * time.Minute)
			fresh := d.one(priority(1))
			got := d.hire().ask(store.QueueClaim{Queue: queue, Limit: 2, Start: 2, Aging: time.Minute})
			equal(d, "claimed", ids(got.Jobs), []job.ID{fresh, old})
		}},
		{name: "P2_EachClaimIsANewRun", run: func(d *database) {
			id := d.one()
			w := d.hire()
			from := d.now()
			first := w.take()
			equal(d, "run", first.Run, 1)
			equal(d, "worker", first.Worker, w.id)
			equal(d, "state", first.State, job.Running)
			within(d, "started", first.Started, from, d.now())
			w.end(first, job.Waiting)
			second := d.hire().take()
			equal(d, "run", second.Run, 2)
			equal(d, "read back", d.get(id), second.Job)
		}},
		{name: "AnswerIsTheJobAsItIsStored", run: func(d *database) {
			d.one(once("x", time.Hour), until(d.now().Add(time.Hour)), func(d *job.Draft) {
				d.Tags, d.Key, d.HeaderBytes, d.Timeout, d.Budget = []string{"t"}, "key", []byte("h"), time.Minute, "b"
			})
			got := d.hire().take()
			equal(d, "read back", d.get(got.ID), got.Job)
		}},
		{name: "NotBeforeItIsDue", run: func(d *database) {
			id := d.one(in(time.Hour))
			w := d.hire()
			equal(d, "claimed early", len(w.claim(1)), 0)
			d.advance(50 * time.Minute)
			equal(d, "claimed early", len(w.claim(1)), 0)
			d.advance(20 * time.Minute)
			equal(d, "claimed", ids(w.claim(1)), []job.ID{id})
		}},
		{name: "LimitPerQueueInTheOrderAsked", run: func(d *database) {
			a, b := d.enqueue(drafts(3, onQueue("a"))...), d.enqueue(drafts(3, onQueue("b"))...)
			d.enqueue(drafts(3, onQueue("c"))...)
			w := d.hire("a", "b", "c")
			got := w.ask(store.QueueClaim{Queue: "b", Limit: 2, Start: 2}, store.QueueClaim{Queue: "a", Limit: 1, Start: 1}, store.QueueClaim{Queue: "empty", Limit: 5, Start: 5})
			equal(d, "claimed", ids(got.Jobs), []job.ID{b[0], b[1], a[0]})
			equal(d, "running", d.count(job.Running), 3)
		}},
		{name: "NothingAskedNothingClaimed", run: func(d *database) {
			d.one()
			w := d.hire()
			equal(d, "no queues", len(w.ask().Jobs), 0)
			equal(d, "limit 0", len(w.claim(0)), 0)
			equal(d, "waiting", d.count(job.Waiting), 1)
		}},
		{name: "J12_NothingIsBegunBeforeItsWorkerSaysSo", run: func(d *database) {
			d.enqueue(drafts(4)...)
			w := d.hire()
			asked := store.QueueClaim{Queue: queue, Limit: 4, Start: 2}
			begun := func(jobs []store.LeasedJob) (list []bool) {
				for _, j := range jobs {
					list = append(list, j.Begun)
				}
				return list
			}
			got := w.ask(asked).Jobs
			equal(d, "begun", begun(got), []bool{false, false, false, false})
			must[[]job.Verdict](d, "note")(w.store.Note(d.ctx, w.id, []store.Note{{RunRef: ref(got[0]), Begun: true}}))
			w.beat(ref(got[2]))
			equal(d, "begun", begun(w.repeat(w.seq, asked).Jobs), []bool{true, false, true, false})
		}},
		{name: "P2_BegunIsNotedOnlyOfOwnRuns", run: func(d *database) {
			d.one()
			w, v := d.hire(), d.hire()
			j := w.take()
			notes := []store.Note{{RunRef: ref(j), Begun: true}, {RunRef: store.RunRef{ID: job.NewID(), Run: 1}, Begun: true}}
			equal(d, "verdicts", must[[]job.Verdict](d, "note")(v.store.Note(d.ctx, v.id, notes)), []job.Verdict{job.Stale, job.Stale})
			d.lose(w, v)
			d.rescue()
			equal(d, "lost", d.get(j.ID).Lost, 0)
		}},
		{name: "J12_ARescuedJobIsNeverPrefetched", run: func(d *database) {
			rescued := d.one(priority(5))
			w := d.hire()
			w.take()
			d.lose(w)
			d.rescue()
			first, last := d.one(priority(1)), d.one(priority(9))
			v := d.hire()
			got := v.ask(store.QueueClaim{Queue: queue, Limit: 3, Start: 1})
			equal(d, "claimed", ids(got.Jobs), []job.ID{first, last})
			got = v.ask(store.QueueClaim{Queue: queue, Limit: 3, Start: 1})
			equal(d, "claimed to start at once", ids(got.Jobs), []job.ID{rescued})
		}},
		{name: "J12_ARescuedJobIsNeverPrefetchedInAnAgingQueue", run: func(d *database) {
			rescued := d.one(priority(5))
			w := d.hire()
			w.take()
			d.lose(w)
			d.rescue()
			first, last := d.one(priority(1)), d.one(priority(9))
			v := d.hire()
			aged := store.QueueClaim{Queue: queue, Limit: 3, Start: 1, Aging: time.Minute}
			equal(d, "claimed", ids(v.ask(aged).Jobs), []job.ID{first, last})
			equal(d, "claimed to start at once", ids(v.ask(aged).Jobs), []job.ID{rescued})
		}},
		{name: "NextTellsWhenToComeBack", run: func(d *database) {
			w := d.hire()
			equal(d, "next of nothing", w.ask(store.QueueClaim{Queue: queue, Limit: 1, Start: 1}).Next, 0)
			now := d.now()
			due := now.Add(time.Hour)
			d.one(at(now.Add(2*time.Hour)), priority(1))
			d.one(at(due), priority(9))
			got := w.ask(store.QueueClaim{Queue: queue, Limit: 1, Start: 1})
			if next := due.Sub(got.Now); got.Next <= 0 || got.Next > next+time.Millisecond || got.Next < next-time.Millisecond {
				d.Errorf("next is %v, want %v", got.Next, next)
			}
		}},
		{name: "NowIsTheStoresClock", run: func(d *database) {
			d.advance(1000 * time.Hour)
			w := d.hire()
			from := d.now()
			within(d, "now", w.ask().Now, from, d.now())
		}},
		{name: "P2_UnknownWorkerGetsNothing", run: func(d *database) {
			d.one()
			refused(d, job.WorkerID(99), queue)
			w := d.hire()
			if err := d.Store.Deregister(d.ctx, w.id); err != nil {
				d.Fatal(err)
			}
			refused(d, w.id, queue)
			equal(d, "waiting", d.count(job.Waiting), 1)
		}},
		{name: "P2_LostWorkerGetsNothing", run: func(d *database) {
			w := d.hire()
			d.lose(w)
			d.one()
			refused(d, w.id, queue)
			equal(d, "waiting", d.count(job.Waiting), 1)
		}},
		{name: "ReturnedBytesBelongToTheCaller", run: func(d *database) {
			id := d.one(func(d *job.Draft) { d.Args, d.HeaderBytes = []byte("exact"), []byte("exact") })
			got := d.hire().take()
			clear(got.Args)
			clear(got.HeaderBytes)
			read := d.get(id)
			equal(d, "args", string(read.Args), "exact")
			clear(read.Args)
			equal(d, "args", string(d.get(id).Args), "exact")
		}},
		{name: "J32_ClockStepsBackAndJobsStillRun", run: func(d *database) {
			d.advance(10 * time.Minute)
			w := d.hire()
			before := d.one()
			w.end(w.take(), job.Done) // whatever the store remembers of its place in the queue is now ahead of the clock
			waiting := d.one()
			d.advance(-10 * time.Minute)
			after := d.one()
			equal(d, "claimed after the step", ids(w.claim(5)), []job.ID{after})
			d.advance(10 * time.Minute)
			w.beat()
			equal(d, "claimed after the way back", ids(w.claim(5)), []job.ID{waiting})
			equal(d, "states", d.states(before, after, waiting), []job.State{job.Done, job.Running, job.Running})
		}},
	}
}

// refused checks that a claim is answered ErrWorkerLost.
func refused(d *database, w job.WorkerID, queue string) {
	d.Helper()
	_, err := d.Store.Claim(d.ctx, store.Claim{Worker: w, Seq: 1, Offer: everything, Queues: []store.QueueClaim{{Queue: queue, Limit: 1, Start: 1}}})
	means(d, "claim", err, job.ErrWorkerLost)
}

// means checks the meaning of an error.
func means(t testing.TB, what string, err, meaning error) {
	t.Helper()
	if !errors.Is(err, meaning) {
		t.Errorf("%s: error %v, want %v", what, err, meaning)
	}
}
