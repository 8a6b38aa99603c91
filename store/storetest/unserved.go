package storetest

import (
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// unserved: what waits and nobody takes is found, within bounds.
func unserved() []testCase {
	of := func(queue, kind string) func(*job.Draft) {
		return func(d *job.Draft) { d.Queue, d.Kind = queue, kind }
	}
	look := func(d *database, by *employee) []store.Unserved {
		d.Helper()
		by.beat()
		return must[[]store.Unserved](d, "unserved")(d.Store.Unserved(d.ctx, by.id, time.Minute))
	}
	type found struct {
		Queue, Kind string
		Jobs        int
		More        bool
		Why         string
	}
	short := func(list []store.Unserved) (all []found) {
		for _, u := range list {
			all = append(all, found{u.Queue, u.Kind, u.Jobs, u.More, u.Why})
		}
		return all
	}
	return []testCase{
		{name: "J18_QueuesThatNobodyServes", run: func(d *database) {
			w := d.hire("m", "served")
			from := d.now()
			for _, queue := range []string{"a", "b", "n", "z"} { // before, between and after those that are served
				d.one(of(queue, kind))
				d.one(of(queue, kind), func(d *job.Draft) { d.Priority = 9 })
			}
			d.one(of("m", kind))
			equal(d, "found within a minute", look(d, w), nil)
			d.advance(2 * time.Minute)
			list := look(d, w)
			want := []found{}
			for _, queue := range []string{"a", "b", "n", "z"} {
				want = append(want, found{queue, kind, 2, false, "no live worker serves queue " + queue})
			}
			equal(d, "found", short(list), want)
			within(d, "oldest", list[0].Oldest, from.Add(-time.Second), d.now().Add(-2*time.Minute))
			first, second := w, d.hire("a", "b", "n")
			if second.id < first.id {
				first, second = second, first
			}
			equal(d, "found beside another worker", len(look(d, first)), 1)
			equal(d, "found by another than the first", look(d, second), nil)
			equal(d, "found by nobody", must[[]store.Unserved](d, "unserved")(d.Store.Unserved(d.ctx, 0, time.Minute)), nil)
		}},
		{name: "J30_QueuesWhereJobsWait", run: func(d *database) {
			lister, ok := d.Store.(store.QueueLister)
			if !ok {
				d.Fatal("the store does not list queues")
			}
			list := func(after string, limit int) []string {
				return must[[]string](d, "list")(lister.WaitingQueues(d.ctx, after, limit))
			}
			equal(d, "queues of nothing", len(list("", 10)), 0)
			w := d.hire("busy")
			d.one(of("busy", kind))
			w.ask(store.QueueClaim{Queue: "busy", Limit: 1, Start: 1})
			for _, queue := range []string{"c", "a", "b"} {
				d.one(of(queue, kind))
				d.one(of(queue, kind), func(d *job.Draft) { d.In = time.Hour })
			}
			equal(d, "queues where jobs wait", list("", 10), []string{"a", "b", "c"})
			equal(d, "the first", list("", 2), []string{"a", "b"})
			equal(d, "those behind", list("b", 2), []string{"c"})
		}},
		{name: "J18_KindsThatNobodyKnows", run: func(d *database) {
			w := d.hire("q")
			d.one(of("q", "stranger"))
			d.one(of("q", "stranger"))
			d.one(of("q", kind))
			d.one(of("q", kind), func(d *job.Draft) { d.Version = 99 })
			d.one(of("q", kind), func(d *job.Draft) { d.Capabilities = []string{"gpu"} })
			d.advance(2 * time.Minute)
			got := map[string]int{}
			for _, f := range short(look(d, w)) {
				got[f.Why] = f.Jobs
			}
			equal(d, "found", got, map[string]int{
				"no live worker of queue q knows kind stranger":                                   2,
				fmt.Sprintf("no live worker of queue q knows version 99 of kind %s", kind):        1,
				fmt.Sprintf("no live worker of queue q that knows kind %s has %v", kind, "[gpu]"): 1,
			})
		}},
		{name: "J18_WhatWaitsForAReasonIsNotReported", run: func(d *database) {
			w, v := d.hire("q"), d.hire("gone")
			d.one(of("later", kind), func(j *job.Draft) { j.In = time.Hour })
			d.one(of("paused", kind))
			if err := d.Store.SetPaused(d.ctx, store.OfQueue("paused"), true, store.Operator{}); err != nil {
				d.Fatal(err)
			}
			d.one(of("gone", kind))
			d.advance(2 * time.Minute)
			w.beat()
			v.beat()
			for _, by := range []*employee{w, v} {
				equal(d, "found", look(d, by), nil)
			}
			d.advance(2 * lostAfter) // v beats no more, and nobody has declared it lost
			equal(d, "found without the worker", short(look(d, w)), []found{{"gone", kind, 1, false, "no live worker serves queue gone"}})
		}},
		{name: "P10_ALookIsBounded", run: func(d *database) {
			w := d.hire("q")
			var many []job.Draft
			for range store.UnservedHead + 50 {
				many = append(many, draft(of("many", kind)))
			}
			d.enqueue(many...)
			d.advance(2 * time.Minute)
			equal(d, "found", short(look(d, w)), []found{{"many", kind, store.UnservedHead, true, "no live worker serves queue many"}})
		}},
	}
}
