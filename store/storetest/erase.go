package storetest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// erase: all that a namespace has goes, in small pieces and when nobody works on it.
func erase() []testCase {
	eraser := func(d *database) store.Eraser {
		d.Helper()
		e, ok := d.Store.(store.Eraser)
		if !ok {
			d.Fatalf("%T cannot erase a namespace", d.Store)
		}
		return e
	}
	// all erases in pieces of limit, and answers how many rows went.
	all := func(d *database, limit int) (rows int) {
		d.Helper()
		for more := true; more; {
			n, again, err := eraser(d).Erase(d.ctx, limit)
			if err != nil || n > limit || again != (n > 0) {
				d.Fatalf("erase up to %d rows: %d went, more: %v, %v", limit, n, again, err)
			}
			rows, more = rows+n, again
		}
		return rows
	}
	// fill leaves something of each kind: live, ended, forgotten and kept apart.
	fill := func(d *database) (list []job.ID) {
		d.Helper()
		w := d.hire()
		noted := d.one(priority(1), once("kept", time.Hour))
		w.end(w.take(), job.Done, func(e *job.End) { e.Logs = lines(d.now(), 5) })
		gone := d.one(priority(1))
		w.end(w.take(), job.Done, func(e *job.End) { e.Keep = job.Keep{Done: -1} })
		waits := d.one(once("held", 0))
		held := d.one(priority(1))
		w.take()
		if err := d.Store.SetPaused(d.ctx, store.OfQueue(queue), true, store.Operator{Name: "ann", Note: "why"}); err != nil {
			d.Fatal(err)
		}
		return []job.ID{noted, gone, waits, held}
	}
	// leave makes its workers silent for longer than they may be.
	leave := func(d *database) {
		d.abandoned = true
		d.advance(100 * time.Hour)
	}
	return []testCase{
		{name: "J29_NothingIsLeft", run: func(d *database) {
			list := fill(d)
			leave(d)
			if n := all(d, 1000); n < 10 {
				d.Errorf("%d rows went, want more than there are jobs and lines", n)
			}
			for _, id := range list {
				d.gone("erased", id)
				equal(d, "logs", len(must[[]job.LogLine](d, "logs")(d.Store.Logs(d.ctx, id, 0, 10))), 0)
			}
			equal(d, "jobs", d.count(), 0)
			equal(d, "audit", len(d.audit(store.AuditFilter{}, 10)), 0)
			equal(d, "workers", len(must[[]store.WorkerInfo](d, "registry")(d.Store.Registry(d.ctx))), 0)
			equal(d, "check", must[store.CheckReport](d, "check")(d.Store.Check(d.ctx, store.Check{})), store.CheckReport{})
			equal(d, "erased again", all(d, 1000), 0)
		}},
		{name: "J29_WhatComesAfterwardsIsNew", run: func(d *database) {
			list := fill(d)
			old := must[[]store.WorkerInfo](d, "registry")(d.Store.Registry(d.ctx))
			leave(d)
			all(d, 1000)
			for _, name := range []string{"kept", "held"} {
				d.one(once(name, 0)) // its key is free
			}
			for _, id := range list {
				equal(d, "receipt", d.send(draft(again(id))), []job.Receipt{{ID: id}})
			}
			w := d.hire() // and the queue is not paused
			if w.id == old[0].ID {
				d.Errorf("worker %d has the number of one before the erasure", w.id)
			}
			jobs := w.claim(10)
			equal(d, "claimed", len(jobs), len(list)+2)
			for _, j := range jobs {
				w.end(j, job.Done)
			}
		}},
		{name: "J29_WhoHasItOpenHearsThatNothingIsSet", run: func(d *database) {
			fill(d)
			before := must[store.SettingsReply](d, "settings")(d.Store.Settings(d.ctx))
			leave(d)
			all(d, 1000)
			after := must[store.SettingsReply](d, "settings")(d.Store.Settings(d.ctx))
			if after.Revision <= before.Revision || len(before.Pauses) != 1 || len(after.Pauses) != 0 {
				d.Errorf("revision %d with %d pauses, then %d with %d; want a later one with none",
					before.Revision, len(before.Pauses), after.Revision, len(after.Pauses))
			}
		}},
		{name: "J29_InBoundedSteps", run: func(d *database) {
			fill(d)
			leave(d)
			rows := all(d, 3)
			equal(d, "jobs", d.count(), 0)
			if rows < 10 {
				d.Errorf("%d rows went, want all", rows)
			}
			for _, limit := range []int{0, -1} {
				if _, _, err := eraser(d).Erase(d.ctx, limit); !errors.Is(err, job.ErrInvalid) {
					d.Errorf("a limit of %d: %v", limit, err)
				}
			}
		}},
		{name: "J29_NotWhileAWorkerIsLive", run: func(d *database) {
			list := fill(d)
			for range 2 {
				n, more, err := eraser(d).Erase(d.ctx, 1000)
				if !errors.Is(err, store.ErrInUse) || n != 0 || more || !strings.Contains(err.Error(), `"test-worker-1-a" on host, process 7`) {
					d.Fatalf("%d rows went, more: %v, %v; want that a worker is named", n, more, err)
				}
			}
			equal(d, "jobs", d.count(), len(list)-1)
			equal(d, "audit", len(d.audit(store.AuditFilter{}, 10)), 1)
		}},
		{name: "J29_ALateWorkerChangesNothing", run: func(d *database) {
			id := d.one()
			w := d.hire()
			held := w.take()
			leave(d)
			all(d, 1000)
			_, err := d.Store.Beat(d.ctx, store.Beat{Worker: w.id})
			if !errors.Is(err, job.ErrWorkerLost) {
				d.Errorf("beat: %v, want %v", err, job.ErrWorkerLost)
			}
			equal(d, "verdict", w.finish(ending(held, job.Done)), []job.Verdict{job.Stale})
			d.gone("erased", id)
		}},
		{name: "J29_OtherNamespacesStay", needs: Features{Shared: true}, run: func(d *database) {
			o := beside(d)
			here, there := fill(d), fill(o)
			leave(d)
			o.abandoned = true
			before := must[[]job.Job](d, "get")(o.Store.Get(d.ctx, there))
			all(d, 4)
			equal(d, "jobs here", d.count(), 0)
			d.gone("erased", here[0])
			equal(d, "jobs there", must[[]job.Job](d, "get")(o.Store.Get(d.ctx, there)), before)
			equal(d, "lines there", len(must[[]job.LogLine](d, "logs")(o.Store.Logs(d.ctx, there[0], 0, 10))), 5)
			equal(d, "audit there", len(o.audit(store.AuditFilter{}, 10)), 1)
			equal(d, "workers there", len(must[[]store.WorkerInfo](d, "registry")(o.Store.Registry(d.ctx))), 1)
		}},
		{name: "J29_AfterItsContextEnded", run: func(d *database) {
			fill(d)
			leave(d)
			ended, cancel := context.WithCancel(d.ctx)
			cancel()
			if _, _, err := eraser(d).Erase(ended, 10); !errors.Is(err, context.Canceled) {
				d.Errorf("%v, want %v", err, context.Canceled)
			}
		}},
	}
}
