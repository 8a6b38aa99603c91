package runner

import (
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// split is how this process takes part in the totals of its queues. Guarded by
// Runner.mu, except for totals.
//
// A total is split over the live workers by job.Split. Workers learn of each
// other from the answers to their beats, at different times, so for a while some
// split by an older version of the registry than others. The portions of all
// processes never add up to more than the total all the same:
//
//  1. A portion shrinks as soon as the process hears of a version in which it is
//     smaller. From its next beat on the store knows that it has.
//  2. A portion grows only when every other live worker has stored that same
//     version: none of them uses more than its portion in it.
//  3. A process that has just registered, or was lost, starts from nothing.
//
// Versions never come again, so what was stored for one cannot be taken for
// another. What may run over the total are jobs that began under a larger
// portion: they are not interrupted.
type split struct {
	totals  []store.Total // of the queues that have one; fixed
	version int64         // of the registry, by which portions are split
	waits   int           // beats in a row that were not settled
}

// firstWait is how soon a beat asks again whether the others have heard; each
// further one waits twice as long.
const firstWait = 50 * time.Millisecond

// splitTotals takes over the answer to a beat. The caller holds mu.
func (r *Runner) splitTotals(answer store.Beaten) {
	if len(r.split.totals) == 0 {
		return
	}
	r.split.version = answer.Version
	for _, q := range r.queues {
		if q.setting.Total == 0 {
			continue
		}
		// What was claimed ahead for more slots goes back in a moment (staleReady).
		q.slots = portion(q.name, q.slots, answer)
	}
}

// portion is how many slots of a queue with a total a worker may use after the
// answer to a beat, which it used until then.
func portion(queue string, used int, answer store.Beaten) int {
	crew, ok := answer.Crews[queue]
	if !ok || crew.Index >= len(crew.Workers) {
		return 0
	}
	now := job.Split(crew.Total, queue, crew.Workers)[crew.Index]
	if answer.Settled {
		return now
	}
	return min(used, now)
}

// forgetSplit takes all portions away: this process is not registered. The
// caller holds mu.
func (r *Runner) forgetSplit() {
	r.split.version, r.split.waits = 0, 0
	for _, q := range r.queues {
		if q.setting.Total > 0 {
			q.slots = 0
		}
	}
}

// soon is how long to wait for the next beat after one that was sent with a
// version; negative means the usual time. A version that is new is stored
// at once: others wait for it. While others have not stored theirs they are asked
// again, ever more rarely.
func (s *split) soon(sent int64, answer store.Beaten, every time.Duration) time.Duration {
	switch {
	case len(s.totals) == 0:
		return -1
	case answer.Version != sent:
		s.waits = 0
		return 0
	case answer.Settled:
		s.waits = 0
		return -1
	}
	wait := min(firstWait<<min(s.waits, 20), every)
	s.waits++
	return wait
}
