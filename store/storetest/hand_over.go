package storetest

import (
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// taker keeps a slot for a draft, as a process would, and notes what it is told.
type taker struct {
	mu    sync.Mutex
	calls []job.HandedOver
}

func (t *taker) Settle(h job.HandedOver) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls = append(t.calls, h)
}

// told is the call that counts; false where there was none.
func (t *taker) told() (job.HandedOver, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.calls) == 0 {
		return job.HandedOver{}, false
	}
	return t.calls[0], true
}

// offered has drafts ask to begin for a worker, by the settings as they are.
func (d *database) offered(w *employee, list ...job.Draft) ([]job.Draft, []*taker) {
	d.Helper()
	revision := d.settings().Revision
	takers := make([]*taker, len(list))
	for i := range list {
		takers[i] = &taker{}
		list[i].HandOver = &job.HandOver{Worker: w.id, Revision: revision, Taker: takers[i]}
	}
	return list, takers
}

// begins accepts drafts that ask to begin, and says which did.
func (d *database) begins(w *employee, list ...job.Draft) []bool {
	d.Helper()
	list, takers := d.offered(w, list...)
	d.send(list...)
	return d.began(takers...)
}

func (d *database) began(takers ...*taker) []bool {
	d.Helper()
	began := make([]bool, len(takers))
	for i, t := range takers {
		h, told := t.told()
		if !told {
			d.Errorf("nobody was told what became of draft %d", i)
		}
		equal(d, "unknown", h.Unknown, false)
		began[i] = !h.Started.IsZero()
	}
	return began
}

