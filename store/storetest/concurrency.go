package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// together runs n goroutines that start at the same time, and waits for them.
func together(n int, f func(i int)) {
	var wait sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wait.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wait.Wait()
}

func concurrency() []testCase {
	return []testCase{
		{name: "P2_NoJobInTwoClaims", run: func(d *database) {
			const jobs, claimers = 400, 8
			d.enqueue(drafts(jobs)...)
			var crew [claimers]*employee
			for i := range crew {
				crew[i] = d.hire()
			}
			claimed := make(chan job.ID, jobs*2)
			together(claimers, func(i int) {
				for {
					crew[i].seq++
					got, err := d.Store.Claim(d.ctx, store.Claim{Worker: crew[i].id, Seq: crew[i].seq, Offer: everything,
						Queues: []store.QueueClaim{{Queue: queue, Limit: 7, Start: 7}}})
					if err != nil {
						d.Errorf("claim: %v", err)
						return
					}
					if len(got.Jobs) == 0 && !got.More {
						return
					}
					for _, j := range got.Jobs {
						claimed <- j.ID
					}
				}
			})
			close(claimed)
			seen := map[job.ID]int{}
			for id := range claimed {
				seen[id]++
			}
			equal(d, "jobs claimed", len(seen), jobs)
			for id, n := range seen {
				if n > 1 {
					d.Errorf("job %s was claimed %d times", id, n)
				}
			}
		}},
		{name: "J4_OneOfManyUniqueDrafts", run: func(d *database) {
			const senders = 16
			var receipts [senders]job.Receipt
			together(senders, func(i int) {
				got, err := d.Store.Enqueue(d.ctx, []job.Draft{draft(once("x", 0)), draft()})
				if err != nil {
					d.Errorf("enqueue: %v", err)
					return
				}
				receipts[i] = got[0]
			})
			accepted := 0
			for _, r := range receipts {
				equal(d, "all name the same job", r.ID, receipts[0].ID)
				if !r.Duplicate {
					accepted++
				}
			}
			equal(d, "accepted", accepted, 1)
			equal(d, "jobs", d.count(), 1+senders)
		}},
		{name: "P2_OneOfManyFinishes", run: func(d *database) {
			d.one()
			w := d.hire()
			held := w.take()
			var applied atomic.Int32
			together(16, func(i int) {
				to := []job.State{job.Done, job.Waiting, job.Dead, job.Suspended}[i%4]
				got, err := d.Store.Finish(d.ctx, w.id, []job.End{ending(held, to)})
				if err != nil {
					d.Errorf("finish: %v", err)
				} else if got[0] == job.Applied {
					applied.Add(1)
				}
			})
			equal(d, "applied", applied.Load(), 1)
		}},
		{name: "J12_RescueInEveryProcessAtOnce", run: func(d *database) {
			d.enqueue(drafts(50)...)
			w := d.hire()
			var runs []store.RunRef
			for _, j := range w.claim(50) {
				runs = append(runs, ref(j))
			}
			w.beat(runs...)
			d.lose(w)
			var total atomic.Int64
			together(8, func(int) {
				r, err := d.Store.Rescue(d.ctx, 20)
				if err != nil {
					d.Errorf("rescue: %v", err)
				}
				total.Add(int64(r.Total()))
			})
			total.Add(int64(d.rescue().Total()))
			equal(d, "rescued", total.Load(), 50)
			got := d.hire().claim(50)
			for _, j := range got {
				equal(d, "lost and rescues", [2]int{j.Lost, j.Rescues}, [2]int{1, 1})
			}
		}},
		{name: "P8_AnErrorStaysWithItsCall", run: func(d *database) {
			ended, stop := context.WithCancel(d.ctx)
			stop()
			together(32, func(i int) {
				switch i % 4 {
				case 0:
					if _, err := d.Store.Enqueue(ended, drafts(1)); !errors.Is(err, context.Canceled) {
						d.Errorf("enqueue with an ended context: %v", err)
					}
				case 1:
					_, err := d.Store.Claim(d.ctx, store.Claim{Worker: 999, Seq: 1, Offer: everything, Queues: []store.QueueClaim{{Queue: queue, Limit: 1, Start: 1}}})
					means(d, "claim of nobody", err, job.ErrWorkerLost)
				default:
					if _, err := d.Store.Enqueue(d.ctx, drafts(2)); err != nil {
						d.Errorf("enqueue: %v", err)
					}
				}
			})
			equal(d, "jobs", d.count(), 32)
		}},
		{name: "P1_EveryNilIsThere", run: func(d *database) {
			// Callers give up at any moment: those that were told nil have their job.
			var told sync.Map
			together(16, func(i int) {
				for n := range 10 {
					ctx, stop := context.WithCancel(d.ctx)
					mine := draft()
					gaveUp := make(chan struct{})
					go func() {
						defer close(gaveUp)
						if (i+n)%2 == 0 {
							stop()
						}
					}()
					if _, err := d.Store.Enqueue(ctx, []job.Draft{mine}); err == nil {
						told.Store(mine.ID, true)
					}
					<-gaveUp
					stop()
				}
			})
			told.Range(func(id, _ any) bool {
				equal(d, "state", d.get(id.(job.ID)).State, job.Waiting)
				return true
			})
		}},
		{name: "P2_ClaimsOfTwoStoresOnOneDatabase", needs: Features{Shared: true}, run: func(d *database) {
			const jobs = 200
			d.enqueue(drafts(jobs)...)
			other := d.open(store.Settings{})
			crew := []*employee{d.hire(), d.hire()}
			crew[1].store = other
			var done atomic.Int64
			together(2, func(i int) {
				w := crew[i]
				for {
					w.seq++
					got, err := w.store.Claim(d.ctx, store.Claim{Worker: w.id, Seq: w.seq, Offer: everything, Queues: []store.QueueClaim{{Queue: queue, Limit: 5, Start: 5}}})
					if err != nil {
						d.Errorf("claim: %v", err)
						return
					}
					if len(got.Jobs) == 0 && !got.More {
						return
					}
					for _, j := range got.Jobs {
						v, err := w.store.Finish(d.ctx, w.id, []job.End{ending(j, job.Done)})
						for err == nil && v[0] == job.Locked { // the other's claim looks at it, and its commit takes a while
							v, err = w.store.Finish(d.ctx, w.id, []job.End{ending(j, job.Done)})
						}
						if err != nil || v[0] != job.Applied {
							d.Errorf("finish: %v %v", v, err)
							return
						}
						done.Add(1)
					}
				}
			})
			equal(d, "finished", done.Load(), jobs)
			equal(d, "done", d.count(job.Done), jobs)
		}},
	}
}
