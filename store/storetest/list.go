package storetest

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func list() []testCase {
	// page lists one page.
	page := func(d *database, f store.Filter, p store.Page) ([]job.ID, store.Listed) {
		d.Helper()
		got := must[store.Listed](d, "list")(d.Store.List(d.ctx, f, p))
		var found []job.ID
		for _, j := range got.Jobs {
			found = append(found, j.ID)
		}
		return found, got
	}
	// finds checks what a filter matches, newest first, in List and in Count.
	finds := func(d *database, what string, f store.Filter, want ...job.ID) {
		d.Helper()
		slices.SortFunc(want, func(a, b job.ID) int { return slices.Compare(b[:], a[:]) })
		got, _ := page(d, f, store.Page{Limit: 1000})
		equal(d, what, got, want)
		equal(d, "count of "+what, must[store.Counted](d, "count")(d.Store.Count(d.ctx, f, 0)), store.Counted{Jobs: len(want)})
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
			var after store.Bookmark
			for pages := 0; ; pages++ {
				found, listed := page(d, store.Filter{}, store.Page{After: after, Limit: 4})
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
			_, listed := page(d, store.Filter{}, store.Page{Limit: 4})
			equal(d, "more", listed.More, false)
			_, listed = page(d, store.Filter{}, store.Page{Limit: 3})
			equal(d, "more", listed.More, true)
			equal(d, "stopped", listed.Stopped, false)
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
			got, listed := page(d, store.Filter{}, store.Page{Limit: 1_000})
			equal(d, "listed", len(got), 1_000)
			equal(d, "more", listed.More, true)
		}},
		{name: "J35_ByWorker", run: func(d *database) {
			a, b := d.hire(), d.hire()
			d.enqueue(drafts(3)...)
			one, two, three := a.take(), b.take(), a.take()
			finds(d, "what one runs", store.Filter{Worker: a.id}, one.ID, three.ID)
			finds(d, "what the other runs", store.Filter{Worker: b.id, Queue: queue}, two.ID)
			finds(d, "what it runs elsewhere", store.Filter{Worker: b.id, Queue: "other"})
			finds(d, "what it ran", store.Filter{Worker: b.id, States: []job.State{job.Done, job.Waiting}})
			a.end(one, job.Done)
			finds(d, "what it still runs", store.Filter{Worker: a.id}, three.ID)
			b.end(two, job.Done)
			finds(d, "nothing", store.Filter{Worker: b.id})
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
			finds(d, "orders that are gone", store.Filter{Fingerprint: gone}, jobs[0].ID, jobs[1].ID)
			finds(d, "those of them that died", store.Filter{Fingerprint: gone, States: []job.State{job.Dead}}, jobs[0].ID)
			// Only the last failure counts; an earlier one is still in the list.
			fails(w.take(), job.Waiting, "no such table")
			finds(d, "orders that are still gone", store.Filter{Fingerprint: gone}, jobs[0].ID)
			finds(d, "missing tables", store.Filter{Fingerprint: table}, jobs[1].ID, jobs[2].ID)
			finds(d, "unheard of", store.Filter{Fingerprint: job.Fingerprint("?")})
			// A page of which some failures are not the last ones goes on behind them.
			var got []job.ID
			for p := (store.Page{Limit: 1}); ; {
				found, listed := page(d, store.Filter{Fingerprint: gone}, p)
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
			finds(d, "before", store.Filter{FinishedBefore: mark}, second.ID)
			finds(d, "after", store.Filter{FinishedAfter: mark}, first.ID)
			finds(d, "after, in a queue", store.Filter{FinishedAfter: mark, Queue: queue}, first.ID)
			finds(d, "at any time", store.Filter{FinishedBefore: mark.Add(24 * time.Hour)}, first.ID, second.ID)
			finds(d, "what waits does not match", store.Filter{FinishedAfter: mark, States: []job.State{job.Waiting}})
			exactly := d.get(first.ID).Finished
			finds(d, "from it on", store.Filter{FinishedAfter: exactly}, first.ID)
			finds(d, "up to it", store.Filter{FinishedBefore: exactly}, second.ID)
		}},
		{name: "J35_InOrderOfDue", run: func(d *database) {
			now := d.now()
			due := func(hours int) func(*job.Draft) { return at(now.Add(time.Duration(hours) * time.Hour)) }
			c, a, e := d.one(due(3)), d.one(due(1), priority(9)), d.one(due(5), priority(1))
			b, b2 := d.one(due(2), priority(1)), d.one(due(2), priority(9))
			d.one(due(1), onQueue("other"))
			f := store.Filter{Queue: queue, States: []job.State{job.Waiting}}
			want := []job.ID{a, b, b2, c, e}
			got, listed := page(d, f, store.Page{Limit: 10, Order: store.ByDue})
			equal(d, "listed", got, want)
			equal(d, "more", listed.More, false)
			got = nil
			for p := (store.Page{Limit: 2, Order: store.ByDue}); ; {
				found, listed := page(d, f, p)
				if got = append(got, found...); !listed.More {
					break
				}
				p.After = listed.Next
			}
			equal(d, "by pages", got, want)
			f.DueAfter, f.DueBefore = now.Add(90*time.Minute), now.Add(3*time.Hour)
			got, _ = page(d, f, store.Page{Limit: 10, Order: store.ByDue})
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
			got, listed := page(d, f, store.Page{Limit: 10, Order: store.ByFinish})
			equal(d, "listed", got, want)
			equal(d, "more", listed.More, false)
			got = nil
			for p := (store.Page{Limit: 1, Order: store.ByFinish}); ; {
				found, listed := page(d, f, p)
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
			found, listed := page(d, store.Filter{States: both}, finish)
			equal(d, "the last", found, append([]job.ID{last.ID}, want[:9]...))
			equal(d, "stopped", listed.Stopped, false)
			finish.After = listed.Next
			found, _ = page(d, store.Filter{States: both}, finish)
			equal(d, "the next", found, want[9:19])
			finish.After = store.Bookmark{}
			for what, f := range map[string]store.Filter{
				"dead ones":            {States: []job.State{job.Dead}},
				"those of a queue":     {States: both, Queue: "rare"},
				"dead ones of a queue": {States: []job.State{job.Dead}, Queue: "rare"},
			} {
				found, listed := page(d, f, finish)
				equal(d, what, found, []job.ID{last.ID, first.ID})
				equal(d, what+": more", listed.More, false)
			}
			found, _ = page(d, store.Filter{States: both, Queue: queue}, finish)
			equal(d, "those of a queue with many", found, want[:10])
			at := d.get(first.ID).Finished
			found, _ = page(d, store.Filter{States: both, FinishedBefore: at.Add(time.Second)}, finish)
			equal(d, "before", found, []job.ID{first.ID})
			found, _ = page(d, store.Filter{States: both, FinishedAfter: d.get(last.ID).Finished}, finish)
			equal(d, "after", found, []job.ID{last.ID})
		}},
		{name: "J35_APageStopsAtItsBound", run: func(d *database) {
			rare := d.one(ofKind("other"))
			for range 7 {
				d.enqueue(drafts(store.MaxVisits / 6)...)
			}
			f := store.Filter{Kind: "other"}
			p := store.Page{Limit: 10}
			found, listed := page(d, f, p)
			equal(d, "found before the bound", len(found), 0)
			if !listed.Stopped || !listed.More || listed.Next == (store.Bookmark{}) {
				d.Fatalf("a page that visited as much as it may says %+v", listed)
			}
			pages := 0
			for ; listed.More; pages++ {
				p.After = listed.Next
				var more []job.ID
				more, listed = page(d, f, p)
				found = append(found, more...)
			}
			equal(d, "found behind it", found, []job.ID{rare})
			if pages > 5 {
				d.Errorf("it took %d pages", pages)
			}
			equal(d, "count", must[store.Counted](d, "count")(d.Store.Count(d.ctx, f, 0)).More, true)
			equal(d, "count of all", must[store.Counted](d, "count")(d.Store.Count(d.ctx, store.Filter{}, 0)), store.Counted{Jobs: store.MaxCounted, More: true})
		}},
		listRandom(),
		{name: "J35_CountsByQueueAndState", run: func(d *database) {
			counter, ok := d.Store.(store.Counter)
			if !ok {
				d.Fatal("the store does not count by queue and state")
			}
			counts := func() []store.QueueCount { return must[[]store.QueueCount](d, "counts")(counter.Counts(d.ctx)) }
			equal(d, "counts of nothing", len(counts()), 0)
			w := d.hire()
			d.enqueue(drafts(6)...)
			for _, to := range []job.State{job.Done, job.Done, job.Dead, job.Suspended} {
				w.end(w.take(), to)
			}
			w.take()
			d.enqueue(drafts(2, onQueue("other"))...)
			d.cancel(d.one(onQueue("other")))
			of := func(queue string, s job.State, n int) store.QueueCount {
				return store.QueueCount{Queue: queue, State: s, Counted: store.Counted{Jobs: n}}
			}
			equal(d, "counts", counts(), []store.QueueCount{
				of("other", job.Waiting, 2), of("other", job.Cancelled, 1),
				of(queue, job.Waiting, 1), of(queue, job.Running, 1), of(queue, job.Suspended, 1), of(queue, job.Done, 2), of(queue, job.Dead, 1),
			})
			for range 3 {
				d.enqueue(drafts(store.MaxCounted/2, onQueue("long"))...)
			}
			equal(d, "a long queue", counts()[0], store.QueueCount{Queue: "long", State: job.Waiting, Counted: store.Counted{Jobs: store.MaxCounted, More: true}})
		}},
		{name: "J35_OneQueueDoesNotWalkTheOthers", run: func(d *database) {
			w := d.hire()
			rare := []job.ID{d.one(onQueue("rare")), d.one(onQueue("rare"), priority(1))}
			running := d.one(priority(1))
			w.take()
			for range 7 {
				d.enqueue(drafts(store.MaxWalked / 6)...)
			}
			slices.Reverse(rare)
			for what, f := range map[string]store.Filter{
				"waiting jobs of a queue": {Queue: "rare", States: []job.State{job.Waiting}},
				"a queue":                 {Queue: "rare"},
			} {
				found, listed := page(d, f, store.Page{Limit: 10})
				equal(d, what, found, rare)
				equal(d, what+": stopped", listed.Stopped, false)
				equal(d, "count of "+what, must[store.Counted](d, "count")(d.Store.Count(d.ctx, f, 0)), store.Counted{Jobs: 2})
			}
			found, listed := page(d, store.Filter{States: []job.State{job.Running}}, store.Page{Limit: 10})
			equal(d, "running jobs", found, []job.ID{running})
			equal(d, "stopped", listed.Stopped, false)
		}},
		{name: "J35_ALongQueueComesByDueThenTheRest", run: func(d *database) {
			w := d.hire()
			now := d.now()
			d.enqueue(drafts(3)...)
			var ended []job.ID
			for range 3 {
				j := w.take()
				w.end(j, job.Dead)
				ended = append([]job.ID{j.ID}, ended...)
			}
			const many = store.MaxSorted + 10
			waiting := make([]job.ID, many) // by due, which is another order than that of their ids
			var list []job.Draft
			for n := range many {
				list = append(list, drafts(1, at(now.Add(time.Hour+time.Duration(n*7%many)*time.Second)), priority(1+n%9))...)
			}
			for n, id := range d.enqueue(list...) {
				waiting[n*7%many] = id
			}
			d.enqueue(drafts(20, onQueue("other"))...)
			var got []job.ID
			var orders []store.Order
			for p := (store.Page{Limit: 1000}); ; {
				found, listed := page(d, store.Filter{Queue: queue}, p)
				got, orders = append(got, found...), append(orders, listed.Order)
				equal(d, "stopped", listed.Stopped, len(orders) >= 3 && len(orders) <= 5) // where a part ends
				if !listed.More {
					break
				}
				p.After = listed.Next
			}
			equal(d, "listed", got, append(waiting, ended...))
			equal(d, "orders", orders, []store.Order{store.ByDue, store.ByDue, store.ByDue, store.ByGate, store.ByWorker, store.ByID})
			found, listed := page(d, store.Filter{Queue: queue, States: []job.State{job.Waiting, job.Running}, DueAfter: now.Add(time.Hour + (many-4)*time.Second)}, store.Page{Limit: 1000})
			for _, p := range []store.Page{
				{After: store.Bookmark{Part: store.PartRest + 1}},
				{After: store.Bookmark{Part: store.PartRest}, Order: store.ByDue},
			} {
				p.Limit = 10
				_, err := d.Store.List(d.ctx, store.Filter{Queue: queue, States: []job.State{job.Waiting}}, p)
				means(d, "a part that no list has", err, job.ErrInvalid)
			}
			_, err := d.Store.List(d.ctx, store.Filter{}, store.Page{Limit: 10, After: store.Bookmark{Part: store.PartWaiting}})
			means(d, "a part of a list of all queues", err, job.ErrInvalid)
			equal(d, "of few that match", found, waiting[len(waiting)-3:])
			equal(d, "more", listed.More, true)
		}},
		{name: "J35_ManyBehindGatesComeByGate", run: func(d *database) {
			now := d.now()
			w := d.hire()
			d.one()
			running := w.take().ID
			const many = store.MaxSorted + 10
			due := func(n int) func(*job.Draft) { return at(now.Add(time.Hour + time.Duration(n)*time.Second)) }
			behind := func(gate int64) func(*job.Draft) { return func(d *job.Draft) { d.Gate = gate } }
			var list []job.Draft // the last of a gate is due first
			for n := range many {
				list = append(list, draft(due(many-n), behind([]int64{5, -3, 8}[n%3]), priority(1+n%2)))
			}
			gated := d.enqueue(list...)
			type place struct {
				gate     int64
				priority int
				id       job.ID
			}
			var places []place
			for n, id := range gated {
				places = append(places, place{[]int64{5, -3, 8}[n%3], 1 + n%2, id})
			}
			slices.Reverse(places) // by due
			slices.SortStableFunc(places, func(a, b place) int { return cmp.Or(cmp.Compare(a.gate, b.gate), a.priority-b.priority) })
			var byGate []job.ID
			for _, p := range places {
				byGate = append(byGate, p.id)
			}
			var plain []job.ID
			for n := range 20 {
				plain = append(plain, d.one(due(n)))
			}
			d.one(onQueue("other"), behind(5))
			// whole lists all pages, with the orders that they had.
			whole := func(f store.Filter, order store.Order, limit int) (got []job.ID, orders []store.Order) {
				d.Helper()
				for p := (store.Page{Limit: limit, Order: order}); ; {
					found, listed := page(d, f, p)
					if got = append(got, found...); !slices.Contains(orders, listed.Order) {
						orders = append(orders, listed.Order)
					}
					if !listed.More {
						return got, orders
					}
					p.After = listed.Next
				}
			}
			got, orders := whole(store.Filter{Queue: queue}, store.ByID, 700)
			equal(d, "listed by id", got, slices.Concat(plain, byGate, []job.ID{running}))
			equal(d, "orders", orders, []store.Order{store.ByDue, store.ByGate, store.ByWorker, store.ByID})
			waiting := store.Filter{Queue: queue, States: []job.State{job.Waiting}}
			got, orders = whole(waiting, store.ByDue, 300)
			equal(d, "listed by due", got, slices.Concat(plain, byGate))
			equal(d, "orders", orders, []store.Order{store.ByDue, store.ByGate})
			equal(d, "counted", must[store.Counted](d, "count")(d.Store.Count(d.ctx, waiting, 0)), store.Counted{Jobs: many + len(plain)})
			_, err := d.Store.List(d.ctx, waiting, store.Page{Limit: 10, Order: store.ByGate})
			means(d, "an order of its own", err, job.ErrInvalid)
		}},
		{name: "J35_BehindGatesBecomesLongIsListedOnce", run: func(d *database) {
			now := d.now()
			due := func(n int) func(*job.Draft) { return at(now.Add(time.Duration(n) * time.Hour)) }
			behind := func(d *job.Draft) { d.Gate = 7 }
			var want []job.ID
			for n := range 10 {
				if n%2 == 0 {
					want = append(want, d.one(due(1+n)))
				} else {
					want = append(want, d.one(due(1+n), behind))
				}
			}
			f := store.Filter{Queue: queue, States: []job.State{job.Waiting}}
			got, listed := page(d, f, store.Page{Limit: 4, Order: store.ByDue})
			equal(d, "while they are few, by due", got, want[:4])
			d.enqueue(drafts(store.MaxSorted, behind)...) // due before what was listed last
			for listed.More {
				var found []job.ID
				found, listed = page(d, f, store.Page{Limit: 2, After: listed.Next, Order: store.ByDue})
				got = append(got, found...)
			}
			equal(d, "listed", got, []job.ID{want[0], want[1], want[2], want[3], want[4], want[6], want[8], want[5], want[7], want[9]})
		}},
		{name: "J35_ManyThatRunComeByWorker", run: func(d *database) {
			a, b := d.hire(queue, "rare"), d.hire(queue, "rare")
			rare := d.enqueue(drafts(3, onQueue("rare"))...)
			runs := b.ask(store.QueueClaim{Queue: "rare", Limit: 1, Start: 1}).Jobs
			d.cancel(rare[1])
			var want []job.ID
			for _, w := range []*hand{a, b} {
				for range 3 {
					d.enqueue(drafts(store.MaxSorted / 5)...)
				}
				for range 3 {
					want = append(want, ids(w.claim(store.MaxSorted/5))...)
				}
				if w == b {
					want = append(want, runs[0].ID)
				}
			}
			half := 3 * store.MaxSorted / 5
			for _, of := range [][]job.ID{want[:half], want[half:]} {
				slices.SortFunc(of, func(a, b job.ID) int { return slices.Compare(a[:], b[:]) })
			}
			running := store.Filter{States: []job.State{job.Running}}
			for _, order := range []store.Order{store.ByID, store.ByWorker} {
				var got []job.ID
				for p := (store.Page{Limit: 700, Order: order}); ; {
					found, listed := page(d, running, p)
					equal(d, "order", listed.Order, store.ByWorker)
					if got = append(got, found...); !listed.More {
						break
					}
					p.After = listed.Next
				}
				equal(d, "listed "+order.String(), got, want)
			}
			var got []job.ID
			for p := (store.Page{Limit: 10}); ; {
				found, listed := page(d, store.Filter{Queue: "rare"}, p)
				if got = append(got, found...); !listed.More {
					break
				}
				p.After = listed.Next
			}
			equal(d, "of a queue", got, []job.ID{rare[2], rare[0], rare[1]})
			_, err := d.Store.List(d.ctx, store.Filter{}, store.Page{Limit: 10, Order: store.ByWorker})
			means(d, "an order that no index has", err, job.ErrInvalid)
		}},
		{name: "J35_AQueueThatBecomesLongIsListedOnce", run: func(d *database) {
			old := d.enqueue(drafts(6)...)
			slices.Reverse(old)
			f := store.Filter{Queue: queue}
			got, listed := page(d, f, store.Page{Limit: 2})
			equal(d, "order", listed.Order, store.ByID)
			d.enqueue(drafts(store.MaxSorted)...)
			for listed.More {
				var found []job.ID
				found, listed = page(d, f, store.Page{Limit: 3, After: listed.Next})
				got = append(got, found...)
			}
			slices.Reverse(old[2:]) // by due
			equal(d, "listed", got, old)
		}},
		{name: "J35_AQueueThatBecomesShortIsListedOnce", run: func(d *database) {
			all := d.enqueue(drafts(store.MaxSorted + 20)...)
			f := store.Filter{Queue: queue, States: []job.State{job.Waiting, job.Suspended}}
			got, listed := page(d, f, store.Page{Limit: 10})
			d.cancel(all[20:]...)
			for listed.More {
				var found []job.ID
				found, listed = page(d, f, store.Page{Limit: 7, After: listed.Next})
				got = append(got, found...)
			}
			equal(d, "listed", got, all[:20])
		}},
	}
}