// handOver: a job begins in the commit that accepts it, if that is asked for and nothing
// is in the way.
func handOver() []testCase {
	yes, no := []bool{true}, []bool{false}
	return []testCase{
		{name: "J34_ItIsWhatAClaimWouldGive", run: func(d *database) {
			w := d.hire()
			edit := func(d *job.Draft) {
				d.Tags, d.Key, d.HeaderBytes, d.Timeout, d.Budget = []string{"t"}, "key", []byte("h"), time.Minute, "b"
				d.Capabilities, d.Version = []string{"gpu"}, 3
			}
			list, takers := d.offered(w, draft(edit, until(d.now().Add(time.Hour))), draft())
			from := d.now()
			d.send(list...)
			equal(d, "began", d.began(takers...), []bool{true, true})
			for i := range list {
				h, _ := takers[i].told()
				within(d, "started", h.Started, from, d.now())
				begun := list[i].Begun(w.id, h.Started)
				equal(d, "as it is stored", d.get(list[i].ID), begun)
			}
			equal(d, "left to claim", len(w.claim(10)), 0)
		}},
		{name: "J34_ItsEndIsFencedLikeAnyOther", run: func(d *database) {
			w, v := d.hire(), d.hire()
			one := draft()
			equal(d, "began", d.begins(w, one), yes)
			run := store.LeasedJob{Job: d.get(one.ID)}
			equal(d, "run", run.Run, 1)
			equal(d, "of another worker", v.finish(ending(run, job.Done)), []job.Verdict{job.Stale})
			w.end(run, job.Waiting)
			again := v.take()
			equal(d, "run", again.Run, 2)
			equal(d, "late", w.finish(ending(run, job.Done)), []job.Verdict{job.Stale})
			v.end(again, job.Done)
		}},
		{name: "J34_NotForALostWorker", run: func(d *database) {
			w, v := d.hire(), d.hire()
			d.lose(w, v)
			one := draft()
			equal(d, "began", d.begins(w, one), no)
			equal(d, "claimed", v.take().ID, one.ID)
		}},
		{name: "J34_NotForAWorkerThatIsNotThere", run: func(d *database) {
			w := d.hire()
			one := draft()
			equal(d, "began", d.begins(&employee{d: w.d, store: w.store, id: w.id + 1000}, one), no)
			equal(d, "claimed", w.take().ID, one.ID)
		}},
		{name: "J34_NotWhenTheSettingsHaveChanged", run: func(d *database) {
			w := d.hire()
			list, takers := d.offered(w, draft())
			d.pause(store.Pause{Scope: store.PauseKind, Name: "another"}, true) // whatever it is about
			d.send(list...)
			equal(d, "began", d.began(takers...), no)
			equal(d, "claimed", w.take().ID, list[0].ID)
		}},
		{name: "J34_NotWhileItsQueueCoolsDown", run: func(d *database) {
			w := d.hire()
			cool := d.Store.(store.CoolDowns)
			if _, err := cool.CoolDown(d.ctx, queue, job.Throttle{Hint: time.Minute}); err != nil {
				d.Fatal(err)
			}
			one, other := draft(), draft(onQueue("other"))
			equal(d, "began", d.begins(w, one, other), []bool{false, true})
			d.advance(10 * time.Minute)
			v := d.hire()
			equal(d, "claimed", v.take().ID, one.ID)
		}},
		{name: "J34_OnlyThoseThatAsk", run: func(d *database) {
			w := d.hire()
			list, takers := d.offered(w, drafts(2)...)
			plain := drafts(2)
			d.send(plain[0], list[0], plain[1], list[1])
			equal(d, "began", d.began(takers...), []bool{true, true})
			equal(d, "claimed", ids(w.claim(10)), []job.ID{plain[0].ID, plain[1].ID})
		}},
		{name: "J34_AResendOfOneFindsIt", run: func(d *database) {
			w := d.hire()
			one := draft()
			equal(d, "began", d.begins(w, one), yes)
			d.duplicate("the resend", one.ID, draft(again(one.ID)))
			run := store.LeasedJob{Job: d.get(one.ID)}
			w.end(run, job.Done)
			d.duplicate("the resend of an ended one", one.ID, draft(again(one.ID)))
		}},
		{name: "J34_ARefusedCallBeginsNothing", run: func(d *database) {
			w := d.hire()
			first := d.one()
			list, takers := d.offered(w, draft(), draft())
			list[1].ID = first // not fresh after all
			if _, err := d.Enqueue(d.ctx, list); err == nil {
				list[1].ID = job.ID{}
			}
			for i, t := range takers {
				h, told := t.told()
				if !told {
					d.Errorf("nobody was told what became of draft %d", i)
				}
				if !h.Started.IsZero() && d.get(list[i].ID).State != job.Running {
					d.Errorf("draft %d is said to have begun, and did not", i)
				}
			}
		}},
		{name: "J34_WhatIsNotHeldGoesBack", run: func(d *database) {
			w := d.hire()
			one := draft()
			equal(d, "began", d.begins(w, one), yes)
			got, err := w.store.ReportRuns(d.ctx, w.id, nil)
			if err != nil {
				d.Fatal(err)
			}
			equal(d, "report", got, store.ReportReply{Returned: 1})
			back := d.get(one.ID)
			equal(d, "used, lost, rescues", [3]int{back.Used, back.Lost, back.Rescues}, [3]int{})
			equal(d, "run", w.take().Run, 2)
		}},
		{name: "J34_ItsWorkerDies", run: func(d *database) {
			w, v := d.hire(), d.hire()
			one := draft()
			equal(d, "began", d.begins(w, one), yes)
			d.lose(w, v)
			d.rescue()
			back := d.get(one.ID)
			equal(d, "state", back.State, job.Waiting)
			equal(d, "lost before it had begun, as the store knows", back.Lost, 0)
			equal(d, "run", v.take().Run, 2)
		}},
		{name: "J34_ACancelFindsTheRun", run: func(d *database) {
			w := d.hire()
			one := draft()
			equal(d, "began", d.begins(w, one), yes)
			equal(d, "cancel", d.cancel(one.ID), []store.Change{store.Asked})
			asked, err := w.store.Cancels(d.ctx, w.id)
			if err != nil {
				d.Fatal(err)
			}
			equal(d, "asked to stop", asked, []store.RunRef{{ID: one.ID, Run: 1}})
		}},
		{name: "J34_NeverInAUsersTransaction", run: func(d *database) {
			w := d.hire()
			list, takers := d.offered(w, draft())
			d.inTx(func(tx store.Tx) error {
				_, err := tx.Enqueue(d.ctx, list)
				return err
			})
			if h, _ := takers[0].told(); !h.Started.IsZero() {
				d.Error("it began in a transaction whose commit nobody sees")
			}
			equal(d, "claimed", w.take().ID, list[0].ID)
		}},
		{name: "J34_FollowUpsBeginWithTheEndThatBringsThem", run: func(d *database) {
			d.one()
			w := d.hire()
			held := w.take()
			list, takers := d.offered(w, draft(), draft())
			list[1].HandOver = nil
			w.end(held, job.Done, func(e *job.End) { e.Then = &job.FollowUps{Drafts: list} })
			equal(d, "began", d.began(takers[0]), yes)
			equal(d, "states", d.states(held.ID, list[0].ID, list[1].ID), []job.State{job.Done, job.Running, job.Waiting})
			equal(d, "claimed", w.take().ID, list[1].ID)
			w.end(store.LeasedJob{Job: d.get(list[0].ID)}, job.Done)
		}},
		{name: "J34_FollowUpsOfAStaleRunDoNot", run: func(d *database) {
			d.one()
			w, v := d.hire(), d.hire()
			held := w.take()
			d.lose(w, v)
			d.rescue()
			list, takers := d.offered(v, draft())
			equal(d, "verdicts", w.finish(ending(held, job.Done, func(e *job.End) { e.Then = &job.FollowUps{Drafts: list} })), []job.Verdict{job.Stale})
			equal(d, "began", d.began(takers...), no)
			d.gone("what a stale run handed in", list[0].ID)
		}},
		{name: "J34_JobsOfAScheduleBeginWithItsFire", run: func(d *database) {
			c, w := d.clerk(d.Store), d.hire()
			s := c.begin("nightly")
			d.advance(time.Hour)
			v := d.hire()
			f, outdated := dueOf(s), dueOf(s)
			var takers []*taker
			f.Jobs, takers = d.offered(v, f.Jobs...)
			equal(d, "fired", c.fire(f), []store.Fired{{Moved: true, Receipts: []job.Receipt{{ID: f.Jobs[0].ID}}}})
			equal(d, "began", d.began(takers...), yes)
			equal(d, "state", d.states(f.Jobs[0].ID), []job.State{job.Running})
			outdated.Jobs, takers = d.offered(v, outdated.Jobs...)
			equal(d, "of a repeat", c.fire(outdated), []store.Fired{{}})
			equal(d, "began", d.began(takers...), no)
			v.end(store.LeasedJob{Job: d.get(f.Jobs[0].ID)}, job.Done)
			if err := c.ForgetSchedule(d.ctx, "nightly"); err != nil {
				d.Fatal(err)
			}
			anew := f
			anew.New, anew.Was = true, time.Time{}
			anew.Jobs, takers = d.offered(v, dueOf(s).Jobs...)
			dealtWith := store.Fired{Moved: true, Receipts: []job.Receipt{{ID: f.Jobs[0].ID, Duplicate: true}}}
			equal(d, "of a due time that was dealt with", c.fire(anew), []store.Fired{dealtWith})
			equal(d, "began", d.began(takers...), no)
			next := dueOf(c.state())
			next.Jobs, takers = d.offered(v, next.Jobs...)
			d.pause(store.Pause{Scope: store.PauseQueue, Name: queue}, true)
			equal(d, "of another revision", c.fire(next)[0].Moved, true)
			equal(d, "began", d.began(takers...), no)
			d.pause(store.Pause{Scope: store.PauseQueue, Name: queue}, false)
			equal(d, "claimed", w.take().ID, next.Jobs[0].ID)
		}},
		{name: "J34_ManyAtOnce", run: func(d *database) {
			w := d.hire()
			var all sync.WaitGroup
			var mu sync.Mutex
			var began []job.ID
			for n := range 16 {
				all.Go(func() {
					for i := range 20 {
						list, takers := d.offered(w, draft())
						if (n+i)%4 == 0 {
							list[0].HandOver = nil
						}
						if _, err := d.Enqueue(d.ctx, list); err != nil {
							d.Error(err)
							return
						}
						if h, _ := takers[0].told(); !h.Started.IsZero() {
							mu.Lock()
							began = append(began, list[0].ID)
							mu.Unlock()
						}
					}
				})
			}
			all.Wait()
			equal(d, "began", len(began), 240)
			equal(d, "running", d.count(job.Running), 240)
			for _, s := range d.states(began...) {
				equal(d, "state", s, job.Running)
			}
			equal(d, "claimed", len(w.claim(500)), 80)
		}},
	}
}
