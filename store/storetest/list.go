package storetest

import (
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func list() []testCase {
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
			var after store.Bookmark
			for pages := 0; ; pages++ {
				found, listed := d.listed(store.Filter{}, store.Page{After: after, Limit: 4})
				got = append(got, found...)
				if listed.More != (len(got) < len(made)) {
					d.Fatalf("more is %v after %d of %d", listed.More, len(got), len(made))
				}
				if !listed.More {
					equal(d, "next", listed.Next, store.Bookmark{})
					break
				}
				equal(d, "next", listed.Next, store.Bookmark{ID: found[len(found)-1]})
				after = listed.Next
				if pages == 2 {
					d.one() // newer than the page: must not shift it
				}
			}
			equal(d, "listed", got, made)
		}},
		{name: "ExactlyOnePage", run: func(d *database) {
			d.enqueue(drafts(4)...)
			_, listed := d.listed(store.Filter{}, store.Page{Limit: 4})
			equal(d, "more", listed.More, false)
			_, listed = d.listed(store.Filter{}, store.Page{Limit: 3})
			equal(d, "more", listed.More, true)
			equal(d, "stopped", listed.Stopped, false)
		}},
		{name: "NothingThere", run: func(d *database) {
			d.finds("nothing", store.Filter{})
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
				d.finds(s.String(), store.Filter{States: []job.State{s}}, id)
			}
			d.finds("two places", store.Filter{States: []job.State{job.Done, job.Waiting}}, by[job.Done], by[job.Waiting])
			d.finds("blocked", store.Filter{States: []job.State{job.Blocked, job.Skipped}})
		}},
		{name: "ByQueueKindKey", run: func(d *database) {
			key := func(k string) func(*job.Draft) { return func(d *job.Draft) { d.Key = k } }
			a, b, c := d.one(onQueue("a"), key("1")), d.one(onQueue("b"), ofKind("other")), d.one(onQueue("a"), ofKind("other"), key("2"))
			d.cancel(c)
			d.finds("queue a", store.Filter{Queue: "a"}, a, c)
			d.finds("kind other", store.Filter{Kind: "other"}, b, c)
			d.finds("key 2", store.Filter{Key: "2"}, c)
			d.finds("both", store.Filter{Queue: "a", Kind: "other"}, c)
			d.finds("neither", store.Filter{Queue: "b", Key: "1"})
		}},
		{name: "ByTagExactly", run: func(d *database) {
			tags := func(t ...string) func(*job.Draft) { return func(d *job.Draft) { d.Tags = t } }
			red, both, _ := d.one(tags("red")), d.one(tags("blue", "red")), d.one(tags("redder", "re", "Red"))
			odd := d.one(tags(`a"b`, "%", `c\d`, "é"))
			d.cancel(both)
			d.finds("red", store.Filter{Tag: "red"}, red, both)
			d.finds("part of a tag", store.Filter{Tag: "ed"})
			d.finds("wildcard", store.Filter{Tag: "%"}, odd)
			d.finds("quote", store.Filter{Tag: `a"b`}, odd)
			d.finds("backslash", store.Filter{Tag: `c\d`}, odd)
			d.finds("accent", store.Filter{Tag: "é"}, odd)
		}},
		{name: "ReadyAndScheduled", run: func(d *database) {
			now := d.now()
			soon, late := d.one(at(now.Add(time.Hour))), d.one(at(now.Add(3*time.Hour)))
			ready := d.one()
			waiting := []job.State{job.Waiting}
			half := now.Add(30 * time.Minute)
			d.finds("ready", store.Filter{States: waiting, DueBefore: half}, ready)
			d.finds("scheduled", store.Filter{States: waiting, DueAfter: half}, soon, late)
			d.finds("between", store.Filter{States: waiting, DueAfter: half, DueBefore: now.Add(2 * time.Hour)}, soon)
		}},
		{name: "ByTimeOfEnqueue", run: func(d *database) {
			first := d.one()
			d.advance(time.Hour)
			mark := d.now().Add(-30 * time.Minute)
			second := d.one()
			d.cancel(first)
			d.finds("before", store.Filter{CreatedBefore: mark}, first)
			d.finds("after", store.Filter{CreatedAfter: mark}, second)
			d.finds("neither", store.Filter{CreatedAfter: mark, CreatedBefore: mark})
		}},
		{name: "P10_CountsAreCapped", run: func(d *database) {
			d.cancel(d.enqueue(drafts(6)...)[:3]...)
			for _, c := range [][2]int{{0, 6}, {1, 1}, {2, 2}, {4, 4}, {6, 6}, {100, 6}} {
				want := store.Counted{Jobs: c[1], More: c[1] < 6}
				equal(d, "count", must[store.Counted](d, "count")(d.Store.Count(d.ctx, store.Filter{}, c[0])), want)
			}
			for _, cap := range []int{-1, store.MaxCounted + 1} {
				_, err := d.Store.Count(d.ctx, store.Filter{}, cap)
				means(d, "cap", err, job.ErrInvalid)
			}
		}},
		{name: "P10_PagesAreBounded", run: func(d *database) {
			d.enqueue(drafts(1_100)...)
			got, listed := d.listed(store.Filter{}, store.Page{Limit: 1_000})
			equal(d, "listed", len(got), 1_000)
			equal(d, "more", listed.More, true)
		}},
		{name: "J35_ByWorker", run: func(d *database) {
			a, b := d.hire(), d.hire()
			d.enqueue(drafts(3)...)
			one, two, three := a.take(), b.take(), a.take()
			d.finds("what one runs", store.Filter{Worker: a.id}, one.ID, three.ID)
			d.finds("what the other runs", store.Filter{Worker: b.id, Queue: queue}, two.ID)
			d.finds("what it runs elsewhere", store.Filter{Worker: b.id, Queue: "other"})
			d.finds("what it ran", store.Filter{Worker: b.id, States: []job.State{job.Done, job.Waiting}})
			a.end(one, job.Done)
			d.finds("what it still runs", store.Filter{Worker: a.id}, three.ID)
			b.end(two, job.Done)
			d.finds("nothing", store.Filter{Worker: b.id})
		}},
		{name: "J35_ByFingerprint", run: func(d *database) {
			w := d.hire()
			fails := func(j store.LeasedJob, to job.State, message string) {
				w.end(j, to, func(e *job.End) {
					e.Burn, e.Failure = true, job.NewFailure(1, j.Run, message, "").Body()
				})
			}
			d.enqueue(drafts(4)...)
			jobs := w.claim(4)
			fails(jobs[0], job.Dead, "order 7 is gone")
			fails(jobs[1], job.Waiting, "order 8 is gone")
			fails(jobs[2], job.Dead, "no such table")
			w.end(jobs[3], job.Dead)
			gone, table := job.Fingerprint("order 9 is gone"), job.Fingerprint("no such table")
			d.finds("orders that are gone", store.Filter{Fingerprint: gone}, jobs[0].ID, jobs[1].ID)
			d.finds("those of them that died", store.Filter{Fingerprint: gone, States: []job.State{job.Dead}}, jobs[0].ID)
			// Only the last failure counts; an earlier one is still in the list.
			fails(w.take(), job.Waiting, "no such table")
			d.finds("orders that are still gone", store.Filter{Fingerprint: gone}, jobs[0].ID)
			d.finds("missing tables", store.Filter{Fingerprint: table}, jobs[1].ID, jobs[2].ID)
			d.finds("unheard of", store.Filter{Fingerprint: job.Fingerprint("?")})
			// A page of which some failures are not the last ones goes on behind them.
			var got []job.ID
			for p := (store.Page{Limit: 1}); ; {
				found, listed := d.listed(store.Filter{Fingerprint: gone}, p)
				if got = append(got, found...); !listed.More {
					break
				}
				p.After = listed.Next
			}
			equal(d, "by pages", got, []job.ID{jobs[0].ID})
		}},
		{name: "J35_ByTimeOfFinish", run: func(d *database) {
			w := d.hire()
			d.enqueue(drafts(3)...)
			first, second := w.take(), w.take()
			w.end(second, job.Dead)
			d.advance(time.Hour)
			mark := d.now().Add(-30 * time.Minute)
			w.end(first, job.Done)
			d.finds("before", store.Filter{FinishedBefore: mark}, second.ID)
			d.finds("after", store.Filter{FinishedAfter: mark}, first.ID)
			d.finds("after, in a queue", store.Filter{FinishedAfter: mark, Queue: queue}, first.ID)
			d.finds("at any time", store.Filter{FinishedBefore: mark.Add(24 * time.Hour)}, first.ID, second.ID)
			d.finds("what waits does not match", store.Filter{FinishedAfter: mark, States: []job.State{job.Waiting}})
			exactly := d.get(first.ID).Finished
			d.finds("from it on", store.Filter{FinishedAfter: exactly}, first.ID)
			d.finds("up to it", store.Filter{FinishedBefore: exactly}, second.ID)
		}},
		{name: "J35_InOrderOfDue", run: func(d *database) {
			now := d.now()
			due := func(hours int) func(*job.Draft) { return at(now.Add(time.Duration(hours) * time.Hour)) }
			c, a, e := d.one(due(3)), d.one(due(1), priority(9)), d.one(due(5), priority(1))
			b, b2 := d.one(due(2), priority(1)), d.one(due(2), priority(9))
			d.one(due(1), onQueue("other"))
			f := store.Filter{Queue: queue, States: []job.State{job.Waiting}}
			want := []job.ID{a, b, b2, c, e}
			got, listed := d.listed(f, store.Page{Limit: 10, Order: store.ByDue})
			equal(d, "listed", got, want)
			equal(d, "more", listed.More, false)
			got = nil
			for p := (store.Page{Limit: 2, Order: store.ByDue}); ; {
				found, listed := d.listed(f, p)
				if got = append(got, found...); !listed.More {
					break
				}
				p.After = listed.Next
			}
			equal(d, "by pages", got, want)
			f.DueAfter, f.DueBefore = now.Add(90*time.Minute), now.Add(3*time.Hour)
			got, _ = d.listed(f, store.Page{Limit: 10, Order: store.ByDue})
			equal(d, "between", got, []job.ID{b, b2, c})
			for _, f := range []store.Filter{{}, {Queue: queue}, {States: []job.State{job.Waiting}}, {Queue: queue, States: []job.State{job.Waiting, job.Running}}} {
				_, err := d.Store.List(d.ctx, f, store.Page{Limit: 10, Order: store.ByDue})
				means(d, "an order that no index has", err, job.ErrInvalid)
			}
		}},
		{name: "J35_InOrderOfFinish", run: func(d *database) {
			w := d.hire()
			d.enqueue(drafts(5)...)
			jobs := w.claim(5)
			var want []job.ID
			for n, i := range []int{3, 0, 4, 1, 2} {
				d.advance(time.Minute)
				to := job.Dead
				if n == 2 {
					to = job.Cancelled
				}
				if n == 3 {
					w.end(jobs[i], job.Done)
					continue
				}
				w.end(jobs[i], to)
				want = append([]job.ID{jobs[i].ID}, want...)
			}
			f := store.Filter{States: []job.State{job.Dead, job.Cancelled}}
			got, listed := d.listed(f, store.Page{Limit: 10, Order: store.ByFinish})
			equal(d, "listed", got, want)
			equal(d, "more", listed.More, false)
			got = nil
			for p := (store.Page{Limit: 1, Order: store.ByFinish}); ; {
				found, listed := d.listed(f, p)
				if got = append(got, found...); !listed.More {
					break
				}
				p.After = listed.Next
			}
			equal(d, "by pages", got, want)
			for _, f := range []store.Filter{{}, {States: []job.State{job.Done}}, {States: []job.State{job.Dead, job.Waiting}}} {
				_, err := d.Store.List(d.ctx, f, store.Page{Limit: 10, Order: store.ByFinish})
				means(d, "an order that no index has", err, job.ErrInvalid)
			}
		}},
		{name: "J35_ManyInOrderOfFinish", run: func(d *database) {
			w := d.hire("rare")
			d.enqueue(drafts(2, onQueue("rare"))...)
			rare := w.ask(store.QueueClaim{Queue: "rare", Limit: 2, Start: 2}).Jobs
			first, last := rare[0], rare[1]
			w.end(first, job.Dead)
			var want []job.ID
			for n := range 12 { // more than a page may walk, of the newest enqueued first
				ids := d.enqueue(drafts(store.MaxWalked / 10)...)
				d.advance(time.Minute)
				d.cancel(ids...)
				if n == 11 {
					want = ids
				}
			}
			slices.SortFunc(want, func(a, b job.ID) int { return slices.Compare(b[:], a[:]) })
			d.advance(time.Minute)
			w.end(last, job.Dead)
			both := []job.State{job.Dead, job.Cancelled}
			finish := store.Page{Limit: 10, Order: store.ByFinish}
			found, listed := d.listed(store.Filter{States: both}, finish)
			equal(d, "the last", found, append([]job.ID{last.ID}, want[:9]...))
			equal(d, "stopped", listed.Stopped, false)
			finish.After = listed.Next
			found, _ = d.listed(store.Filter{States: both}, finish)
			equal(d, "the next", found, want[9:19])
			finish.After = store.Bookmark{}
			for what, f := range map[string]store.Filter{
				"dead ones":            {States: []job.State{job.Dead}},
				"those of a queue":     {States: both, Queue: "rare"},
				"dead ones of a queue": {States: []job.State{job.Dead}, Queue: "rare"},
			} {
				found, listed := d.listed(f, finish)
				equal(d, what, found, []job.ID{last.ID, first.ID})
				equal(d, what+": more", listed.More, false)
			}
			found, _ = d.listed(store.Filter{States: both, Queue: queue}, finish)
			equal(d, "those of a queue with many", found, want[:10])
			at := d.get(first.ID).Finished
			found, _ = d.listed(store.Filter{States: both, FinishedBefore: at.Add(time.Second)}, finish)
			equal(d, "before", found, []job.ID{first.ID})
			found, _ = d.listed(store.Filter{States: both, FinishedAfter: d.get(last.ID).Finished}, finish)
			equal(d, "after", found, []job.ID{last.ID})
		}},
	}
}

// listed lists one page.
func (d *database) listed(f store.Filter, p store.Page) ([]job.ID, store.Listed) {
	d.Helper()
	got := must[store.Listed](d, "list")(d.Store.List(d.ctx, f, p))
	var found []job.ID
	for _, j := range got.Jobs {
		found = append(found, j.ID)
	}
	return found, got
}

// finds checks what a filter matches, newest first, in List and in Count.
func (d *database) finds(what string, f store.Filter, want ...job.ID) {
	d.Helper()
	slices.SortFunc(want, func(a, b job.ID) int { return slices.Compare(b[:], a[:]) })
	got, _ := d.listed(f, store.Page{Limit: 1000})
	equal(d, what, got, want)
	equal(d, "count of "+what, must[store.Counted](d, "count")(d.Store.Count(d.ctx, f, 0)), store.Counted{Jobs: len(want)})
}
