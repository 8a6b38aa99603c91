package storetest

import (
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func list() []testCase {
	// page lists one page.
	page := func(d *database, f store.Filter, p store.Page) ([]job.ID, bool) {
		d.Helper()
		got := must[store.Listed](d, "list")(d.Store.List(d.ctx, f, p))
		var found []job.ID
		for _, j := range got.Jobs {
			found = append(found, j.ID)
		}
		return found, got.More
	}
	// finds checks what a filter matches, newest first, in List and in Count.
	finds := func(d *database, what string, f store.Filter, want ...job.ID) {
		d.Helper()
		slices.SortFunc(want, func(a, b job.ID) int { return slices.Compare(b[:], a[:]) })
		got, _ := page(d, f, store.Page{Limit: 1000})
		equal(d, what, got, want)
		equal(d, "count of "+what, must[int](d, "count")(d.Store.Count(d.ctx, f, 0)), len(want))
	}
	return []testCase{
		{name: "J25_KeysetNewestFirst", run: func(d *database) {
			made := d.enqueue(drafts(25)...)
			w := d.hire()
			for i, j := range w.claim(20) { // spread over live and archived, mixed by id
				if i%3 == 0 {
					w.end(j, job.Done)
				}
			}
			slices.Reverse(made)
			var got []job.ID
			var after job.ID
			for pages := 0; ; pages++ {
				found, more := page(d, store.Filter{}, store.Page{After: after, Limit: 4})
				got = append(got, found...)
				if more != (len(got) < len(made)) {
					d.Fatalf("more is %v after %d of %d", more, len(got), len(made))
				}
				if !more {
					break
				}
				after = found[len(found)-1]
				if pages == 2 {
					d.one() // newer than the page: must not shift it
				}
			}
			equal(d, "listed", got, made)
		}},
		{name: "ExactlyOnePage", run: func(d *database) {
			d.enqueue(drafts(4)...)
			_, more := page(d, store.Filter{}, store.Page{Limit: 4})
			equal(d, "more", more, false)
			_, more = page(d, store.Filter{}, store.Page{Limit: 3})
			equal(d, "more", more, true)
		}},
		{name: "NothingThere", run: func(d *database) {
			finds(d, "nothing", store.Filter{})
		}},
		{name: "WholeJobs", run: func(d *database) {
			waiting, done := d.one(priority(9), once("x", time.Hour)), d.one(priority(1))
			w := d.hire()
			w.end(w.take(), job.Done, func(e *job.End) { e.Result = []byte("r") })
			got := must[store.Listed](d, "list")(d.Store.List(d.ctx, store.Filter{}, store.Page{Limit: 10}))
			equal(d, "jobs", got.Jobs, []job.Job{d.get(done), d.get(waiting)})
		}},
		{name: "ByState", run: func(d *database) {
			w := d.hire()
			by := map[job.State]job.ID{}
			for _, to := range []job.State{job.Done, job.Dead, job.Cancelled, job.Suspended} {
				by[to] = d.one()
				w.end(w.take(), to)
			}
			by[job.Running] = d.one()
			w.take()
			by[job.Waiting] = d.one()
			for s, id := range by {
				finds(d, s.String(), store.Filter{States: []job.State{s}}, id)
			}
			finds(d, "two places", store.Filter{States: []job.State{job.Done, job.Waiting}}, by[job.Done], by[job.Waiting])
			finds(d, "blocked", store.Filter{States: []job.State{job.Blocked, job.Skipped}})
		}},
		{name: "ByQueueKindKey", run: func(d *database) {
			key := func(k string) func(*job.Draft) { return func(d *job.Draft) { d.Key = k } }
			a, b, c := d.one(onQueue("a"), key("1")), d.one(onQueue("b"), ofKind("other")), d.one(onQueue("a"), ofKind("other"), key("2"))
			d.cancel(c)
			finds(d, "queue a", store.Filter{Queue: "a"}, a, c)
			finds(d, "kind other", store.Filter{Kind: "other"}, b, c)
			finds(d, "key 2", store.Filter{Key: "2"}, c)
			finds(d, "both", store.Filter{Queue: "a", Kind: "other"}, c)
			finds(d, "neither", store.Filter{Queue: "b", Key: "1"})
		}},
		{name: "ByTagExactly", run: func(d *database) {
			tags := func(t ...string) func(*job.Draft) { return func(d *job.Draft) { d.Tags = t } }
			red, both, _ := d.one(tags("red")), d.one(tags("blue", "red")), d.one(tags("redder", "re", "Red"))
			odd := d.one(tags(`a"b`, "%", `c\d`, "é"))
			d.cancel(both)
			finds(d, "red", store.Filter{Tag: "red"}, red, both)
			finds(d, "part of a tag", store.Filter{Tag: "ed"})
			finds(d, "wildcard", store.Filter{Tag: "%"}, odd)
			finds(d, "quote", store.Filter{Tag: `a"b`}, odd)
			finds(d, "backslash", store.Filter{Tag: `c\d`}, odd)
			finds(d, "accent", store.Filter{Tag: "é"}, odd)
		}},
		{name: "ReadyAndScheduled", run: func(d *database) {
			now := d.now()
			soon, late := d.one(at(now.Add(time.Hour))), d.one(at(now.Add(3*time.Hour)))
			ready := d.one()
			waiting := []job.State{job.Waiting}
			half := now.Add(30 * time.Minute)
			finds(d, "ready", store.Filter{States: waiting, DueBefore: half}, ready)
			finds(d, "scheduled", store.Filter{States: waiting, DueAfter: half}, soon, late)
			finds(d, "between", store.Filter{States: waiting, DueAfter: half, DueBefore: now.Add(2 * time.Hour)}, soon)
		}},
		{name: "ByTimeOfEnqueue", run: func(d *database) {
			first := d.one()
			d.advance(time.Hour)
			mark := d.now().Add(-30 * time.Minute)
			second := d.one()
			d.cancel(first)
			finds(d, "before", store.Filter{CreatedBefore: mark}, first)
			finds(d, "after", store.Filter{CreatedAfter: mark}, second)
			finds(d, "neither", store.Filter{CreatedAfter: mark, CreatedBefore: mark})
		}},
		{name: "P10_CountsAreCapped", run: func(d *database) {
			d.cancel(d.enqueue(drafts(6)...)[:3]...)
			for _, c := range [][2]int{{0, 6}, {1, 1}, {2, 2}, {4, 4}, {6, 6}, {100, 6}} {
				equal(d, "count", must[int](d, "count")(d.Store.Count(d.ctx, store.Filter{}, c[0])), c[1])
			}
		}},
		{name: "P10_PagesAreBounded", run: func(d *database) {
			d.enqueue(drafts(1_100)...)
			got, more := page(d, store.Filter{}, store.Page{Limit: 1_000})
			equal(d, "listed", len(got), 1_000)
			equal(d, "more", more, true)
		}},
	}
}
