package store

import (
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
)

// Situate adds to a situation what the registry says: who serves the job's
// queue, whether the worker that runs it is still heard of, and who holds a
// portion of the queue's total without being heard of. Sit.Job and Sit.Now are set.
func Situate(sit *job.Situation, workers []WorkerInfo) {
	for i := range workers {
		w := &workers[i]
		if w.Lost {
			continue
		}
		// One that died without anyone left to declare it lost does not count.
		if sit.Now.Sub(w.Beat) < w.Worker.LostAfter && slices.Contains(w.Worker.Queues, sit.Job.Queue) {
			sit.Workers = append(sit.Workers, w.Worker.Offer)
		}
		if !w.silent(sit.Now) {
			continue
		}
		unheard := job.Unheard{Label: w.Worker.Label, Since: w.Beat, Until: w.Beat.Add(w.Worker.LostAfter)}
		if sit.Job.State == job.Running && sit.Job.Worker == w.ID {
			sit.Unheard = &unheard
		}
		if sit.Job.State == job.Waiting && slices.ContainsFunc(w.Worker.Totals, func(t Total) bool { return t.Queue == sit.Job.Queue }) {
			sit.Holding = append(sit.Holding, unheard)
		}
	}
}

// silent reports whether a worker has missed a beat: it beats at least three
// times in its LostAfter.
func (w *WorkerInfo) silent(now time.Time) bool { return now.Sub(w.Beat) > w.Worker.LostAfter/2 }
