package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// namespaces: two namespaces of one database know nothing of each other.
func namespaces() []testCase {
	shared := Features{Shared: true}
	// beside gives the same case in another namespace.
	beside := func(d *database) *database {
		d.Helper()
		other := *d
		other.Store = d.open(store.Settings{Namespace: "other"})
		d.Cleanup(other.inspect)
		return &other
	}
	return []testCase{
		{name: "JobsAreApart", needs: shared, run: func(d *database) {
			o := beside(d)
			id := d.one(once("x", 0))
			o.gone("in another namespace", id)
			equal(d, "jobs there", o.count(), 0)
			equal(d, "claimed there", len(o.hire().claim(5)), 0)
			equal(d, "cancel there", o.cancel(id), []store.Change{store.NotFound})
			equal(d, "delete there", o.delete(id), []store.Change{store.NotFound})
			o.one(once("x", 0)) // unique keys are apart too
			equal(d, "state", d.get(id).State, job.Waiting)
		}},
		{name: "TheSameIDTwice", needs: shared, run: func(d *database) {
			o := beside(d)
			id := d.one()
			equal(d, "receipt there", o.send(draft(again(id))), []job.Receipt{{ID: id}})
			w, v := d.hire(), o.hire()
			w.end(w.take(), job.Done)
			equal(d, "state there", o.get(id).State, job.Waiting)
			v.end(v.take(), job.Dead)
			equal(d, "state here", d.get(id).State, job.Done)
		}},
		{name: "P2_WorkersAreApart", needs: shared, run: func(d *database) {
			o := beside(d)
			d.one()
			w := d.hire()
			held := w.take()
			for range 3 {
				o.hire() // whatever numbers they get, none of them is this worker
			}
			for _, info := range must[[]store.WorkerInfo](d, "registry")(o.Store.Registry(d.ctx)) {
				got := must[[]job.Verdict](d, "finish")(o.Store.Finish(d.ctx, info.ID, []job.End{ending(held, job.Done)}))
				equal(d, "verdict there", got, []job.Verdict{job.Stale})
			}
			equal(d, "workers here", len(must[[]store.WorkerInfo](d, "registry")(d.Store.Registry(d.ctx))), 1)
			w.end(held, job.Done)
		}},
		{name: "PausesAreApart", needs: shared, run: func(d *database) {
			o := beside(d)
			if err := o.Store.SetPaused(d.ctx, store.OfQueue(queue), true, store.Operator{Name: "ann"}); err != nil {
				d.Fatal(err)
			}
			d.one()
			equal(d, "claimed here", len(d.hire().claim(1)), 1)
			equal(d, "audit here", len(d.audit(store.AuditFilter{}, 10)), 0)
		}},
		{name: "UpkeepIsApart", needs: shared, run: func(d *database) {
			o := beside(d)
			done := d.one(priority(1))
			w := d.hire()
			w.end(w.take(), job.Done)
			late, held := d.one(priority(9), until(d.now().Add(time.Hour))), d.one(priority(1))
			w.take()
			v := o.hire()
			d.abandoned = true
			d.advance(100 * time.Hour)
			v.beat()
			equal(d, "lost there", v.declare(), 0)
			equal(d, "rescued there", o.rescue(), store.RescueReply{})
			equal(d, "expired there", o.expire(10), 0)
			equal(d, "purged there", must[int](d, "purge")(o.Store.Purge(d.ctx, 10)), 0)
			equal(d, "states here", d.states(done, late, held), []job.State{job.Done, job.Waiting, job.Running})
			equal(d, "check there", must[store.CheckReport](d, "check")(o.Store.Check(d.ctx, store.Check{})), store.CheckReport{})
		}},
		{name: "EmptyMeansDefault", needs: shared, run: func(d *database) {
			id := d.one()
			named := d.open(store.Settings{Namespace: "default"})
			equal(d, "found", len(must[[]job.Job](d, "get")(named.Get(d.ctx, []job.ID{id}))), 1)
		}},
	}
}
