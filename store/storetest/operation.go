package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// operations is the store as one that keeps operations.
func (d *database) operations() store.Operations {
	d.Helper()
	o, ok := d.Store.(store.Operations)
	if !ok {
		d.Fatalf("%T is no store.Operations", d.Store)
	}
	return o
}

func (d *database) start(o store.Operation) store.Operation {
	d.Helper()
	if o.ID == (job.ID{}) {
		o.ID = job.NewID()
	}
	if o.Pace == 0 {
		o.Pace = store.OperationPace
	}
	return must[store.Operation](d, "start")(d.operations().StartOperation(d.ctx, o))
}

func (d *database) page(id job.ID) store.AdvanceReply {
	d.Helper()
	return must[store.AdvanceReply](d, "advance")(d.operations().AdvanceOperation(d.ctx, id))
}

// finishOperation does page after page, as fast as its pace lets it by the store's clock.
func (d *database) finishOperation(id job.ID) store.Operation {
	d.Helper()
	for range 10_000 {
		r := d.page(id)
		if r.Operation.State != store.OperationOpen {
			return r.Operation
		}
		d.advance(max(r.Operation.Next.Sub(r.Now), 0))
	}
	d.Fatal("it does not end")
	return store.Operation{}
}

func (d *database) operation(id job.ID) store.Operation {
	d.Helper()
	list := must[[]store.Operation](d, "operations")(d.operations().Operations(d.ctx, store.OperationPage{ID: id, Limit: 1}))
	if len(list) != 1 {
		d.Fatalf("%d operations %s, want 1", len(list), id)
	}
	return list[0]
}

// dead makes jobs that have died.
func (d *database) dead(w *employee, n int, edit ...func(*job.Draft)) []job.ID {
	d.Helper()
	list := d.enqueue(drafts(n, edit...)...)
	for _, j := range w.claim(n) {
		w.end(j, job.Dead, failed("x"))
	}
	return list
}

var (
	retryVerb  = store.Verb{Name: store.VerbRetry}
	cancelVerb = store.Verb{Name: store.VerbCancel}
	deleteVerb = store.Verb{Name: store.VerbDelete}
)

func ofDead() store.Filter { return store.Filter{Queue: queue, States: []job.State{job.Dead}} }

