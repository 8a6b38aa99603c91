package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// claimBytes is the bound of a claim in bytes: a link may be slow, and what a
// process can hold has an end.
func claimBytes() []testCase {
	const size = 10_000
	large := func(d *job.Draft) { d.Args = make([]byte, size) }
	ask := func(w *employee, bytes int64, queues ...store.QueueClaim) store.ClaimReply {
		w.d.Helper()
		w.seq++
		return must[store.ClaimReply](w.d, "claim")(w.store.Claim(w.d.ctx, store.Claim{Worker: w.id, Seq: w.seq, Queues: queues, Offer: w.offer, Bytes: bytes}))
	}
	all := store.QueueClaim{Queue: queue, Limit: 100, Start: 100}
	return []testCase{
		{name: "P10_EndsOnceTheBytesAreUsedUp", run: func(d *database) {
			list := d.enqueue(drafts(10, large)...)
			w := d.hire()
			got := ask(w, 2*size+1, all)
			equal(d, "claimed", ids(got.Jobs), list[:3])
			equal(d, "more", got.More, true)
			got = ask(w, size, all)
			equal(d, "claimed", ids(got.Jobs), list[3:4])
			got = ask(w, 100*size, all)
			equal(d, "claimed", ids(got.Jobs), list[4:])
			equal(d, "more", got.More, false)
		}},
		{name: "P10_GivesOneJobInAnyCase", run: func(d *database) {
			list := d.enqueue(drafts(3, large)...)
			w := d.hire()
			for i := range list {
				equal(d, "claimed", ids(ask(w, 1, all).Jobs), list[i:i+1])
			}
			equal(d, "claimed at the end", len(ask(w, 1, all).Jobs), 0)
		}},
		{name: "P10_EachQueueHasItsPart", run: func(d *database) {
			a, b := d.enqueue(drafts(3, large, onQueue("a"))...), d.enqueue(drafts(3, large, onQueue("b"))...)
			got := ask(d.hire("a", "b"), 2*size, store.QueueClaim{Queue: "a", Limit: 9, Start: 9}, store.QueueClaim{Queue: "b", Limit: 9, Start: 9})
			equal(d, "claimed", ids(got.Jobs), []job.ID{a[0], b[0]})
		}},
		{name: "P10_SmallJobsBehindALargeOneComeInTheirTurn", run: func(d *database) {
			list := d.enqueue(draft(), draft(large), draft(), draft())
			w := d.hire()
			got := ask(w, 100, all)
			equal(d, "claimed", ids(got.Jobs), list[:2])
			equal(d, "claimed", ids(ask(w, 100, all).Jobs), list[2:])
		}},
		{name: "P10_HoldsBesideUnknownKinds", run: func(d *database) {
			unknown := drafts(20, large, func(d *job.Draft) { d.Kind = "unknown" })
			d.enqueue(unknown[:10]...)
			list := d.enqueue(drafts(4, large)...)
			d.enqueue(unknown[10:]...)
			w := d.hire()
			w.offer = job.Offer{Kinds: map[string]int{kind: 1}}
			var claimed []job.ID
			for range 20 {
				got := ids(ask(w, size+1, all).Jobs)
				if len(got) > 2 {
					d.Errorf("%d jobs in one claim, want 2 at the most", len(got))
				}
				claimed = append(claimed, got...)
			}
			equal(d, "claimed", claimed, list)
		}},
		{name: "P10_HoldsInAnAgingQueue", run: func(d *database) {
			list := d.enqueue(drafts(5, large)...)
			w := d.hire()
			aging := store.QueueClaim{Queue: queue, Limit: 100, Start: 100, Aging: time.Minute}
			equal(d, "claimed", ids(ask(w, size+1, aging).Jobs), list[:2])
			equal(d, "claimed", ids(ask(w, size+1, aging).Jobs), list[2:4])
		}},
		{name: "J32_ARepeatIsBoundedToo", run: func(d *database) {
			list := d.enqueue(drafts(10, large)...)
			w := d.hire()
			equal(d, "claimed", len(ask(w, 100*size, all).Jobs), 10)
			again := must[store.ClaimReply](d, "claim")(w.store.Claim(d.ctx, store.Claim{Worker: w.id, Seq: w.seq, Queues: []store.QueueClaim{all}, Offer: w.offer, Bytes: 2*size + 1}))
			equal(d, "claimed again", ids(again.Jobs), list[:3])
			// What the worker did not get it does not hold: its report gives the rest back.
			var held []store.RunRef
			for _, j := range again.Jobs {
				held = append(held, ref(j))
			}
			equal(d, "given back", must[store.ReportReply](d, "hold")(w.store.ReportRuns(d.ctx, w.id, held)).Returned, 7)
			equal(d, "waiting", d.count(job.Waiting), 7)
		}},
	}
}
