package storetest

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// listRandom compares lists and counts of random filters with what the jobs
// themselves say, read one by one.
func listRandom() testCase {
	return testCase{name: "J35_RandomFiltersAgreeWithTheJobs", run: func(d *database) {
		seed := rand.Uint64()
		dice := rand.New(rand.NewPCG(seed, 0))
		pick := func(of ...string) string { return of[dice.IntN(len(of))] }
		a, b := d.hire("a", "b", "c"), d.hire("a", "b", "c")
		var made []job.ID
		var marks []time.Time
		for range 30 {
			marks = append(marks, d.now())
			d.advance(time.Duration(1+dice.IntN(60)) * time.Second)
			var list []job.Draft
			for range 1 + dice.IntN(4) {
				list = append(list, draft(onQueue(pick("a", "b", "c")), ofKind(pick(kind, "other")), priority(1+dice.IntN(9)), func(d *job.Draft) {
					d.Key = pick("", "", "x", "y")
					if dice.IntN(3) == 0 {
						d.Tags = []string{pick("red", "blue")}
					}
					d.In = time.Duration(dice.IntN(3)) * 10 * time.Minute
					d.Gate = [...]int64{0, 0, 0, -7, 7}[dice.IntN(5)]
				}))
			}
			made = append(made, d.enqueue(list...)...)
			w := [2]*employee{a, b}[dice.IntN(2)]
			for _, j := range w.ask(store.QueueClaim{Queue: pick("a", "b", "c"), Limit: 2, Start: 2}).Jobs {
				switch dice.IntN(6) {
				case 0:
					w.end(j, job.Done)
				case 1:
					w.end(j, job.Dead, failed(pick("one", "two")))
				case 2:
					w.end(j, job.Waiting, failed(pick("one", "two")))
				case 3:
					w.end(j, job.Suspended)
				}
			}
			if dice.IntN(4) == 0 {
				d.cancel(made[dice.IntN(len(made))])
			}
			a.beat()
			b.beat()
		}
		jobs := must[[]job.Job](d, "get")(d.Store.Get(d.ctx, made))
		for n := range 300 {
			f := randomFilter(dice, marks, a.id)
			p := store.Page{Limit: 1 + dice.IntN(20)}
			switch dice.IntN(6) {
			case 0:
				p.Order, f.Queue, f.States = store.ByDue, pick("a", "b", "c"), []job.State{job.Waiting}
			case 1:
				p.Order, f.States = store.ByFinish, [][]job.State{{job.Dead}, {job.Cancelled}, {job.Dead, job.Cancelled}}[dice.IntN(3)]
			case 2:
				p.Order, f.States = store.ByWorker, []job.State{job.Running}
			}
			var want []store.Bookmark
			for i := range jobs {
				if matches(&f, &jobs[i]) {
					want = append(want, p.Order.Bookmark(&jobs[i]))
				}
			}
			slices.SortFunc(want, p.Order.Compare)
			var got []store.Bookmark
			for {
				listed := must[store.Listed](d, "list")(d.Store.List(d.ctx, f, p))
				for i := range listed.Jobs {
					got = append(got, p.Order.Bookmark(&listed.Jobs[i]))
				}
				if !listed.More {
					break
				}
				p.After = listed.Next
			}
			if !slices.EqualFunc(got, want, func(a, b store.Bookmark) bool { return p.Order.Compare(a, b) == 0 }) {
				d.Fatalf("seed %d, filter %d: %+v %v lists %d jobs, want %d:\n%v\n%v", seed, n, f, p.Order, len(got), len(want), got, want)
			}
			if counted := must[store.Counted](d, "count")(d.Store.Count(d.ctx, f, 0)); counted != (store.Counted{Jobs: len(want)}) {
				d.Fatalf("seed %d, filter %d: %+v counts %+v, want %d", seed, n, f, counted, len(want))
			}
		}
	}}
}

// randomFilter sets few fields, so that some jobs match.
func randomFilter(dice *rand.Rand, marks []time.Time, w job.WorkerID) (f store.Filter) {
	rarely := func() bool { return dice.IntN(7) == 0 }
	mark := func(t *time.Time) {
		if dice.IntN(10) == 0 {
			*t = marks[dice.IntN(len(marks))]
		}
	}
	for _, s := range job.States() {
		if dice.IntN(5) == 0 {
			f.States = append(f.States, s)
		}
	}
	if dice.IntN(2) == 0 {
		f.Queue = [...]string{"a", "b", "c", "none"}[dice.IntN(4)]
	}
	if rarely() {
		f.Kind = "other"
	}
	if rarely() {
		f.Key = "x"
	}
	if rarely() {
		f.Tag = "red"
	}
	if rarely() {
		f.Worker = w
	}
	if rarely() {
		f.Fingerprint = job.Fingerprint("one")
	}
	for _, t := range []*time.Time{&f.DueBefore, &f.DueAfter, &f.CreatedBefore, &f.CreatedAfter, &f.FinishedBefore, &f.FinishedAfter} {
		mark(t)
	}
	return f
}

// matches says of one job what the fields of a filter mean.
func matches(f *store.Filter, j *job.Job) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	last, failed := j.Failures.Last()
	ended := j.State.Final()
	return (len(f.States) == 0 || slices.Contains(f.States, j.State)) &&
		is(f.Queue, j.Queue) && is(f.Kind, j.Kind) && is(f.Key, j.Key) &&
		(f.Tag == "" || slices.Contains(j.Tags, f.Tag)) &&
		(f.Worker == 0 || j.State == job.Running && j.Worker == f.Worker) &&
		(f.Fingerprint == "" || failed && last.Fingerprint == f.Fingerprint) &&
		(f.DueBefore.IsZero() || !j.Due.After(f.DueBefore)) && (f.DueAfter.IsZero() || j.Due.After(f.DueAfter)) &&
		(f.CreatedBefore.IsZero() || j.Created.Before(f.CreatedBefore)) && (f.CreatedAfter.IsZero() || !j.Created.Before(f.CreatedAfter)) &&
		(f.FinishedBefore.IsZero() || ended && j.Finished.Before(f.FinishedBefore)) &&
		(f.FinishedAfter.IsZero() || ended && !j.Finished.Before(f.FinishedAfter))
}
