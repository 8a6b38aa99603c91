package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// serves makes a sharer's next beat replace what it serves.
func (w *sharer) serves(queues []string, totals ...store.Total) store.BeatReply {
	w.d.Helper()
	answer := must[store.BeatReply](w.d, "beat")(w.store.Beat(w.d.ctx, store.Beat{
		Worker: w.id, Splits: true, Version: w.version, Serves: &store.Serves{Queues: queues, Totals: totals},
	}))
	w.known, w.version = answer.Now, answer.Version
	return answer
}

// serve: which queues a worker serves may change while it runs.
func serve() []testCase {
	x := func(total int) store.Total { return store.Total{Queue: "x", Total: total, Workers: 10} }
	total := func(w *sharer) int { return w.hear().Crews["x"].Total }
	info := func(d *database, w *employee) store.Worker {
		d.Helper()
		for _, r := range must[[]store.WorkerInfo](d, "registry")(d.Store.Registry(d.ctx)) {
			if r.ID == w.id {
				return r.Worker
			}
		}
		d.Fatalf("worker %d is not registered", w.id)
		return store.Worker{}
	}
	return []testCase{
		{name: "J30_ABeatReplacesWhatAWorkerServes", run: func(d *database) {
			w := &sharer{employee: d.hire("a")}
			w.beat()
			equal(d, "unchanged", info(d, w.employee).Queues, []string{"a"})
			w.serves([]string{"b", "c.*"}, x(3))
			equal(d, "queues", info(d, w.employee).Queues, []string{"b", "c.*"})
			equal(d, "totals", info(d, w.employee).Totals, []store.Total{x(3)})
			w.serves(nil)
			equal(d, "queues", info(d, w.employee).Queues, nil)
			equal(d, "totals", info(d, w.employee).Totals, nil)
		}},
		{name: "J30_APatternServesAQueue", run: func(d *database) {
			w := d.hire("mail.*")
			id, other := d.one(onQueue("mail.fast")), d.one(onQueue("post"))
			d.advance(time.Minute)
			w.beat()
			for _, served := range []struct {
				id   job.ID
				want job.WhyCode
			}{{id, job.WhySlot}, {other, job.WhyNoWorker}} {
				s := must[job.Situation](d, "situation")(store.SituationOf(d.ctx, d.Store, served.id))
				equal(d, "why", job.Explain(s).Code, served.want)
			}
			found := must[[]store.Unserved](d, "unserved")(d.Store.Unserved(d.ctx, w.id, time.Second))
			equal(d, "unserved", len(found), 1)
			equal(d, "which", found[0].Queue, "post")
			must[store.BeatReply](d, "beat")(d.Store.Beat(d.ctx, store.Beat{Worker: w.id, Serves: &store.Serves{Queues: []string{"*"}}}))
			found = must[[]store.Unserved](d, "unserved")(d.Store.Unserved(d.ctx, w.id, time.Second))
			equal(d, "unserved", len(found), 0)
		}},
		{name: "J18_TheLowestTotalHoldsWhileWorkersDiffer", run: func(d *database) {
			a, b := d.share(x(10)), d.share(x(10))
			d.agree(a, b)
			a.serves([]string{"x"}, x(4))
			equal(d, "lower for all", [2]int{total(a), total(b)}, [2]int{4, 4})
			a.serves([]string{"x"}, x(20))
			equal(d, "the other's is the lowest", [2]int{total(a), total(b)}, [2]int{10, 10})
			b.serves([]string{"x"}, x(20))
			equal(d, "all have heard", [2]int{total(a), total(b)}, [2]int{20, 20})
		}},
		{name: "J18_AnotherTotalIsANewVersion", run: func(d *database) {
			a, b := d.share(x(10)), d.share(x(10))
			d.agree(a, b)
			was := b.version
			a.serves([]string{"x", "more"}, x(10)) // queues alone are nobody else's business
			equal(d, "the same totals", b.hear().Version, was)
			got := a.serves([]string{"x"}, x(20))
			if got.Version <= was || got.Settled {
				d.Errorf("the answer has version %d, settled %t: want one after %d that the other has not stored", got.Version, got.Settled, was)
			}
			equal(d, "the other does not know that it has heard", a.hear().Settled, false)
			b.hear()
			b.hear()
			equal(d, "settled", a.hear().Settled, true)
		}},
		{name: "J18_WhoHasNoTotalAnyMoreHoldsUpNobody", run: func(d *database) {
			a, b := d.share(x(10)), d.share(x(10))
			d.agree(a, b)
			a.serves([]string{"x"})
			b.hear()
			got := b.hear()
			equal(d, "settled", got.Settled, true)
			equal(d, "crew", got.Crews["x"].Workers, []int{10})
		}},
	}
}
