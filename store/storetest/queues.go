package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func queues() []testCase {
	// stand is how queues stand: those named, or all.
	stand := func(d *database, names ...string) []store.QueueState {
		d.Helper()
		reader, ok := d.Store.(store.QueueReader)
		if !ok {
			d.Fatal("the store does not tell how queues stand")
		}
		return must[[]store.QueueState](d, "queues")(reader.Queues(d.ctx, names))
	}
	names := func(list []store.QueueState) (found []string) {
		for _, q := range list {
			found = append(found, q.Name)
		}
		return found
	}
	some := func(n int) store.Counted { return store.Counted{Jobs: n} }
	return []testCase{
		{name: "J35_EveryQueueThatThereIs", run: func(d *database) {
			equal(d, "of nothing", len(stand(d)), 0)
			w := d.hire(queue, "served")
			d.one()
			w.end(w.take(), job.Done)
			d.one(onQueue("waits"))
			d.one(onQueue("later"), in(time.Hour))
			d.cancel(d.one(onQueue("ended")))
			if err := d.Store.SetPaused(d.ctx, store.OfQueue("paused"), true, store.Operator{}); err != nil {
				d.Fatal(err)
			}
			equal(d, "queues", names(stand(d)), []string{"later", "paused", queue, "served", "waits"})
			lost := d.hire("lost")
			d.one(onQueue("lost"))
			lost.ask(store.QueueClaim{Queue: "lost", Limit: 1, Start: 1})
			if err := d.Store.Deregister(d.ctx, lost.id); err != nil {
				d.Fatal(err)
			}
			equal(d, "with what one runs that left", names(stand(d)), []string{"later", "lost", "paused", queue, "served", "waits"})
		}},
		{name: "J35_WhatWaitsAndRuns", run: func(d *database) {
			w := d.hire()
			d.enqueue(drafts(4)...)
			jobs := w.claim(4)
			w.end(jobs[0], job.Waiting, failed("x"), func(e *job.End) { e.Delay = time.Hour })
			w.end(jobs[1], job.Waiting, failed("x"))
			w.end(jobs[2], job.Done)
			again := d.get(jobs[1].ID)
			d.advance(time.Minute)
			d.one(priority(1))
			d.one(priority(9), in(2*time.Hour))
			d.one(in(30 * time.Second))
			got := stand(d, queue)[0]
			equal(d, "ready", got.Ready, some(2))
			equal(d, "oldest", got.Oldest, again.Due)
			equal(d, "scheduled", got.Scheduled, some(3))
			equal(d, "retries", got.Retries, some(2))
			equal(d, "running", got.Running, some(1))
			d.advance(time.Minute)
			got = stand(d, queue)[0]
			equal(d, "ready a minute later", got.Ready, some(3))
			equal(d, "scheduled a minute later", got.Scheduled, some(2))
		}},
		{name: "J35_WhatWaitsBehindGatesIsCounted", run: func(d *database) {
			w := d.hire()
			behind := func(gate int64) func(*job.Draft) { return func(d *job.Draft) { d.Gate = gate } }
			oldest := d.one(behind(7))
			d.advance(time.Minute)
			d.enqueue(drafts(3)...)
			d.enqueue(drafts(2, behind(-7))...)
			d.enqueue(drafts(4, behind(7), in(time.Hour))...)
			w.end(w.take(), job.Waiting, failed("x"), func(e *job.End) { e.Delay = time.Hour })
			d.one(behind(7), onQueue("only"))
			all := stand(d)
			equal(d, "queues", names(all), []string{"only", queue})
			equal(d, "ready of one that has nothing else", all[0].Ready, some(1))
			equal(d, "ready", all[1].Ready, some(5))
			equal(d, "oldest", all[1].Oldest, d.get(oldest).Due)
			equal(d, "scheduled", all[1].Scheduled, some(5))
			equal(d, "retries", all[1].Retries, some(1))
			// Of many nobody knows which are ready: they are counted as far as the bound.
			for range 3 {
				d.enqueue(drafts(store.MaxCounted/2, behind(9), onQueue("many"))...)
			}
			got := stand(d, "many")[0]
			equal(d, "ready of many", got.Ready, store.Counted{Jobs: store.MaxCounted, More: true})
			equal(d, "scheduled of many", got.Scheduled, store.Counted{More: true})
		}},
		{name: "J35_WorkersSlotsAndTotals", run: func(d *database) {
			register := func(label string, slots []int, totals ...store.Total) *employee {
				w := &employee{d: d, store: d.Store, offer: everything}
				w.id = must[job.WorkerID](d, "register")(d.Store.Register(d.ctx, store.Worker{
					Label: label, Queues: []string{"a", "b"}, Slots: slots, Totals: totals, Offer: everything, LostAfter: lostAfter,
				}))
				return w
			}
			register("one", []int{10, 3}, store.Total{Queue: "a", Total: 40, Workers: 10})
			two := register("two", []int{20, 4}, store.Total{Queue: "a", Total: 30, Workers: 20})
			register("unknown", nil)
			want := []store.QueueState{
				{Name: "a", Workers: 3, Labels: []string{"one", "two", "unknown"}, Slots: 30, Total: 30},
				{Name: "b", Workers: 3, Labels: []string{"one", "two", "unknown"}, Slots: 7},
			}
			equal(d, "queues", stand(d), want)
			if err := d.Store.Deregister(d.ctx, two.id); err != nil {
				d.Fatal(err)
			}
			equal(d, "who is left", stand(d)[0], store.QueueState{Name: "a", Workers: 2, Labels: []string{"one", "unknown"}, Slots: 10, Total: 40})
			d.advance(2 * lostAfter)
			equal(d, "without a beat", len(stand(d)), 0)
			for range store.MaxLabels + 1 {
				register("many", []int{1, 1})
			}
			got := stand(d, "a")[0]
			equal(d, "workers", got.Workers, store.MaxLabels+1)
			equal(d, "labels", len(got.Labels), store.MaxLabels)
			equal(d, "slots", got.Slots, store.MaxLabels+1)
		}},
		{name: "J35_SinceWhenItIsPaused", run: func(d *database) {
			from := d.now()
			if err := d.Store.SetPaused(d.ctx, store.OfQueue(queue), true, store.Operator{Name: "ann", Note: "n"}); err != nil {
				d.Fatal(err)
			}
			got := stand(d, queue, "other")
			if got[1].Pause == nil || got[0].Pause != nil {
				d.Fatalf("the pauses are %v and %v, want one of %s", got[1].Pause, got[0].Pause, queue)
			}
			within(d, "since", got[1].Pause.Since, from, d.now())
			equal(d, "name", got[1].Pause.Name, queue)
			if err := d.Store.SetPaused(d.ctx, store.OfQueue(queue), false, store.Operator{}); err != nil {
				d.Fatal(err)
			}
			equal(d, "after it resumed", len(stand(d)), 0)
		}},
		{name: "J35_OnlyThoseThatAreNamed", run: func(d *database) {
			d.one(onQueue("a"))
			d.enqueue(drafts(2, onQueue("b"))...)
			got := stand(d, "none", "b", "b")
			equal(d, "queues", names(got), []string{"b", "none"})
			equal(d, "ready", got[0].Ready, some(2))
			equal(d, "of none", got[1], store.QueueState{Name: "none"})
			for _, asked := range [][]string{{""}, {"a", "x y"}, make([]string, store.MaxQueues+1)} {
				_, err := d.Store.(store.QueueReader).Queues(d.ctx, asked)
				means(d, "names", err, job.ErrInvalid)
			}
		}},
		{name: "P10_QueuesAreCountedToABound", run: func(d *database) {
			oldest := d.one(priority(9), onQueue("long"))
			d.advance(time.Minute)
			for range 3 {
				d.enqueue(drafts(store.MaxCounted/2, onQueue("long"))...)
			}
			got := stand(d)[0]
			equal(d, "ready", got.Ready, store.Counted{Jobs: store.MaxCounted, More: true})
			equal(d, "oldest", got.Oldest, d.get(oldest).Due)
			equal(d, "scheduled", got.Scheduled, some(0))
			equal(d, "retries", got.Retries, store.Counted{More: true})
			// Of many queues each is counted less far, and those past the bound are left out.
			var list []job.Draft
			for n := range store.MaxQueues {
				list = append(list, drafts(1, onQueue(fmt.Sprintf("n%04d", n)))...)
			}
			d.enqueue(list...)
			all := stand(d)
			equal(d, "queues", len(all), store.MaxQueues)
			equal(d, "in order", slices.IsSorted(names(all)), true)
			equal(d, "ready of many", all[0].Ready, store.Counted{Jobs: store.QueueCap(store.MaxQueues), More: true})
			counts := must[[]store.QueueCount](d, "counts")(d.Store.(store.Counter).Counts(d.ctx))
			equal(d, "counts", len(counts), store.MaxQueues)
			equal(d, "count of many", counts[0].Counted, store.Counted{Jobs: store.QueueCap(store.MaxQueues), More: true})
		}},
	}
}
