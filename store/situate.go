package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
)

// SituationOf is the situation of one job; ErrNotFound when there is none.
func SituationOf(ctx context.Context, r Reader, id job.ID) (job.Situation, error) {
	list, err := r.Situations(ctx, []job.ID{id})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("job %s: %w", id, job.ErrNotFound)
	}
	if err != nil {
		return job.Situation{}, err
	}
	return list[0], nil
}

// AheadCap is how far the jobs ahead of each of n jobs are counted: 10,000
// altogether, and 100 for each of many (P10).
func AheadCap(n int) int { return max(100, 10_000/max(1, n)) }

// QueueRuns is how many runs of a queue a worker with totals holds.
type QueueRuns struct {
	Label  string
	Totals []byte // []Total as JSON
	Lost   bool   // or left
	Runs   int
}

// Situate adds to a situation what the registry says: who serves the job's
// queue, whether the worker that runs it is still heard of, how much of the
// queue's total is used, and who holds a portion of it without being heard of.
// Sit.Job and Sit.Now are set.
func Situate(sit *job.Situation, workers []WorkerInfo, runs []QueueRuns) {
	ofQueue := func(t Total) bool { return t.Queue == sit.Job.Queue }
	for i := range workers {
		w := &workers[i]
		if w.Lost {
			continue
		}
		// One that died without anyone left to declare it lost does not count.
		if sit.Now.Sub(w.Beat) < w.Worker.LostAfter && job.MatchesAny(w.Worker.Queues, sit.Job.Queue) {
			sit.Workers = append(sit.Workers, w.Worker.Offer)
		}
		if i := slices.IndexFunc(w.Worker.Totals, ofQueue); i >= 0 {
			total := w.Worker.Totals[i].Total
			if sit.Use.Total == 0 || total < sit.Use.Total {
				sit.Use.Total = total
			}
			if w.Shares {
				sit.Use.Sharing++
			}
		}
		if !w.silent(sit.Now) {
			continue
		}
		unheard := job.Unheard{Label: w.Worker.Label, Since: w.Beat, Until: w.Beat.Add(w.Worker.LostAfter)}
		if sit.Job.State == job.Running && sit.Job.Worker == w.ID {
			sit.Unheard = &unheard
		}
		if sit.Job.State == job.Waiting && w.Shares && slices.ContainsFunc(w.Worker.Totals, ofQueue) {
			sit.Holding = append(sit.Holding, unheard)
		}
	}
	for _, r := range runs {
		var totals []Total
		if json.Unmarshal(r.Totals, &totals) == nil && !slices.ContainsFunc(totals, ofQueue) {
			continue
		}
		sit.Use.Running += r.Runs
		sit.Use.Workers++
		if r.Lost && sit.Job.State == job.Waiting && sit.Use.Total > 0 {
			sit.Holding = append(sit.Holding, job.Unheard{Label: r.Label, Lost: true, Runs: r.Runs})
		}
	}
}

// CoolDownOf is the cool-down of a queue, nil where none of these is.
func CoolDownOf(list []job.CoolDown, queue string) *job.CoolDown {
	for i := range list {
		if list[i].Queue == queue {
			return &list[i]
		}
	}
	return nil
}

// silent reports whether a worker has missed a beat: it beats at least three
// times in its LostAfter.
func (w *WorkerInfo) silent(now time.Time) bool { return now.Sub(w.Beat) > w.Worker.LostAfter/2 }