func operations() []testCase {
	return []testCase{
		{name: "J25_RetriesAllThatMatch", run: func(d *database) {
			w := d.hire()
			list := d.dead(w, 250)
			other := d.dead(w, 3, ofKind("other"))
			f := ofDead()
			f.Kind = kind
			o := d.finishOperation(d.start(store.Operation{Verb: retryVerb, Filter: f}).ID)
			equal(d, "state", o.State, store.OperationDone)
			equal(d, "counts", o.Counts, store.OperationCounts{Looked: 250, Changed: 250})
			equal(d, "waiting", d.count(job.Waiting), 250)
			equal(d, "dead", d.states(other...), []job.State{job.Dead, job.Dead, job.Dead})
			equal(d, "one", d.get(list[0]).State, job.Waiting)
			equal(d, "after its end", d.page(o.ID).Did, false)
			equal(d, "kept", d.operation(o.ID), o)
		}},
		{name: "J25_PacedByTheStoresClock", run: func(d *database) {
			d.dead(d.hire(), 60)
			o := d.start(store.Operation{Verb: retryVerb, Filter: ofDead(), Pace: 200})
			pages := 0
			for o.State == store.OperationOpen {
				r := d.page(o.ID)
				o = r.Operation
				if r.Did {
					pages++
					continue // at once again: its time has not come
				}
				if !o.Next.After(r.Now) {
					d.Fatalf("it is due at %v, and did nothing at %v", o.Next, r.Now)
				}
				d.advance(o.Next.Sub(r.Now))
			}
			equal(d, "pages", pages, 3) // of 20 each
			if took := o.Ended.Sub(o.Created); took < 200*time.Millisecond {
				d.Errorf("60 jobs at 200 a second took %v", took)
			}
		}},
		{name: "J25_APageIsDoneOnceWhoeverTriesIt", needs: Features{Shared: true}, run: func(d *database) {
			d.dead(d.hire(), 100)
			o := d.start(store.Operation{Verb: retryVerb, Filter: ofDead(), Pace: 100}) // pages of 10
			stores := []store.Store{d.Store, d.open(store.Settings{}), d.open(store.Settings{})}
			for did := int64(0); o.State == store.OperationOpen; {
				replies := make([]store.AdvanceReply, 2*len(stores))
				var all sync.WaitGroup
				for i := range replies {
					all.Go(func() {
						var err error
						if replies[i], err = stores[i/2].(store.Operations).AdvanceOperation(d.ctx, o.ID); err != nil {
							d.Errorf("advance: %v", err)
						}
					})
				}
				all.Wait()
				for _, r := range replies {
					if r.Did {
						did++
					}
				}
				if o = d.operation(o.ID); did != o.Pages {
					d.Fatalf("%d calls have done %d pages", did, o.Pages)
				}
				if wait := o.Next.Sub(d.now()); wait > 0 {
					d.advance(wait)
				}
			}
			equal(d, "counts", o.Counts, store.OperationCounts{Looked: 100, Changed: 100})
			equal(d, "waiting", d.count(job.Waiting), 100)
		}},
		{name: "J25_WhatMovedSinceIsLeftAlone", run: func(d *database) {
			w := d.hire()
			list := d.dead(w, 30)
			o := d.start(store.Operation{Verb: deleteVerb, Filter: ofDead(), Pace: 100}) // pages of 10
			equal(d, "did", d.page(o.ID).Did, true)                                      // the newest 10
			d.retry(list[0], list[1])
			running := w.claim(1)
			equal(d, "running", running[0].ID, list[0])
			d.do(requeue("other"), list[2])
			o = d.finishOperation(o.ID)
			equal(d, "counts", o.Counts, store.OperationCounts{Looked: 27, Changed: 27})
			equal(d, "states", d.states(list[0], list[1], list[2]), []job.State{job.Running, job.Waiting, job.Dead})
			equal(d, "asked to cancel", d.get(list[0]).CancelAsked, false)
		}},
		{name: "J25_RunningJobsAreTouchedByCancelOnly", run: func(d *database) {
			w := d.hire()
			list := d.enqueue(drafts(3)...)
			w.take()
			f := store.Filter{States: []job.State{job.Waiting, job.Running}}
			for _, v := range []store.Verb{retryVerb, requeue("other"), toPriority(1)} {
				before := d.get(list[0])
				d.finishOperation(d.start(store.Operation{Verb: v, Filter: f}).ID)
				equal(d, string(v.Name), d.get(list[0]), before)
			}
			o := d.finishOperation(d.start(store.Operation{Verb: cancelVerb, Filter: f}).ID)
			equal(d, "counts", o.Counts, store.OperationCounts{Looked: 3, Changed: 2, Asked: 1})
			equal(d, "asked to cancel", d.get(list[0]).CancelAsked, true)
		}},
		{name: "J25_WhatComesInLaterDoesNotMatch", run: func(d *database) {
			d.enqueue(drafts(5)...)
			d.advance(time.Second)
			o := d.start(store.Operation{Verb: cancelVerb, Filter: store.Filter{Queue: queue, States: []job.State{job.Waiting}}})
			d.advance(time.Second)
			late := d.enqueue(drafts(2)...)
			o = d.finishOperation(o.ID)
			equal(d, "counts", o.Counts, store.OperationCounts{Looked: 5, Changed: 5})
			equal(d, "late", d.states(late...), []job.State{job.Waiting, job.Waiting})
		}},
		{name: "J25_ALongQueueIsWalkedToItsEnd", run: func(d *database) {
			const n = store.MaxSorted + 30 // its list is split, and walked by due
			d.enqueue(drafts(n)...)
			d.advance(time.Second)
			f := store.Filter{Queue: queue, States: []job.State{job.Waiting}}
			o := d.finishOperation(d.start(store.Operation{Verb: toPriority(2), Filter: f, Pace: store.MaxPace}).ID)
			equal(d, "counts", o.Counts, store.OperationCounts{Looked: n, Changed: n})
			o = d.finishOperation(d.start(store.Operation{Verb: requeue("other"), Filter: f, Pace: store.MaxPace}).ID)
			equal(d, "counts", o.Counts, store.OperationCounts{Looked: n, Changed: n})
			equal(d, "left", must[store.Counted](d, "count")(d.Store.Count(d.ctx, f, 0)).Jobs, 0)
		}},
		{name: "J4_OfOneKeyOneComesBack", run: func(d *database) {
			w := d.hire()
			list := []job.ID{d.dead(w, 1, once("k", 0))[0], d.dead(w, 1, once("k", 0))[0], d.dead(w, 1)[0]}
			seen := must[[]store.Foreseen](d, "foresee")(d.operations().Foresee(d.ctx, retryVerb, list))
			if seen[0].Key == "" || seen[0].Key != seen[1].Key || seen[2].Key != "" {
				d.Errorf("keys are %+v", seen)
			}
			o := d.finishOperation(d.start(store.Operation{Verb: retryVerb, Filter: ofDead()}).ID)
			equal(d, "counts", o.Counts, store.OperationCounts{Looked: 3, Changed: 2, Duplicate: 1})
		}},
		{name: "J25_CancelledStopsWhereItIs", run: func(d *database) {
			d.dead(d.hire(), 30)
			o := d.start(store.Operation{Verb: retryVerb, Filter: ofDead(), Pace: 100, By: "ann", Note: "n"})
			d.page(o.ID)
			o = must[store.Operation](d, "cancel")(d.operations().CancelOperation(d.ctx, o.ID, store.Operator{Name: "bob", Note: "no"}))
			equal(d, "state", o.State, store.OperationCancelled)
			equal(d, "looked", o.Counts.Looked, 10)
			d.advance(time.Minute)
			equal(d, "did", d.page(o.ID).Did, false)
			equal(d, "dead", d.count(job.Dead), 20)
			again := must[store.Operation](d, "cancel")(d.operations().CancelOperation(d.ctx, o.ID, store.Operator{Name: "cid"}))
			equal(d, "again", again, o)
			if _, err := d.operations().CancelOperation(d.ctx, job.NewID(), store.Operator{}); !errors.Is(err, job.ErrNotFound) || !strings.Contains(err.Error(), "no such operation") {
				d.Errorf("of nobody: %v", err)
			}
		}},
		{name: "J25_MostBoundsIt", run: func(d *database) {
			list := d.dead(d.hire(), 30)
			o := d.finishOperation(d.start(store.Operation{Verb: retryVerb, Filter: ofDead(), Most: 13, Pace: 100}).ID)
			equal(d, "counts", o.Counts, store.OperationCounts{Looked: 13, Changed: 13})
			equal(d, "the newest came first", d.states(list[29], list[17], list[16]), []job.State{job.Waiting, job.Waiting, job.Dead})
		}},
		{name: "J25_Audited", run: func(d *database) {
			list := d.dead(d.hire(), 2)
			o := d.start(store.Operation{Verb: requeue("slow"), Filter: ofDead(), By: "ann", Note: "a bad deploy"})
			o = d.finishOperation(o.ID)
			var got []string
			for _, e := range d.audit(store.AuditFilter{Target: o.ID.String()}, 10) {
				equal(d, "by and note", [2]string{e.By, e.Note}, [2]string{"ann", "a bad deploy"})
				got = append(got, e.Action+": "+e.Detail)
			}
			if len(got) != 2 || got[0] != "end bulk requeue: done: 2 looked at, 2 changed, 0 asked to stop, 0 duplicates, 0 busy, 0 left as they were" ||
				!strings.HasPrefix(got[1], `start bulk requeue: to queue slow: jobs that match {"states":["dead"],"queue":"q"`) {
				d.Errorf("entries are %q", got)
			}
			for _, id := range list {
				equal(d, "entries of a job", len(d.audit(store.AuditFilter{Target: id.String(), Action: "requeue", By: "ann"}, 10)), 1)
			}
		}},
		{name: "J25_StartedOnceUnderItsID", run: func(d *database) {
			o := d.start(store.Operation{Verb: retryVerb, Filter: ofDead()})
			again := o
			again.Verb = deleteVerb
			equal(d, "again", d.start(again), o)
			equal(d, "kept", d.operation(o.ID), o)
			equal(d, "operations", len(must[[]store.Operation](d, "operations")(d.operations().Operations(d.ctx, store.OperationPage{Limit: 10}))), 1)
		}},
		{name: "J25_ListedTheNewestFirst", run: func(d *database) {
			var made []job.ID
			for range 5 {
				made = append(made, d.start(store.Operation{Verb: retryVerb, Filter: ofDead()}).ID)
			}
			d.finishOperation(made[4])
			list := func(p store.OperationPage) (ids []job.ID) {
				d.Helper()
				for _, o := range must[[]store.Operation](d, "operations")(d.operations().Operations(d.ctx, p)) {
					ids = append(ids, o.ID)
				}
				return ids
			}
			equal(d, "all", list(store.OperationPage{Limit: 3}), []job.ID{made[4], made[3], made[2]})
			equal(d, "next", list(store.OperationPage{Limit: 3, Before: made[2]}), []job.ID{made[1], made[0]})
			equal(d, "open", list(store.OperationPage{Limit: 10, Open: true}), made[:4])
			if _, err := d.operations().Operations(d.ctx, store.OperationPage{}); !errors.Is(err, job.ErrInvalid) {
				d.Errorf("a page without a limit: %v", err)
			}
		}},
		{name: "J25_BoundsOfAnOperation", run: func(d *database) {
			for what, o := range map[string]store.Operation{
				"states":  {Verb: retryVerb, Pace: 1},
				"verb":    {Verb: store.Verb{Name: "burn"}, Filter: ofDead(), Pace: 1},
				"pace":    {Verb: retryVerb, Filter: ofDead(), Pace: store.MaxPace + 1},
				"most":    {Verb: retryVerb, Filter: ofDead(), Pace: 1, Most: -1},
				"run now": {Verb: runNow, Filter: ofDead(), Pace: 1},
				"filter":  {Verb: retryVerb, Filter: store.Filter{States: []job.State{99}}, Pace: 1},
			} {
				o.ID = job.NewID()
				if _, err := d.operations().StartOperation(d.ctx, o); !errors.Is(err, job.ErrInvalid) {
					d.Errorf("%s: %v", what, err)
				}
			}
			for range store.MaxOperations {
				d.start(store.Operation{Verb: retryVerb, Filter: ofDead()})
			}
			_, err := d.operations().StartOperation(d.ctx, store.Operation{ID: job.NewID(), Verb: retryVerb, Filter: ofDead(), Pace: 1})
			if !errors.Is(err, job.ErrInvalid) || !strings.Contains(err.Error(), "100") {
				d.Errorf("one too many: %v", err)
			}
		}},
		{name: "J25_DueAndPurged", run: func(d *database) {
			due := func(want bool) {
				d.Helper()
				equal(d, "due", must[store.Due](d, "due")(d.Store.Due(d.ctx)).Operations, want)
			}
			due(false)
			d.dead(d.hire(), 3)
			o := d.start(store.Operation{Verb: retryVerb, Filter: ofDead(), Pace: 1})
			due(true)
			r := d.page(o.ID)
			if must[store.Due](d, "due")(d.Store.Due(d.ctx)).Operations && d.now().Before(r.Operation.Next) {
				d.Error("the next page is due before its time")
			}
			d.advance(r.Operation.Next.Sub(r.Now))
			due(true)
			d.finishOperation(o.ID)
			due(false)
			d.advance(store.KeepOperation + time.Hour)
			must[int](d, "purge")(d.Store.Purge(d.ctx, 100))
			if list := must[[]store.Operation](d, "operations")(d.operations().Operations(d.ctx, store.OperationPage{Limit: 10})); len(list) != 0 {
				d.Errorf("after its time: %v", list)
			}
		}},
		{name: "J25_GoesOnAfterAnotherOpen", needs: Features{Durable: true}, run: func(d *database) {
			d.dead(d.hire(), 30)
			o := d.start(store.Operation{Verb: retryVerb, Filter: ofDead(), Pace: 100, By: "ann"})
			d.page(o.ID)
			d.Store = d.open(store.Settings{}) // as after a kill: nothing is remembered
			o = d.finishOperation(o.ID)
			equal(d, "counts", o.Counts, store.OperationCounts{Looked: 30, Changed: 30})
			equal(d, "entries", len(d.audit(store.AuditFilter{Action: "retry"}, 100)), 30)
		}},
		operationsRandom(),
	}
}

