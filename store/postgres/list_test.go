package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// What a page visits does not grow with the jobs beside it: it is bounded where
// little matches, and small where an index has what is asked for.
func TestJ35_PagesVisitABoundedNumberOfRows(t *testing.T) {
	s, sent := openTraced(t)
	c := hire(t, s)
	const others = 3 * store.MaxWalked
	c.enqueue(someDraft(func(d *job.Draft) { d.Queue = "rare" }), someDraft(func(d *job.Draft) { d.Queue = "rare" }))
	old := many(store.MaxSorted + 100) // older than all of the others, and too long to be sorted
	for i := range old {
		old[i].Queue = "old"
	}
	c.enqueue(old...)
	gated := many(store.MaxSorted + 100)
	for i := range gated {
		gated[i].Queue, gated[i].Gate = "gated", int64(1+i%50)
	}
	c.enqueue(gated...)
	for n := 0; n < others; n += 5000 {
		c.enqueue(many(5000)...)
	}
	var dead []job.End
	for i, j := range c.claim(1000) {
		to := job.Done
		if i%100 == 0 {
			to = job.Dead
		}
		dead = append(dead, job.End{ID: j.ID, Run: j.Run, To: to, Keep: job.Keep{Done: time.Hour, Dead: time.Hour}})
	}
	if _, err := s.Finish(t.Context(), c.worker, dead); err != nil {
		t.Fatal(err)
	}
	c.claim(7)
	exec(t, s, runMany, s.pg.Namespace, store.MaxSorted+500)
	exec(t, s, cancelMany, s.pg.Namespace, 2*store.MaxWalked)
	waiting := []job.State{job.Waiting}
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			if _, err := s.pg.Users.Exec(t.Context(), s.pg.SQL("ANALYZE pawl.job, pawl.job_archive")); err != nil {
				t.Fatal(err)
			}
		}
		for _, one := range []struct {
			what string
			f    store.Filter
			p    store.Page
			most int
		}{
			{"everything", store.Filter{}, store.Page{}, 1_000},
			{"a kind that nobody has", store.Filter{Kind: "none"}, store.Page{}, store.MaxVisits},
			{"a tag of waiting jobs", store.Filter{Tag: "none", States: waiting}, store.Page{}, store.MaxVisits},
			{"a rare queue", store.Filter{Queue: "rare"}, store.Page{}, store.MaxSorted + 100}, // to see that many run
			{"waiting jobs of a rare queue", store.Filter{Queue: "rare", States: waiting}, store.Page{}, 100},
			{"waiting jobs of a rare queue by due", store.Filter{Queue: "rare", States: waiting}, store.Page{Order: store.ByDue}, 100},
			{"waiting jobs of a long queue", store.Filter{Queue: "q", States: waiting}, store.Page{}, store.MaxSorted + 1_100}, // at its front are the dead entries of what was claimed
			{"waiting jobs of an old queue", store.Filter{Queue: "old", States: waiting}, store.Page{}, store.MaxSorted + 100}, // to see that it is long
			{"an old queue", store.Filter{Queue: "old"}, store.Page{}, store.MaxSorted + 100},
			{"none of an old queue", store.Filter{Queue: "old", Kind: "none"}, store.Page{}, 2 * (store.MaxSorted + 100)},
			{"waiting jobs of a long queue by due", store.Filter{Queue: "q", States: waiting}, store.Page{Order: store.ByDue}, store.MaxVisits},
			{"none of a long queue by due", store.Filter{Queue: "q", States: waiting, Kind: "none"}, store.Page{Order: store.ByDue}, store.MaxVisits},
			{"waiting jobs behind gates", store.Filter{Queue: "gated", States: waiting}, store.Page{}, store.MaxSorted + 100}, // to see that they are many
			{"waiting jobs behind gates by due", store.Filter{Queue: "gated", States: waiting}, store.Page{Order: store.ByDue}, store.MaxSorted + 100},
			{"those behind gates, gate by gate", store.Filter{Queue: "gated", States: waiting}, store.Page{After: store.Bookmark{Part: store.PartGated}}, 100},
			{"a page of them", store.Filter{Queue: "gated", States: waiting}, store.Page{After: store.Bookmark{Part: store.PartGated, Gate: 25, Priority: 5, ID: gated[24].ID}}, 100},
			{"none behind gates", store.Filter{Queue: "gated", States: waiting, Kind: "none"}, store.Page{After: store.Bookmark{Part: store.PartGated}}, store.MaxVisits},
			{"running jobs", store.Filter{States: []job.State{job.Running}}, store.Page{}, store.MaxSorted + 1_100}, // of 1007 entries of a worker most are dead
			{"running jobs of a rare queue", store.Filter{States: []job.State{job.Running}, Queue: "rare"}, store.Page{}, 2*store.MaxSorted + 2_100},
			{"running jobs by worker", store.Filter{States: []job.State{job.Running}}, store.Page{Order: store.ByWorker}, 1_100},
			{"what a worker runs by worker", store.Filter{Worker: c.worker, States: []job.State{job.Running}}, store.Page{Order: store.ByWorker}, 100},
			{"what a worker runs", store.Filter{Worker: c.worker}, store.Page{}, 1_100},
			{"suspended jobs", store.Filter{States: []job.State{job.Suspended}}, store.Page{}, 10},
			{"dead jobs", store.Filter{States: []job.State{job.Dead}}, store.Page{}, 100},
			{"dead jobs by finish", store.Filter{States: []job.State{job.Dead}}, store.Page{Order: store.ByFinish}, 100},
			{"cancelled jobs by finish", store.Filter{States: []job.State{job.Cancelled}}, store.Page{Order: store.ByFinish}, 150},
			{"dead and cancelled jobs by finish", store.Filter{States: []job.State{job.Dead, job.Cancelled}}, store.Page{Order: store.ByFinish}, 150},
			{"those of a queue by finish", store.Filter{States: []job.State{job.Dead, job.Cancelled}, Queue: "q"}, store.Page{Order: store.ByFinish}, 2 * store.MaxWalked},
			{"those that ended long ago", store.Filter{States: []job.State{job.Cancelled}, FinishedBefore: time.Now().Add(-time.Hour)}, store.Page{Order: store.ByFinish}, 150},
			{"dead jobs of a queue", store.Filter{Queue: "q", States: []job.State{job.Dead}}, store.Page{}, 100},
		} {
			one.p.Limit = 50
			visits := sent.visits(func() {
				if _, err := s.List(t.Context(), one.f, one.p); err != nil {
					t.Errorf("%s: %v", one.what, err)
				}
			})
			if visits > one.most {
				t.Errorf("%s: a page visits %d rows, want at most %d (tables analyzed: %v)", one.what, visits, one.most, analyzed)
			} else {
				t.Logf("%s: %d rows", one.what, visits)
			}
			visits = sent.visits(func() {
				if _, err := s.Count(t.Context(), one.f, 0); err != nil {
					t.Errorf("%s: %v", one.what, err)
				}
			})
			if visits > store.MaxVisits+store.MaxQueues {
				t.Errorf("%s: a count visits %d rows, want at most %d (tables analyzed: %v)", one.what, visits, store.MaxVisits+store.MaxQueues, analyzed)
			}
		}
		for _, one := range []struct {
			what string
			read func(context.Context) error
			most int
		}{
			// The waiting jobs of one queue and the cancelled ones of another, as far as they are counted; all of the rest.
			{"Counts", func(ctx context.Context) error { return second(s.Counts(ctx)) }, 3 * store.MaxCounted},
			{"Queues", func(ctx context.Context) error { return second(s.Queues(ctx, nil)) }, 2 * store.MaxCounted},
			{"Queues, of three", func(ctx context.Context) error { return second(s.Queues(ctx, []string{"old", "q", "rare"})) }, 2 * store.MaxCounted},
		} {
			visits := sent.visits(func() {
				if err := one.read(t.Context()); err != nil {
					t.Errorf("%s: %v", one.what, err)
				}
			})
			if visits > one.most {
				t.Errorf("%s visits %d rows, want at most %d (tables analyzed: %v)", one.what, visits, one.most, analyzed)
			} else {
				t.Logf("%s: %d rows", one.what, visits)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }

// runMany writes running jobs, of 50 workers that were before all others.
const runMany = `INSERT INTO pawl.job (namespace, priority, state, id, due, created, max_attempts, queue, kind, run, worker, claim)
	SELECT $1, 5, 3, gen_random_uuid(), {now}, {now}, 5, 'runs', 'k', 1, 1 + n % 50, n
	FROM generate_series(1, $2::int) AS n`

// cancelMany writes cancelled jobs into the archive, one a second.
const cancelMany = `INSERT INTO pawl.job_archive (namespace, priority, state, id, due, created, finished, expires, run, version, max_attempts, used, queue, kind, lost, rescues, snoozes, throttles, ties)
	SELECT $1, 5, 7, gen_random_uuid(), t, t, t, t + interval '99 days', 1, 0, 5, 0, 'cancelled', 'k', 0, 0, 0, 0, 0
	FROM (SELECT {now} - n * interval '1 second' AS t FROM generate_series(1, $2::int) AS n) AS made`

func exec(t *testing.T, s *Store, text string, args ...any) {
	t.Helper()
	if _, err := s.pg.Users.Exec(t.Context(), s.pg.SQL(text), args...); err != nil {
		t.Fatal(err)
	}
}
