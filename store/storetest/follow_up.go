package storetest

import (
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// followUps: jobs that a run hands to its end are accepted with it or not at all.
func followUps() []testCase {
	then := func(list ...job.Draft) func(*job.End) {
		return func(e *job.End) { e.Then = &job.FollowUps{Drafts: list} }
	}
	return []testCase{
		{name: "J33_TheyComeWithTheEnd", run: func(d *database) {
			first := d.one()
			w := d.hire()
			held := w.take()
			next, later := draft(), draft(onQueue("elsewhere"))
			w.end(held, job.Done, then(next, later))
			equal(d, "states", d.states(first, next.ID, later.ID), []job.State{job.Done, job.Waiting, job.Waiting})
			equal(d, "claimed", w.take().ID, next.ID)
		}},
		{name: "J33_AStaleRunLeavesNone", run: func(d *database) {
			d.one()
			w, v := d.hire(), d.hire()
			held := w.take()
			d.lose(w, v)
			d.rescue()
			next := draft()
			equal(d, "verdicts", w.finish(ending(held, job.Done, then(next))), []job.Verdict{job.Stale})
			d.gone("what a stale run handed in", next.ID)
			equal(d, "jobs", d.count(), 1)
		}},
		{name: "J33_ARepeatBringsThemOnce", run: func(d *database) {
			d.one()
			w := d.hire()
			held := w.take()
			next := draft()
			end := ending(held, job.Done, then(next))
			equal(d, "verdicts", w.finish(end), []job.Verdict{job.Applied})
			end.Again = true
			equal(d, "verdicts of the repeat", w.finish(end), []job.Verdict{job.Already})
			w.end(w.take(), job.Done) // the follow-up
			equal(d, "verdicts of a late repeat", w.finish(end), []job.Verdict{job.Already})
			equal(d, "jobs", d.count(), 2)
			equal(d, "ready", len(w.claim(10)), 0)
		}},
		{name: "J33_PlainEndsBesideThemAreAsEver", run: func(d *database) {
			ids := d.enqueue(drafts(60)...)
			w := d.hire()
			held := w.claim(60)
			next := draft()
			var ends []job.End
			want := make([]job.Verdict, 60)
			for i, h := range held {
				e := ending(h, job.Done)
				if i == 30 {
					e.Then = &job.FollowUps{Drafts: []job.Draft{next}}
				}
				ends, want[i] = append(ends, e), job.Applied
			}
			equal(d, "verdicts", w.finish(ends...), want)
			for _, s := range d.states(ids...) {
				equal(d, "state", s, job.Done)
			}
			equal(d, "claimed", w.take().ID, next.ID)
		}},
		{name: "J33_AUniqueOneJoinsTheJobThatHoldsItsKey", run: func(d *database) {
			holder := d.one(once("x", 0), onQueue("elsewhere"))
			d.one()
			w := d.hire()
			next := draft(once("x", 0))
			w.end(w.take(), job.Done, then(next))
			d.gone("a duplicate", next.ID)
			equal(d, "holder", d.get(holder).State, job.Waiting)
		}},
		{name: "J33_TheKeyOfTheJobItselfIsFreeForThem", run: func(d *database) {
			d.one(once("x", 0))
			w := d.hire()
			next := draft(once("x", 0))
			w.end(w.take(), job.Done, then(next))
			equal(d, "claimed", w.take().ID, next.ID)
		}},
		{name: "J33_InATransactionTheyGoWithIt", run: func(d *database) {
			d.one()
			w := d.hire()
			held := w.take()
			next := draft()
			finish := func(tx store.Tx) {
				verdicts, err := tx.Finish(d.ctx, w.id, []job.End{ending(held, job.Done, then(next))})
				if err != nil {
					d.Fatal(err)
				}
				equal(d, "verdicts", verdicts, []job.Verdict{job.Applied})
			}
			tx := must[store.Tx](d, "begin")(d.Store.Begin(d.ctx))
			finish(tx)
			if err := tx.Rollback(d.ctx); err != nil {
				d.Fatal(err)
			}
			d.gone("what was rolled back", next.ID)
			equal(d, "state", d.get(held.ID).State, job.Running)
			tx = must[store.Tx](d, "begin")(d.Store.Begin(d.ctx))
			finish(tx)
			if err := tx.Commit(d.ctx); err != nil {
				d.Fatal(err)
			}
			equal(d, "states", d.states(held.ID, next.ID), []job.State{job.Done, job.Waiting})
		}},
	}
}