// operationsRandom holds random operations against a model: a map of jobs on which
// the verb is done by hand. What was foreseen has to come true.
func operationsRandom() testCase {
	return testCase{name: "J25_RandomOperationsAgreeWithAModel", run: func(d *database) {
		seed := rand.Uint64()
		dice := rand.New(rand.NewPCG(seed, 0))
		d.Cleanup(func() {
			if d.Failed() {
				d.Logf("seed %d", seed)
			}
		})
		w := d.hire("a", "b", "c")
		pick := func(of ...string) string { return of[dice.IntN(len(of))] }
		for round := range 12 {
			var list []job.Draft
			for i := range 25 {
				list = append(list, draft(onQueue(pick("a", "b", "c")), ofKind(pick(kind, "other")), priority(1+dice.IntN(3)), func(d *job.Draft) {
					d.In = time.Duration(dice.IntN(3)) * time.Hour
					if dice.IntN(4) == 0 {
						d.Unique = job.Unique{Hash: job.UniqueHash(fmt.Sprint("key", round, i/4))}
					}
				}))
			}
			d.send(list...) // some are duplicates
			for _, q := range []string{"a", "b", "c"} {
				for _, j := range w.ask(store.QueueClaim{Queue: q, Limit: 6, Start: 6}).Jobs {
					switch dice.IntN(5) {
					case 0:
						w.end(j, job.Done)
					case 1, 2:
						w.end(j, job.Dead, failed("x"))
					case 3:
						w.end(j, job.Suspended, parkedFor("x"))
					}
				}
			}
			f := store.Filter{Queue: pick("", "a", "b"), Kind: pick("", "", kind), States: [][]job.State{
				{job.Dead}, {job.Dead, job.Cancelled}, {job.Waiting}, {job.Waiting, job.Suspended}, {job.Running, job.Waiting, job.Dead},
			}[dice.IntN(5)]}
			verb := []store.Verb{retryVerb, cancelVerb, deleteVerb, requeue(pick("a", "c")), toPriority(1 + dice.IntN(3))}[dice.IntN(5)]
			before := everyJob(d)
			now := d.now()
			want, model := foretell(before, f, verb, now)
			equal(d, "foreseen", foreseenCounts(d, f, verb), want)
			o := d.finishOperation(d.start(store.Operation{Verb: verb, Filter: f, Pace: 10 + dice.IntN(100)}).ID)
			equal(d, fmt.Sprintf("%s of %s: counts", verb.Name, f.JSON()), o.Counts, want)
			after := map[job.ID]standing{}
			for id, j := range everyJob(d) {
				after[id] = standingOf(&j)
			}
			equal(d, fmt.Sprintf("%s of %s: jobs", verb.Name, f.JSON()), after, model)
			if d.Failed() {
				return
			}
			d.advance(time.Minute)
			w.beat()
		}
	}}
}

