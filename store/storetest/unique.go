package storetest

import (
	"fmt"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func unique() []testCase {
	holds := func(name string, reach func(d *database, id job.ID)) testCase {
		return testCase{name: "J4_HoldsWhile" + name, run: func(d *database) {
			id := d.one(once("x", 0))
			reach(d, id)
			d.duplicate("same key", id, draft(once("x", 0)))
			d.one(once("y", 0))
		}}
	}
	frees := func(name string, to job.State) testCase {
		return testCase{name: "J4_FreeAfter" + name, run: func(d *database) {
			d.one(once("x", 0))
			w := d.hire()
			w.end(w.take(), to)
			d.one(once("x", 0))
		}}
	}
	return []testCase{
		holds("Waiting", func(d *database, id job.ID) {}),
		holds("Scheduled", func(d *database, id job.ID) {
			w := d.hire()
			w.end(w.take(), job.Waiting, func(e *job.End) { e.Delay, e.Snooze = time.Hour, true })
		}),
		holds("Running", func(d *database, id job.ID) { d.hire().take() }),
		holds("WaitingForARetry", func(d *database, id job.ID) {
			w := d.hire()
			w.end(w.take(), job.Waiting, failed("boom"))
		}),
		holds("Suspended", func(d *database, id job.ID) {
			w := d.hire()
			w.end(w.take(), job.Suspended, parkedFor("x"))
		}),
		holds("AskedToCancel", func(d *database, id job.ID) {
			d.hire().take()
			equal(d, "cancel", d.cancel(id), []store.Change{store.Asked})
		}),
		holds("Rescued", func(d *database, id job.ID) {
			w := d.hire()
			w.take()
			d.lose(w)
			equal(d, "rescued", d.rescue(), store.RescueReply{Waiting: 1})
		}),
		frees("Done", job.Done),
		frees("Dead", job.Dead),
		frees("Cancelled", job.Cancelled),
		{name: "J4_FreeAfterCancelOfAWaitingJob", run: func(d *database) {
			equal(d, "cancel", d.cancel(d.one(once("x", 0))), []store.Change{store.Changed})
			d.one(once("x", 0))
		}},
		{name: "J4_FreeAfterManyEnds", run: func(d *database) {
			w := d.hire()
			for _, known := range []bool{true, false} { // whether the worker says what the jobs have beside themselves
				for _, kept := range []job.Keep{keep, keepNone} {
					list := drafts(50)
					for i := range list {
						if i%2 == 0 {
							once(fmt.Sprint(i), 0)(&list[i])
						}
					}
					d.enqueue(list...) // also with the keys of the round before
					var ends []job.End
					for _, j := range w.claim(len(list)) {
						e := ending(j, job.Done, func(e *job.End) { e.Keep = kept })
						if known {
							e.Ties = j.Ties
						}
						ends = append(ends, e)
					}
					for i, v := range w.finish(ends...) {
						if v != job.Applied {
							d.Fatalf("end %d is %s", i, v)
						}
					}
				}
			}
			d.one(once("0", 0))
		}},
		{name: "J4_FreeAfterDelete", run: func(d *database) {
			equal(d, "delete", d.delete(d.one(once("x", 0))), []store.Change{store.Changed})
			d.one(once("x", 0))
		}},
		{name: "J4_FreeAfterItsDeadline", run: func(d *database) {
			d.one(once("x", 0), until(d.now().Add(time.Hour)))
			d.advance(2 * time.Hour)
			equal(d, "expired", d.expire(10), 1)
			d.one(once("x", 0))
		}},
		{name: "J4_PeriodAfterTheEnd", run: func(d *database) {
			id := d.one(once("x", time.Hour))
			d.advance(24 * time.Hour) // the period counts from the end, not from the start
			w := d.hire()
			w.end(w.take(), job.Done)
			d.duplicate("at its end", id, draft(once("x", time.Hour)))
			d.advance(50 * time.Minute)
			d.duplicate("within its period", id, draft(once("x", 0)))
			d.advance(20 * time.Minute)
			d.one(once("x", time.Hour))
		}},
		{name: "J4_PeriodOutlivesThePurge", run: func(d *database) {
			id := d.one(once("x", 100*time.Hour))
			w := d.hire()
			w.end(w.take(), job.Done)
			d.advance(50 * time.Hour) // the archive keeps it for 2 h
			must[int](d, "purge")(d.Store.Purge(d.ctx, 100))
			d.gone("purged", id)
			d.duplicate("within its period", id, draft(once("x", 0)))
			d.advance(60 * time.Hour)
			must[int](d, "purge")(d.Store.Purge(d.ctx, 100))
			d.one(once("x", 0))
		}},
		{name: "J4_PeriodHoldsWhenNothingIsKept", run: func(d *database) {
			id := d.one(once("x", time.Hour))
			w := d.hire()
			w.end(w.take(), job.Done, func(e *job.End) { e.Keep = keepNone })
			d.duplicate("within its period", id, draft(once("x", 0)))
			d.advance(90 * time.Minute)
			d.one(once("x", 0))
		}},
		{name: "J4_PeriodAlsoAfterCancel", run: func(d *database) {
			id := d.one(once("x", time.Hour))
			d.cancel(id)
			d.duplicate("within its period", id, draft(once("x", 0)))
			d.advance(90 * time.Minute)
			d.one(once("x", 0))
		}},
		{name: "J4_DuplicatesInsideOneCall", run: func(d *database) {
			list := []job.Draft{draft(once("x", 0)), draft(once("y", 0)), draft(once("x", 0)), draft(), draft(once("y", 0))}
			equal(d, "receipts", d.send(list...), []job.Receipt{
				{ID: list[0].ID}, {ID: list[1].ID}, {ID: list[0].ID, Duplicate: true}, {ID: list[3].ID}, {ID: list[1].ID, Duplicate: true},
			})
			equal(d, "jobs", d.count(), 3)
		}},
		{name: "J4_RetryTakesItAgain", run: func(d *database) {
			id := d.one(once("x", 0))
			w := d.hire()
			w.end(w.take(), job.Dead)
			equal(d, "retry", d.retry(id), []store.Change{store.Changed})
			d.duplicate("same key", id, draft(once("x", 0)))
		}},
		{name: "J4_RetryWithinItsOwnPeriod", run: func(d *database) {
			id := d.one(once("x", time.Hour))
			w := d.hire()
			w.end(w.take(), job.Dead)
			equal(d, "retry", d.retry(id), []store.Change{store.Changed})
			d.advance(2 * time.Hour) // live again: the old period no longer ends it
			d.duplicate("same key", id, draft(once("x", 0)))
		}},
		{name: "J4_RetryIsADuplicateWhenAnotherHoldsIt", run: func(d *database) {
			first := d.one(once("x", 0))
			w := d.hire()
			w.end(w.take(), job.Dead)
			before := d.get(first)
			second := d.one(once("x", 0))
			plain := d.one(in(time.Hour))
			equal(d, "retry", d.retry(first, plain), []store.Change{store.Duplicate, store.Changed})
			equal(d, "the refused job", d.get(first), before)
			d.duplicate("same key", second, draft(once("x", 0)))
		}},
		{name: "J4_RetryOfTwoWithOneKey", run: func(d *database) {
			w := d.hire()
			first := d.one(once("x", 0))
			w.end(w.take(), job.Dead)
			second := d.one(once("x", 0))
			w.end(w.take(), job.Dead)
			equal(d, "retry", d.retry(second, first), []store.Change{store.Changed, store.Duplicate})
			equal(d, "states", d.states(first, second), []job.State{job.Dead, job.Waiting})
		}},
		{name: "J4_RetryOfTwoOfWhichTheSecondHoldsTheKey", run: func(d *database) {
			w := d.hire()
			first := d.one(once("x", 0))
			w.end(w.take(), job.Dead)
			second := d.one(once("x", time.Hour))
			w.end(w.take(), job.Dead)
			equal(d, "retry", d.retry(first, second), []store.Change{store.Duplicate, store.Changed})
			equal(d, "states", d.states(first, second), []job.State{job.Dead, job.Waiting})
			d.duplicate("same key", second, draft(once("x", 0)))
		}},
		{name: "J4_HashesAreExactBytes", run: func(d *database) {
			for _, hash := range [][]byte{{0}, {0, 0}, {0xff}, []byte("a"), []byte("A")} {
				d.one(func(d *job.Draft) { d.Unique.Hash = hash })
			}
		}},
	}
}

// parkedFor is the end of a run whose arguments could not be read.
func parkedFor(reason string) func(*job.End) {
	return func(e *job.End) { e.Wait, e.Reason = job.Parked, reason }
}

// failed is the end of a run that a handler ended with an error.
func failed(message string) func(*job.End) {
	return func(e *job.End) {
		f := job.NewFailure(1, e.Run, message, "")
		e.Failure, e.Burn = f.Body(), true
	}
}
