package storetest

import (
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func read() []testCase {
	why := func(d *database, id job.ID) job.Situation {
		d.Helper()
		return must[job.Situation](d, "situation")(store.SituationOf(d.ctx, d.Store, id))
	}
	// says checks the answer people read, which comes from the store's facts.
	says := func(d *database, id job.ID, want string) {
		d.Helper()
		if got := job.Explain(why(d, id)).String(); !strings.Contains(got, want) {
			d.Errorf("why: %q, want %q in it", got, want)
		}
	}
	return []testCase{
		{name: "GetInTheOrderAsked", run: func(d *database) {
			list := d.enqueue(drafts(4)...)
			w := d.hire()
			w.end(w.take(), job.Done) // list[0] is archived
			asked := []job.ID{list[2], job.NewID(), list[0], list[3], list[1]}
			var got []job.ID
			for _, j := range must[[]job.Job](d, "get")(d.Store.Get(d.ctx, asked)) {
				got = append(got, j.ID)
			}
			equal(d, "got", got, []job.ID{list[2], list[0], list[3], list[1]})
		}},
		{name: "GetNothing", run: func(d *database) {
			equal(d, "got", len(must[[]job.Job](d, "get")(d.Store.Get(d.ctx, nil))), 0)
			equal(d, "got", len(must[[]job.Job](d, "get")(d.Store.Get(d.ctx, []job.ID{job.NewID()}))), 0)
		}},
		{name: "GetMany", run: func(d *database) {
			list := d.enqueue(drafts(manyRows)...)
			d.cancel(list[:manyRows/3]...)
			got := must[[]job.Job](d, "get")(d.Store.Get(d.ctx, list))
			if len(got) != len(list) {
				d.Fatalf("%d jobs, want %d", len(got), len(list))
			}
			for i := range got {
				if got[i].ID != list[i] {
					d.Fatalf("job %d is %s, want %s", i, got[i].ID, list[i])
				}
			}
		}},
		{name: "NowMovesWithTheOffset", run: func(d *database) {
			before := d.now()
			d.advance(1000 * time.Hour)
			if after := d.now(); after.Sub(before) < 1000*time.Hour {
				d.Errorf("the clock was moved by 1000 h and went from %v to %v", before, after)
			}
		}},
		{name: "P5_UnknownJob", run: func(d *database) {
			_, err := store.SituationOf(d.ctx, d.Store, job.NewID())
			means(d, "situation", err, job.ErrNotFound)
		}},
		{name: "P5_NotDue", run: func(d *database) {
			says(d, d.one(in(time.Hour)), "not due until")
		}},
		{name: "P5_NobodyServesTheQueue", run: func(d *database) {
			d.hire("elsewhere")
			says(d, d.one(), "no live worker serves queue q")
		}},
		{name: "P5_ALostWorkerServesNothing", run: func(d *database) {
			w := d.hire()
			id := d.one()
			d.lose(w)
			says(d, id, "no live worker serves queue q")
		}},
		{name: "P5_AWorkerThatIsNotHeardOfIsNamed", run: func(d *database) {
			running, waiting := d.one(), d.one()
			w := d.share(store.Total{Queue: queue, Total: 1, Workers: 1})
			equal(d, "claimed", len(w.claim(1)), 1)
			v := d.share(store.Total{Queue: queue, Total: 1, Workers: 1})
			d.agree(w, v)
			u := d.share(store.Total{Queue: queue, Total: 1, Workers: 1}) // it does not share, and holds nothing
			u.hear()
			for _, id := range []job.ID{running, waiting} {
				if got := job.Explain(why(d, id)).String(); strings.Contains(got, "not heard of") {
					d.Errorf("why: %q, and all are heard of", got)
				}
			}
			d.advance(lostAfter * 2 / 3)
			v.hear()
			equal(d, "since", why(d, running).Unheard.Since, w.known)
			equal(d, "until", why(d, running).Unheard.Until, w.known.Add(lostAfter))
			says(d, running, "on sharer, not heard of since")
			says(d, waiting, "a portion of its total belongs to sharer, not heard of since")
			d.lose(w.employee, v.employee)
			d.rescue()
			for _, id := range []job.ID{running, waiting} {
				if got := job.Explain(why(d, id)).String(); strings.Contains(got, "not heard of") {
					d.Errorf("why: %q, and it was declared lost", got)
				}
			}
		}},
		{name: "P5_ATotalThatIsUsedUpIsNamed", run: func(d *database) {
			d.one()
			d.one()
			waiting := d.one()
			total := store.Total{Queue: queue, Total: 2, Workers: 2}
			w, v := d.share(total), d.share(total)
			d.agree(w, v)
			d.hire()
			elsewhere := d.one(onQueue("elsewhere"))
			d.hire("elsewhere")
			says(d, waiting, "; 0 of its total of 2 run on 0 workers, 2 share it")
			equal(d, "claimed", len(w.claim(1)), 1)
			says(d, waiting, "; 1 of its total of 2 runs on 1 worker, 2 share it")
			equal(d, "claimed", len(v.claim(1)), 1)
			equal(d, "use", why(d, waiting).Use, job.Use{Total: 2, Sharing: 2, Running: 2, Workers: 2})
			says(d, waiting, "; its total of 2 is used up: 2 run on 2 workers, 2 share it")
			equal(d, "use elsewhere", why(d, elsewhere).Use, job.Use{})
			must[int](d, "mark dead")(d.Store.MarkDead(d.ctx, []job.WorkerID{v.id}))
			says(d, waiting, "a portion of its total belongs to sharer, which is lost or has left, and holds 1 of its runs until they are taken back")
			d.rescue()
			equal(d, "holding, when it was taken back", len(why(d, waiting).Holding), 0)
			if err := d.Store.Deregister(d.ctx, w.id); err != nil {
				d.Fatal(err)
			}
			equal(d, "nobody has a total", why(d, waiting).Use.Total, 0)
			u := d.share(total)
			d.agree(u)
			says(d, waiting, "which is lost or has left, and holds 1 of its runs")
		}},
		{name: "J14_NobodyKnowsTheKind", run: func(d *database) {
			d.hire()
			says(d, d.one(ofKind("unheard.of")), "knows kind unheard.of")
			says(d, d.one(func(d *job.Draft) { d.Version = 7 }), "knows version 7")
			says(d, d.one(func(d *job.Draft) { d.Capabilities = []string{"gpu"} }), "[gpu]")
		}},
		{name: "J26_JobsAhead", run: func(d *database) {
			d.hire()
			d.one(in(time.Hour))
			d.one(onQueue("elsewhere"))
			d.enqueue(drafts(3)...)
			d.one(priority(9))
			id := d.one()
			d.one(priority(1))
			d.one()
			equal(d, "ahead", why(d, id).Ahead, 4)
			says(d, id, "behind 4 jobs")
		}},
		{name: "J26_ScheduledJobsAreNotAhead", run: func(d *database) {
			d.hire()
			d.one(in(time.Hour), priority(1))
			d.one(in(time.Hour))
			equal(d, "ahead", why(d, d.one()).Ahead, 0)
		}},
		{name: "P5_ManyAreAnsweredAsEachAlone", run: func(d *database) {
			d.hire()
			total := store.Total{Queue: "shared", Total: 1, Workers: 1}
			w := d.share(total)
			d.agree(w)
			running, behind := d.one(onQueue("shared")), d.one(onQueue("shared"))
			equal(d, "claimed", ids(w.ask(store.QueueClaim{Queue: "shared", Limit: 1, Start: 1}).Jobs), []job.ID{running})
			cancelled, paused := d.one(), d.one(onQueue("paused"))
			d.cancel(cancelled)
			if err := d.Store.SetPaused(d.ctx, store.OfQueue("paused"), true, store.Operator{}); err != nil {
				d.Fatal(err)
			}
			first, second := d.one(), d.one()
			asked := []job.ID{behind, second, job.NewID(), paused, running, cancelled, d.one(in(time.Hour)), first, second}
			got := must[[]job.Situation](d, "situations")(d.Store.Situations(d.ctx, asked))
			want := make([]job.Situation, 0, len(asked))
			for _, id := range append(asked[:2:2], asked[3:]...) {
				want = append(want, why(d, id))
			}
			for i := range min(len(got), len(want)) {
				want[i].Now = got[i].Now // it goes on
			}
			equal(d, "situations", got, want)
			equal(d, "of nobody", len(must[[]job.Situation](d, "situations")(d.Store.Situations(d.ctx, nil))), 0)
		}},
		{name: "P10_JobsAheadOfManyAreCountedLessFar", run: func(d *database) {
			d.hire()
			list := d.enqueue(drafts(300)...)
			got := must[[]job.Situation](d, "situations")(d.Store.Situations(d.ctx, list[100:]))
			first, last := got[0], got[len(got)-1]
			equal(d, "of the first", [2]any{first.Ahead, first.AheadCapped}, [2]any{100, false})
			equal(d, "of the last", [2]any{last.Ahead, last.AheadCapped}, [2]any{100, true})
			alone := why(d, list[299])
			equal(d, "of the last alone", [2]any{alone.Ahead, alone.AheadCapped}, [2]any{299, false})
		}},
		{name: "J26_Running", run: func(d *database) {
			id := d.one()
			d.hire().take()
			says(d, id, "running on test-worker-1-a")
		}},
		{name: "J26_Parked", run: func(d *database) {
			id := d.one()
			w := d.hire()
			w.end(w.take(), job.Suspended, parkedFor("cannot read"))
			says(d, id, "parked: cannot read")
		}},
		{name: "J26_Archived", run: func(d *database) {
			id := d.one()
			w := d.hire()
			w.end(w.take(), job.Dead, failed("no such host"), func(e *job.End) { e.Reason = "all 5 attempts failed" })
			says(d, id, "all 5 attempts failed (no such host)")
		}},
		{name: "J26_Snoozed", run: func(d *database) {
			id := d.one()
			w := d.hire()
			w.end(w.take(), job.Waiting, func(e *job.End) { e.Delay, e.Snooze, e.Reason = time.Hour, true, "waits for the bank" })
			says(d, id, ": snoozed: waits for the bank")
		}},
		{name: "P5_SameTimeAsTheClaim", run: func(d *database) {
			from := d.now()
			s := why(d, d.one())
			within(d, "now", s.Now, from, d.now())
		}},
		{name: "LogsOfNobody", run: func(d *database) {
			equal(d, "logs", len(must[[]job.LogLine](d, "logs")(d.Store.Logs(d.ctx, job.NewID(), 0, 10))), 0)
		}},
	}
}
