package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// unreadable: a part of a row that cannot be read is a value that says so. It
// costs that one thing, never the rows that are read or moved with it (P8).
func unreadable() []testCase {
	cases := []testCase{
		{name: "P8_Claim", run: func(d *database) {
			list := d.enqueue(drafts(5, func(d *job.Draft) { d.Tags = []string{"a"} })...)
			d.spoil(Failures, list[1])
			d.spoil(Tags, list[2])
			w := d.hire()
			got := w.claim(5)
			equal(d, "claimed", ids(got), list)
			wantUnreadable(d, got[1].Failures.List())
			equal(d, "unreadable", [][]string{got[1].Unreadable, got[2].Unreadable}, [][]string{nil, {"tags"}})
			equal(d, "tags", [][]string{got[1].Tags, got[2].Tags}, [][]string{{"a"}, nil})
			again := w.repeat(w.seq, store.QueueClaim{Queue: queue, Limit: 5, Start: 5}).Jobs
			equal(d, "claimed again under the same number", ids(again), list)
			for _, j := range got {
				w.end(j, job.Done)
			}
		}},
		{name: "P8_ClaimPassesUnreadableNeeds", run: func(d *database) {
			list := d.enqueue(drafts(5)...)
			d.spoil(Capabilities, list[1])
			rest := slices.Delete(slices.Clone(list), 1, 2)
			w := d.hire()
			equal(d, "claimed", ids(w.claim(3)), rest[:3])
			equal(d, "claimed next", ids(w.claim(3)), rest[3:])
			equal(d, "claimed when only it is left", len(w.claim(3)), 0)
			later := d.one()
			equal(d, "claimed behind it", ids(w.claim(3)), []job.ID{later})
			s := must[job.Situation](d, "situation")(store.SituationOf(d.ctx, d.Store, list[1]))
			if why := job.Explain(s).String(); !strings.Contains(why, "cannot be read") {
				d.Errorf("why it does not run: %q", why)
			}
			equal(d, "unreadable", d.get(list[1]).Unreadable, []string{"capabilities"})
		}},
		{name: "P8_ClaimPassesAnEndlessDueTime", run: func(d *database) {
			far := d.one(at(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)))
			list := d.enqueue(drafts(3)...)
			d.spoil(Due, list[1])
			w := d.hire()
			equal(d, "claimed", ids(w.claim(3)), []job.ID{list[0], list[2]})
			for range 2 {
				c := w.ask(store.QueueClaim{Queue: queue, Limit: 3, Start: 3})
				if len(c.Jobs) > 0 || c.More || c.Next < 0 || c.Next > 0 && c.Next < 24*time.Hour {
					d.Errorf("the next job is due in %v, more %v; job %s is, in the year 9999", c.Next, c.More, far)
				}
			}
		}},
		{name: "P8_Rescue", run: func(d *database) {
			d.enqueue(drafts(5)...)
			w := d.hire()
			got := w.claim(5)
			d.spoil(Failures, got[3].ID)
			d.spoil(Due, got[2].ID)
			w.beat(ref(got[2]), ref(got[3])) // their handlers have begun
			d.lose(w)
			equal(d, "rescued", d.rescue(), store.RescueReply{Waiting: 5})
			failures := d.get(got[3].ID).Failures.List()
			wantUnreadable(d, failures[:1])
			if len(failures) != 2 || failures[1].Worker != w.id || failures[1].Unreadable {
				d.Errorf("failures %+v, want one that cannot be read and one of the lost worker", failures)
			}
			equal(d, "claimed again", len(d.hire().claim(5)), 5)
		}},
		{name: "P8_Finish", run: func(d *database) {
			d.enqueue(drafts(4)...)
			w := d.hire()
			got := w.claim(4)
			d.spoil(Failures, got[0].ID, got[1].ID)
			equal(d, "verdicts", w.finish(ending(got[0], job.Done), ending(got[1], job.Waiting, failed("boom")), ending(got[2], job.Done), ending(got[3], job.Dead, failed("boom"))),
				[]job.Verdict{job.Applied, job.Applied, job.Applied, job.Applied})
			failures := d.get(got[1].ID).Failures.List()
			wantUnreadable(d, failures[:1])
			equal(d, "the failure behind", failures[1].Message, "boom")
			wantUnreadable(d, d.get(got[0].ID).Failures.List())
		}},
		{name: "P8_Hold", run: func(d *database) {
			d.enqueue(drafts(3)...)
			w := d.hire()
			got := w.claim(3)
			d.spoil(Failures, got[0].ID)
			d.spoil(Due, got[1].ID)
			held := must[store.ReportReply](d, "hold")(d.Store.ReportRuns(d.ctx, w.id, nil))
			equal(d, "given back", held, store.ReportReply{Returned: 3})
		}},
		{name: "P8_Expire", run: func(d *database) {
			deadline := d.now().Add(time.Hour)
			list := d.enqueue(drafts(4, until(deadline))...)
			d.spoil(Failures, list[0])
			d.spoil(State, list[1])
			d.spoil(Due, list[2])
			d.advance(2 * time.Hour)
			equal(d, "expired", d.expire(10), 3)
			equal(d, "states", d.states(list[0], list[2], list[3]), []job.State{job.Dead, job.Dead, job.Dead})
		}},
		{name: "P8_ListAndGet", run: func(d *database) {
			list := d.enqueue(drafts(4, func(d *job.Draft) { d.Tags = []string{"a"} })...)
			w := d.hire()
			w.end(w.take(), job.Dead, failed("boom"))
			d.spoil(ArchivedFailures, list[0])
			d.spoil(Failures, list[1])
			d.spoil(Tags, list[2])
			newestFirst := slices.Clone(list)
			slices.Reverse(newestFirst)
			show := func(f store.Filter) (shown []job.ID) {
				d.Helper()
				for _, j := range must[store.Listed](d, "list")(d.Store.List(d.ctx, f, store.Page{Limit: 10})).Jobs {
					shown = append(shown, j.ID)
				}
				return shown
			}
			equal(d, "list", show(store.Filter{}), newestFirst)
			equal(d, "list by tag", show(store.Filter{Tag: "a"}), []job.ID{list[3], list[1], list[0]})
			equal(d, "count by tag", must[store.Counted](d, "count")(d.Store.Count(d.ctx, store.Filter{Tag: "a"}, 0)).Jobs, 3)
			jobs := must[[]job.Job](d, "get")(d.Store.Get(d.ctx, list))
			wantUnreadable(d, jobs[0].Failures.List())
			wantUnreadable(d, jobs[1].Failures.List())
			equal(d, "unreadable", jobs[2].Unreadable, []string{"tags"})
			for _, id := range list {
				must[job.Situation](d, "situation")(store.SituationOf(d.ctx, d.Store, id))
			}
		}},
		{name: "P8_Operators", run: func(d *database) {
			spoilt := func() (list []job.ID) {
				list = d.enqueue(drafts(5)...)
				d.spoil(Failures, list[0])
				d.spoil(Tags, list[1])
				d.spoil(Capabilities, list[2])
				d.spoil(Due, list[3])
				return list
			}
			changed := []store.Change{store.Changed, store.Changed, store.Changed, store.Changed, store.Changed}
			list := spoilt()
			equal(d, "cancel", d.cancel(list...), changed)
			d.spoil(ArchivedFailures, list[4])
			equal(d, "retry", d.retry(list...), changed)
			equal(d, "states", slices.Compact(d.states(list...)), []job.State{job.Waiting})
			equal(d, "delete", d.delete(list...), changed)
			list = spoilt()
			d.spoil(State, list[1])
			changed[1] = store.Active
			equal(d, "cancel beside a state that nobody knows", d.cancel(list...), changed)
			equal(d, "delete of it", d.delete(list[1]), []store.Change{store.Changed})
		}},
		{name: "P8_Purge", run: func(d *database) {
			list := d.enqueue(drafts(2)...)
			w := d.hire()
			for range list {
				w.end(w.take(), job.Dead, failed("boom"))
			}
			d.spoil(ArchivedFailures, list[0])
			d.advance(10_000 * time.Hour)
			must[int](d, "purge")(d.Store.Purge(d.ctx, 100))
			d.gone("purged", list[0])
			d.gone("purged", list[1])
		}},
		{name: "P6_CheckNamesThem", run: func(d *database) {
			list := d.enqueue(drafts(5)...)
			w := d.hire()
			w.end(w.take(), job.Dead, failed("boom"))
			w.end(w.take(), job.Waiting, failed("boom"), func(e *job.End) { e.Delay = time.Hour })
			d.spoil(ArchivedFailures, list[0])
			d.spoil(Failures, list[2])
			d.spoil(Tags, list[3])
			d.spoil(Capabilities, list[4])
			report := must[store.CheckReport](d, "check")(d.Store.Check(d.ctx, store.Check{}))
			rules := map[job.ID]string{}
			for _, f := range report.Faults {
				rules[f.ID] += f.Rule
			}
			equal(d, "faults", rules, map[job.ID]string{
				list[0]: "failures cannot be read", list[2]: "failures cannot be read", list[3]: "names cannot be read", list[4]: "names cannot be read",
			})
		}},
		{name: "P8_Workers", run: func(d *database) {
			id := d.one(in(time.Hour))
			w, v, u := d.hire(), d.hire(), d.hire()
			d.spoilWorker(Offer, v)
			d.spoilWorker(WorkerQueues, u)
			w.beat()
			v.beat()
			u.beat()
			workers := must[[]store.WorkerInfo](d, "registry")(d.Store.Registry(d.ctx))
			if len(workers) != 3 || !slices.Contains(workers[1].Unreadable, "offer") || workers[0].Unreadable != nil {
				d.Errorf("registry %+v, want three workers, the second without a readable offer", workers)
			}
			s := must[job.Situation](d, "situation")(store.SituationOf(d.ctx, d.Store, id))
			equal(d, "offer that can be read", s.Workers[0], everything)
		}},
	}
	cases = append(cases, testCase{name: "P8_Unserved", run: func(d *database) {
		list := d.enqueue(drafts(2, onQueue("nobody's"))...)
		w, v := d.hire(), d.hire()
		d.spoil(Capabilities, list[0])
		d.spoilWorker(Offer, v)
		d.advance(lostAfter / 2)
		w.beat()
		v.beat()
		found := must[[]store.Unserved](d, "unserved")(d.Store.Unserved(d.ctx, w.id, time.Second))
		if len(found) == 0 || found[0].Queue != "nobody's" {
			d.Errorf("unserved: %+v, want the queue that nobody serves", found)
		}
	}})
	cases = append(cases, testCase{name: "P8_TotalsOfAWorker", run: func(d *database) {
		total := store.Total{Queue: queue, Total: 4, Workers: 2}
		a, b, c := d.share(total), d.share(total), d.share(total)
		d.agree(a, b, c)
		d.spoilWorker(Totals, b.employee)
		c.leave() // with another version of the registry the others read it
		equal(d, "crews of the other", a.hear().Crews, map[string]store.Crew{queue: {Total: 4, Workers: []int{2}}})
		equal(d, "crews of its own", len(b.hear().Crews), 0)
		workers := must[[]store.WorkerInfo](d, "registry")(d.Store.Registry(d.ctx))
		if len(workers) != 2 || !slices.Contains(workers[1].Unreadable, "totals") {
			d.Errorf("registry %+v, want two workers, the second without readable totals", workers)
		}
	}})
	for i := range cases {
		cases[i].needs.Spoil = true
	}
	return cases
}

// wantUnreadable checks that there is one failure and that it says that it
// cannot be read.
func wantUnreadable(d *database, list []job.Failure) {
	d.Helper()
	if len(list) != 1 || !list[0].Unreadable || !strings.HasPrefix(list[0].Message, "cannot be read: ") {
		d.Errorf("failures %+v, want one that says that it cannot be read", list)
	}
}
