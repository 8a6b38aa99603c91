package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// fleet sends and works jobs in every way that a job can take: keys, lines, retries,
// releases, cancels and losses. Its methods are for many goroutines.
type fleet struct {
	d     *database
	crew  []job.WorkerID
	ids   []job.ID // of the jobs that were there before it began
	ended context.Context
	end   context.CancelFunc
}

func (f *fleet) failed(what string, err error) bool {
	if err != nil && f.ended.Err() == nil {
		f.d.Errorf("%s: %v", what, err)
		f.end()
	}
	return err != nil
}

// work is one worker of the fleet. It loses what it claims now and then, as a crash
// does; reporting gives that back.
func (f *fleet) work(w job.WorkerID) {
	for seq := int64(1); f.ended.Err() == nil; seq++ {
		got, err := f.d.Store.Claim(f.ended, store.Claim{
			Worker: w, Seq: seq, Offer: everything, Queues: []store.QueueClaim{{Queue: queue, Limit: 5, Start: 5}},
		})
		if f.failed("claim", err) {
			return
		}
		var ends []job.End
		for i, j := range got.Jobs {
			e := ending(j, job.Done)
			switch n := int(seq) + i; {
			case n%11 == 0:
				continue // its answer was lost
			case n%7 == 0:
				e.To = job.Waiting
				e.Logs = []job.LogLine{{Text: "again"}}
			case n%5 == 0:
				e.Logs = []job.LogLine{{Text: "one"}, {Text: "two"}}
			case n%13 == 0:
				e.To = job.Dead
			}
			ends = append(ends, e)
		}
		if _, err := f.d.Store.Finish(f.ended, w, ends); f.failed("finish", err) {
			return
		}
		if len(got.Jobs) == 0 || seq%10 == 0 {
			if _, err := f.d.Store.ReportRuns(f.ended, w, nil); f.failed("report", err) {
				return
			}
		}
	}
}

// send accepts more jobs, some of them under keys that others have. They are not so many
// that a look becomes long.
func (f *fleet) send() {
	for i := 0; f.ended.Err() == nil && i < 60; i++ {
		list := drafts(4)
		list[0].Unique = job.Unique{Hash: fmt.Appendf(nil, "key %d", i%20)}
		list[1].Unique = job.Unique{Hash: fmt.Appendf(nil, "kept %d", i), Period: time.Hour}
		if _, err := f.d.Store.Enqueue(f.ended, list); f.failed("enqueue", err) {
			return
		}
	}
}

// operate retries and cancels.
func (f *fleet) operate() {
	ann := store.Operator{Name: "ann"}
	for i := 0; f.ended.Err() == nil; i = (i + 3) % len(f.ids) {
		verb := f.d.Store.Retry
		if i%2 == 0 {
			verb = f.d.Store.Cancel
		}
		if _, err := verb(f.ended, f.ids[i:i+1], ann); f.failed("operate", err) {
			return
		}
	}
}

// upkeep purges and rescues.
func (f *fleet) upkeep() {
	for f.ended.Err() == nil {
		if _, err := f.d.Store.Purge(f.ended, 10); f.failed("purge", err) {
			return
		}
		if _, err := f.d.Store.Rescue(f.ended, 10); f.failed("rescue", err) {
			return
		}
	}
}

// loaded runs a fleet beside f, which is called so often.
func (d *database) loaded(times int, beside func(f *fleet)) *fleet {
	d.Helper()
	f := &fleet{d: d, ids: d.enqueue(append(drafts(30), drafts(30, in(time.Hour))...)...)}
	f.ended, f.end = context.WithCancel(d.ctx)
	defer f.end()
	var all sync.WaitGroup
	for range 3 {
		w := d.hire().id
		f.crew = append(f.crew, w)
		all.Go(func() { f.work(w) })
	}
	for _, run := range []func(){f.send, f.operate, f.upkeep} {
		all.Go(run)
	}
	for range times {
		if f.ended.Err() == nil {
			beside(f)
		}
	}
	f.end()
	all.Wait()
	for _, w := range f.crew { // what it holds goes back
		must[store.ReportReply](d, "report")(d.Store.ReportRuns(d.ctx, w, nil))
	}
	return f
}

func repairLoad() []testCase {
	return []testCase{
		{name: "J27_AHealthySystemIsLeftAlone", run: func(d *database) {
			looks := 0
			d.loaded(25, func(f *fleet) {
				looks++
				report, err := d.Store.Check(d.ctx, store.Check{Step: 7 + 5*looks, Totals: looks%2 == 0})
				if f.failed("check", err) {
					return
				}
				for _, fault := range report.Faults {
					d.Errorf("look %d: %s", looks, fault)
				}
				if done, err := d.repairer().Repair(d.ctx, report.Faults, tester); len(done) > 0 || err != nil {
					d.Errorf("look %d: %v, %v", looks, done, err)
				}
			})
			equal(d, "entries", d.entries(), nil)
			if looks == 0 {
				d.Error("nobody looked")
			}
		}},
		{name: "J27_RepairsBesideAFleetLoseNothing", needs: Features{Spoil: true}, run: func(d *database) {
			words, turn, mended := d.opener.(Spoiler).Words(), 0, 0
			// What a row of a job that the fleet works on can suffer without a way around its fence.
			harm := []string{
				"UPDATE <job> SET worker = 7, claim = 7 WHERE id = $job AND state = 2",
				"UPDATE <job> SET wait = 1 WHERE id = $job AND state = 2",
				"UPDATE <job> SET worker = NULL WHERE id = $job AND state = 3",
				"UPDATE <job> SET state = 5 WHERE id = $job AND state = 2",
				"DELETE FROM <job_unique> WHERE job = $job AND until IS NULL",
				"UPDATE <job> SET priority = 12 WHERE id = $job",
				"UPDATE <job> SET due = @never WHERE id = $job AND state = 2",
			}
			f := d.loaded(20, func(f *fleet) {
				for range 3 {
					turn++
					text := words.Replace(harm[turn%len(harm)])
					text = strings.ReplaceAll(text, "$job", words.ID(f.ids[turn%len(f.ids)]))
					tx, err := d.Store.Begin(d.ctx)
					if f.failed("begin", err) {
						return
					}
					if _, err = tx.Exec(d.ctx, text); err == nil {
						err = tx.Commit(d.ctx)
					} else {
						_ = tx.Rollback(d.ctx)
					}
					if f.failed(text, err) {
						return
					}
				}
				report, err := d.Store.Check(d.ctx, store.Check{})
				if f.failed("check", err) {
					return
				}
				done, err := d.repairer().Repair(d.ctx, report.Faults, tester)
				if f.failed("repair", err) {
					return
				}
				for _, r := range done {
					if r.Answer == store.RepairDone {
						mended++
					}
					if r.Answer == store.RepairImpossible {
						d.Errorf("%s", r)
					}
				}
			})
			for range 3 {
				d.mend(d.look(store.Check{}).Faults...)
			}
			if mended == 0 {
				d.Error("nothing was mended")
			}
			for _, w := range f.crew {
				must[store.ReportReply](d, "report")(d.Store.ReportRuns(d.ctx, w, nil))
			}
			must[[]store.Change](d, "retry")(d.Store.Retry(d.ctx, f.ids, store.Operator{}))
			w := d.hire()
			for jobs := w.claim(500); len(jobs) > 0; jobs = w.claim(500) {
				for _, j := range jobs {
					w.end(j, job.Done)
				}
			}
			for _, id := range f.ids {
				if j := d.get(id); !j.State.Final() {
					d.Errorf("job %s is %s", id, j.State)
				}
			}
		}},
	}
}