// standing is what the model knows of a job.
type standing struct {
	State    job.State
	Queue    string
	Priority int
	Asked    bool
}

func standingOf(j *job.Job) standing { return standing{j.State, j.Queue, j.Priority, j.CancelAsked} }

func everyJob(d *database) map[job.ID]job.Job {
	d.Helper()
	all := map[job.ID]job.Job{}
	p := store.Page{Limit: store.MaxPage}
	for {
		listed := must[store.Listed](d, "list")(d.Store.List(d.ctx, store.Filter{}, p))
		for _, j := range listed.Jobs {
			all[j.ID] = j
		}
		if !listed.More {
			return all
		}
		p.After = listed.Next
	}
}

// foretell is the model: what an operation comes to, and the jobs after it.
func foretell(jobs map[job.ID]job.Job, f store.Filter, v store.Verb, now time.Time) (c store.OperationCounts, after map[job.ID]standing) {
	after = map[job.ID]standing{}
	keys := map[string]bool{}
	var match []job.Job
	for id, j := range jobs {
		after[id] = standingOf(&j)
		if !j.State.Final() && j.Unique.Hash != nil {
			keys[string(j.Unique.Hash)] = true
		}
		if slices.Contains(f.States, j.State) && (f.Queue == "" || f.Queue == j.Queue) && (f.Kind == "" || f.Kind == j.Kind) {
			match = append(match, j)
		}
	}
	slices.SortFunc(match, func(a, b job.Job) int { return strings.Compare(b.ID.String(), a.ID.String()) })
	for _, j := range match {
		c.Looked++
		s := after[j.ID]
		running := j.State == job.Running
		switch v.Name {
		case store.VerbCancel, store.VerbDelete:
			if running {
				s.Asked = true
				c.Asked++
				break
			}
			if v.Name == store.VerbCancel && j.State.Final() {
				c.Left++
				break
			}
			c.Changed++
			s.State = job.Cancelled
			if v.Name == store.VerbDelete {
				delete(after, j.ID)
				continue
			}
		case store.VerbRetry:
			again := j.State.Final() || j.State == job.Suspended || j.State == job.Waiting && j.Due.After(now)
			switch {
			case !again:
				c.Left++
			case j.State.Final() && j.Unique.Hash != nil && keys[string(j.Unique.Hash)]:
				c.Duplicate++
			default:
				if j.Unique.Hash != nil {
					keys[string(j.Unique.Hash)] = true
				}
				c.Changed++
				s.State, s.Asked = job.Waiting, false
			}
		default:
			to := s
			if v.Name == store.VerbRequeue {
				to.Queue = v.Queue
			} else {
				to.Priority = v.Priority
			}
			if running || to == s {
				c.Left++
			} else {
				c.Changed++
				s = to
			}
		}
		after[j.ID] = s
	}
	return c, after
}

// foreseenCounts is what a dry run comes to.
func foreseenCounts(d *database, f store.Filter, v store.Verb) (c store.OperationCounts) {
	d.Helper()
	keys := map[string]bool{}
	p := store.Page{Limit: 7}
	for {
		listed := must[store.Listed](d, "list")(d.Store.List(d.ctx, f, p))
		if len(listed.Jobs) > 0 {
			var ids []job.ID
			for i := range listed.Jobs {
				ids = append(ids, listed.Jobs[i].ID)
			}
			for _, a := range must[[]store.Foreseen](d, "foresee")(d.operations().Foresee(d.ctx, v, ids)) {
				if a.Key != "" && keys[a.Key] {
					a.Change = store.Duplicate
				}
				keys[a.Key] = true
				c.Add(a.Change)
			}
		}
		if !listed.More {
			return c
		}
		p.After = listed.Next
	}
}
