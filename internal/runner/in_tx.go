package runner

import "github.com/pawlwork/pawl/job"

// overInTx reports whether the handler's own transaction has ended a run, by
// what the store answered to the end that came after it. A transaction that
// others end does not tell of its commit, and the answer of a commit may be
// lost; but while its worker lives nothing else ends a run or takes it away, so
// Stale means that the transaction did. It does not when the answer to an
// earlier try was lost: that try may have been applied. The caller holds mu.
func (r *Runner) overInTx(t *Task, v job.Verdict) bool {
	return v == job.Stale && t.doubt == doubtTx && t.worker == r.lease.Worker
}

// finishedInTx is what the hook is told of such a run: the end that the
// transaction stored, whatever the handler said afterwards.
func (t *Task) finishedInTx() Finished {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Finished{
		Task: t, Outcome: job.Outcome{Kind: job.Succeeded, Result: t.txEnd.Result}, End: *t.txEnd,
		Verdict: job.Applied, Took: t.took, InTx: true,
	}
}
