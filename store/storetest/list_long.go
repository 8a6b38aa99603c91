package storetest

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// listsOfMany: a list answers from a bounded number of rows, however many jobs there are.
func listsOfMany() []testCase {
	return []testCase{
		{name: "J35_APageStopsAtItsBound", run: func(d *database) {
			rare := d.one(ofKind("other"))
			for range 7 {
				d.enqueue(drafts(store.MaxVisits / 6)...)
			}
			f := store.Filter{Kind: "other"}
			p := store.Page{Limit: 10}
			found, listed := d.listed(f, p)
			equal(d, "found before the bound", len(found), 0)
			if !listed.Stopped || !listed.More || listed.Next == (store.Bookmark{}) {
				d.Fatalf("a page that visited as much as it may says %+v", listed)
			}
			pages := 0
			for ; listed.More; pages++ {
				p.After = listed.Next
				var more []job.ID
				more, listed = d.listed(f, p)
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
				found, listed := d.listed(f, store.Page{Limit: 10})
				equal(d, what, found, rare)
				equal(d, what+": stopped", listed.Stopped, false)
				equal(d, "count of "+what, must[store.Counted](d, "count")(d.Store.Count(d.ctx, f, 0)), store.Counted{Jobs: 2})
			}
			found, listed := d.listed(store.Filter{States: []job.State{job.Running}}, store.Page{Limit: 10})
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
				found, listed := d.listed(store.Filter{Queue: queue}, p)
				got, orders = append(got, found...), append(orders, listed.Order)
				equal(d, "stopped", listed.Stopped, len(orders) >= 3 && len(orders) <= 5) // where a part ends
				if !listed.More {
					break
				}
				p.After = listed.Next
			}
			equal(d, "listed", got, append(waiting, ended...))
			equal(d, "orders", orders, []store.Order{store.ByDue, store.ByDue, store.ByDue, store.ByGate, store.ByWorker, store.ByID})
			found, listed := d.listed(store.Filter{Queue: queue, States: []job.State{job.Waiting, job.Running}, DueAfter: now.Add(time.Hour + (many-4)*time.Second)}, store.Page{Limit: 1000})
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
					found, listed := d.listed(f, p)
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
			got, listed := d.listed(f, store.Page{Limit: 4, Order: store.ByDue})
			equal(d, "while they are few, by due", got, want[:4])
			d.enqueue(drafts(store.MaxSorted, behind)...) // due before what was listed last
			for listed.More {
				var found []job.ID
				found, listed = d.listed(f, store.Page{Limit: 2, After: listed.Next, Order: store.ByDue})
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
			for _, w := range []*employee{a, b} {
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
					found, listed := d.listed(running, p)
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
				found, listed := d.listed(store.Filter{Queue: "rare"}, p)
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
			got, listed := d.listed(f, store.Page{Limit: 2})
			equal(d, "order", listed.Order, store.ByID)
			d.enqueue(drafts(store.MaxSorted)...)
			for listed.More {
				var found []job.ID
				found, listed = d.listed(f, store.Page{Limit: 3, After: listed.Next})
				got = append(got, found...)
			}
			slices.Reverse(old[2:]) // by due
			equal(d, "listed", got, old)
		}},
		{name: "J35_AQueueThatBecomesShortIsListedOnce", run: func(d *database) {
			all := d.enqueue(drafts(store.MaxSorted + 20)...)
			f := store.Filter{Queue: queue, States: []job.State{job.Waiting, job.Suspended}}
			got, listed := d.listed(f, store.Page{Limit: 10})
			d.cancel(all[20:]...)
			for listed.More {
				var found []job.ID
				found, listed = d.listed(f, store.Page{Limit: 7, After: listed.Next})
				got = append(got, found...)
			}
			equal(d, "listed", got, all[:20])
		}},
	}
}
