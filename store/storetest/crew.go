package storetest

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// employee is one registered worker of a case.
type employee struct {
	d     *database
	store store.Store
	id    job.WorkerID
	seq   int64
	offer job.Offer
	gates *job.GateRules
	ended []int64   // gates of runs that it has ended since its last claim
	known time.Time // its last beat, as it was answered
}

// everything is the offer of a worker that takes what the cases enqueue.
var everything = job.Offer{Kinds: map[string]int{kind: 0, "other": 0}}

// hire registers a worker that serves the queues; none means the usual one.
func (d *database) hire(queues ...string) *employee {
	d.Helper()
	if len(queues) == 0 {
		queues = []string{queue}
	}
	w := &employee{d: d, store: d.Store, offer: everything}
	w.id = must[job.WorkerID](d, "register")(d.Store.Register(d.ctx, store.Worker{
		Label: "test-worker-1-a", Host: "host", Process: 7, Queues: queues, Offer: everything, LostAfter: lostAfter,
	}))
	return w
}

// ask makes the worker's next claim.
func (w *employee) ask(queues ...store.QueueClaim) store.ClaimReply {
	w.d.Helper()
	w.seq++
	return w.repeat(w.seq, queues...)
}

// repeat makes a claim under a number of the caller's choice.
func (w *employee) repeat(seq int64, queues ...store.QueueClaim) store.ClaimReply {
	w.d.Helper()
	defer func() { w.ended = nil }()
	return must[store.ClaimReply](w.d, "claim")(w.store.Claim(w.d.ctx, store.Claim{
		Worker: w.id, Seq: seq, Queues: queues, Offer: w.offer, Gates: w.gates, Opened: w.ended,
	}))
}

// claim takes up to limit jobs of the usual queue and starts all of them.
func (w *employee) claim(limit int) []store.LeasedJob {
	w.d.Helper()
	return w.ask(store.QueueClaim{Queue: queue, Limit: limit, Start: limit}).Jobs
}

// take claims exactly one job.
func (w *employee) take() store.LeasedJob {
	w.d.Helper()
	jobs := w.claim(1)
	if len(jobs) != 1 {
		w.d.Fatalf("claimed %d jobs, want 1", len(jobs))
	}
	return jobs[0]
}

// begin claims one job and says that its handler begins.
func (w *employee) begin() store.LeasedJob {
	w.d.Helper()
	j := w.take()
	equal(w.d, "verdict of begun", must[[]job.Verdict](w.d, "note")(w.store.Note(w.d.ctx, w.id, []store.Note{{RunRef: ref(j), Begun: true}})), []job.Verdict{job.Applied})
	return j
}

// finish ends runs and gives the verdicts.
func (w *employee) finish(ends ...job.End) []job.Verdict {
	w.d.Helper()
	verdicts := must[[]job.Verdict](w.d, "finish")(w.store.Finish(w.d.ctx, w.id, ends))
	if len(verdicts) != len(ends) {
		w.d.Fatalf("finish: %d verdicts for %d ends", len(verdicts), len(ends))
	}
	return verdicts
}

// end finishes one run that the worker must own.
func (w *employee) end(j store.LeasedJob, to job.State, edit ...func(*job.End)) {
	w.d.Helper()
	if gate := j.Gate(); gate != 0 {
		w.ended = append(w.ended, gate)
	}
	equal(w.d, "verdict", w.finish(ending(j, to, edit...)), []job.Verdict{job.Applied})
}

// ending describes the end of a run.
func ending(j store.LeasedJob, to job.State, edit ...func(*job.End)) job.End {
	e := job.End{ID: j.ID, Run: j.Run, To: to, Keep: keep}
	for _, f := range edit {
		f(&e)
	}
	return e
}

// beat renews the worker's lease.
func (w *employee) beat(begun ...store.RunRef) store.BeatReply {
	w.d.Helper()
	answer := must[store.BeatReply](w.d, "beat")(w.store.Beat(w.d.ctx, store.Beat{Worker: w.id, Begun: begun}))
	w.known = answer.Now
	return answer
}

// declare declares those lost that missed their beats.
func (w *employee) declare() int {
	w.d.Helper()
	return w.declareAfter(1000 * lostAfter)
}

// declareAfter does so after a time in which all beats of the worker succeeded.
func (w *employee) declareAfter(steady time.Duration) int {
	w.d.Helper()
	return must[store.MarkLostReply](w.d, "lose")(w.store.MarkLost(w.d.ctx, store.MarkLostRequest{By: w.id, Beat: w.known, Steady: steady})).Workers
}

// ids lists the claimed jobs in order.
func ids(jobs []store.LeasedJob) []job.ID {
	list := make([]job.ID, len(jobs))
	for i := range jobs {
		list[i] = jobs[i].ID
	}
	return list
}

// ref names a claimed run.
func ref(j store.LeasedJob) store.RunRef { return store.RunRef{ID: j.ID, Run: j.Run} }

// lose lets the worker miss its beats until a colleague declares it lost. The
// others keep beating.
func (d *database) lose(w *employee, others ...*employee) {
	d.Helper()
	colleague := d.hire("colleagues")
	d.advance(lostAfter + lostAfter/2)
	for _, o := range append(others, colleague) {
		o.beat()
	}
	if n := colleague.declare(); n == 0 {
		d.Fatalf("worker %d missed its beats and was not declared lost", w.id)
	}
}

// rescue takes back what lost workers hold, and counts it.
func (d *database) rescue() store.RescueReply {
	d.Helper()
	rescued := must[store.RescueReply](d, "rescue")(d.Store.Rescue(d.ctx, 1000))
	rescued.Deaths = nil
	return rescued
}

// expire ends what is past its deadline, and counts it.
func (d *database) expire(limit int) int {
	d.Helper()
	return must[store.ExpireReply](d, "expire")(d.Store.Expire(d.ctx, limit)).Total()
}
