package storetest

import (
	"sync"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func workerAlone() []testCase {
	alone := func(w *employee, r store.RunRef) bool {
		w.d.Helper()
		return must[bool](w.d, "alone")(w.store.Alone(w.d.ctx, w.id, r))
	}
	return []testCase{
		{name: "J12_OneRunAtATime", run: func(d *database) {
			d.enqueue(drafts(2)...)
			w, v := d.hire(), d.hire()
			a, b := w.take(), v.take()
			equal(d, "first", alone(w, ref(a)), true)
			equal(d, "second", alone(v, ref(b)), false)
			equal(d, "first again", alone(w, ref(a)), true)
			w.end(a, job.Done)
			equal(d, "second after the first", alone(v, ref(b)), true)
			v.end(b, job.Waiting)
			c := w.take()
			equal(d, "a run that was given back and taken again", alone(w, ref(c)), true)
		}},
		{name: "J12_ARescuedRunIsNoHindrance", run: func(d *database) {
			d.enqueue(drafts(2)...)
			w, v := d.hire(), d.hire()
			a, b := w.take(), v.take()
			equal(d, "first", alone(w, ref(a)), true)
			d.lose(w, v)
			equal(d, "before the rescue", alone(v, ref(b)), false)
			d.rescue()
			equal(d, "after the rescue", alone(v, ref(b)), true)
		}},
		{name: "P2_OnlyForOwnRuns", run: func(d *database) {
			d.enqueue(drafts(2)...)
			w, v := d.hire(), d.hire()
			a, b := w.take(), v.take()
			equal(d, "of another worker", alone(v, ref(a)), false)
			equal(d, "of another run", alone(w, store.RunRef{ID: a.ID, Run: a.Run + 1}), false)
			equal(d, "of no job", alone(w, store.RunRef{ID: job.NewID(), Run: 1}), false)
			equal(d, "nobody has it", alone(v, ref(b)), true)
		}},
		{name: "J12_OfManyWhoAskAtOnceOneIsTold", run: func(d *database) {
			const many = 8
			d.enqueue(drafts(many)...)
			var hands []*employee
			var jobs []store.LeasedJob
			for range many {
				w := d.hire()
				hands, jobs = append(hands, w), append(jobs, w.take())
			}
			var told [many]bool
			var errs [many]error
			var all sync.WaitGroup
			for i, w := range hands {
				all.Go(func() { told[i], errs[i] = w.store.Alone(d.ctx, w.id, ref(jobs[i])) })
			}
			all.Wait()
			n := 0
			for i := range told {
				if errs[i] != nil {
					d.Errorf("worker %d: %v", i, errs[i])
				}
				if told[i] {
					n++
				}
			}
			equal(d, "told", n, 1)
		}},
		{name: "J12_ADeferredSuspectIsCounted", run: func(d *database) {
			id := d.one()
			w := d.hire()
			for i := range 3 {
				j := w.take()
				equal(d, "deferred as claimed", j.Deferred, i)
				w.end(j, job.Waiting, func(e *job.End) { e.Defer = true })
				equal(d, "deferred", d.get(id).Deferred, i+1)
			}
			v := d.hire()
			v.begin()
			d.lose(v, w)
			d.rescue()
			got := d.get(id)
			equal(d, "lost, deferred", [2]int{got.Lost, got.Deferred}, [2]int{1, 0}) // a new loss, a new try alone
		}},
	}
}
