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
	s := openInternal(t)
	c := hire(t, s)
	const others = 3 * store.MaxWalked
	c.enqueue(someDraft(func(d *job.Draft) { d.Queue = "rare" }), someDraft(func(d *job.Draft) { d.Queue = "rare" }))
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
			{"a rare queue", store.Filter{Queue: "rare"}, store.Page{}, 100},
			{"waiting jobs of a rare queue", store.Filter{Queue: "rare", States: waiting}, store.Page{}, 100},
			{"waiting jobs of a rare queue by due", store.Filter{Queue: "rare", States: waiting}, store.Page{Order: store.ByDue}, 100},
			{"waiting jobs of a long queue", store.Filter{Queue: "q", States: waiting}, store.Page{}, store.MaxVisits},
			{"waiting jobs of a long queue by due", store.Filter{Queue: "q", States: waiting}, store.Page{Order: store.ByDue}, store.MaxVisits},
			{"none of a long queue by due", store.Filter{Queue: "q", States: waiting, Kind: "none"}, store.Page{Order: store.ByDue}, store.MaxVisits},
			{"running jobs", store.Filter{States: []job.State{job.Running}}, store.Page{}, 1_100}, // of 1007 entries most are dead
			{"what a worker runs", store.Filter{Worker: c.worker}, store.Page{}, 1_100},
			{"suspended jobs", store.Filter{States: []job.State{job.Suspended}}, store.Page{}, 10},
			{"dead jobs", store.Filter{States: []job.State{job.Dead}}, store.Page{}, 100},
			{"dead jobs by finish", store.Filter{States: []job.State{job.Dead}}, store.Page{Order: store.ByFinish}, 100},
			{"dead jobs of a queue", store.Filter{Queue: "q", States: []job.State{job.Dead}}, store.Page{}, 100},
		} {
			one.p.Limit = 50
			text, args, err := s.lists.ListText(t.Context(), one.f, one.p)
			if err != nil {
				t.Fatal(err)
			}
			if n := visited(t, s, text, args...); n > one.most {
				t.Errorf("%s: a page visits %d rows, want at most %d (tables analyzed: %v)", one.what, n, one.most, analyzed)
			} else {
				t.Logf("%s: %d rows", one.what, n)
			}
			if _, err := s.List(t.Context(), one.f, one.p); err != nil {
				t.Errorf("%s: %v", one.what, err)
			}
		}
	}
}

// visited runs a statement that reads, as List does, and counts the rows and
// entries of indexes of jobs that it visits, whatever its plan.
func visited(t *testing.T, s *Store, text string, args ...any) (total int) {
	t.Helper()
	ctx := context.Background()
	tx, err := s.pg.Users.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, "SELECT set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true), set_config('jit', 'off', true)"); err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		const all = `SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(c.oid)), 0)::bigint
		FROM pg_class AS c
		WHERE c.relnamespace = $1::regnamespace AND c.relname LIKE 'job%' AND c.relkind IN ('r', 'i')`
		if err := tx.QueryRow(ctx, all, s.pg.Texts.Schema).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := count()
	if _, err := tx.Exec(ctx, s.pg.SQL(text), args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return count() - before
}
