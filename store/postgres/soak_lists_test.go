//go:build soak

package postgres

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// TestSoak_J35_FindingJobsAmongMillions asks everything that can be asked beside a
// million live and five million archived jobs. What it visits is bounded, and none
// takes longer than a second.
func TestSoak_J35_FindingJobsAmongMillions(t *testing.T) {
	server := need.PostgresServer(t, "shared_buffers=256MB", "max_wal_size=4GB")
	s, sent := openTracedOn(t, server.URL(), "pawl")
	began := time.Now()
	exec(t, s, manyLive, s.pg.Namespace, 1_000_000)
	exec(t, s, manyEnded, s.pg.Namespace, 5_000_000)
	exec(t, s, manyWorkers, s.pg.Namespace)
	exec(t, s, "VACUUM ANALYZE pawl.job, pawl.job_archive")
	t.Logf("the jobs were made in %v", time.Since(began).Round(time.Second))

	ask := func(what string, most int, call func() (string, error)) {
		t.Helper()
		var answer string
		begin := time.Now()
		visits := sent.visits(func() {
			var err error
			if answer, err = call(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
		took := time.Since(begin) / 2 // what it sent was run once more, to be counted
		t.Logf("%-50s %7d rows %8v  %s", what, visits, took.Round(time.Millisecond/10), answer)
		if visits > most {
			t.Errorf("%s visits %d rows, want at most %d", what, visits, most)
		}
		if took > time.Second {
			t.Errorf("%s took %v", what, took)
		}
	}

	now := time.Now()
	in := func(states ...job.State) []job.State { return states }
	for _, one := range []struct {
		what   string
		f      store.Filter
		orders []store.Order
	}{
		{"everything", store.Filter{}, nil},
		{"waiting", store.Filter{States: in(job.Waiting)}, nil},
		{"waiting in a long queue", store.Filter{States: in(job.Waiting), Queue: "q1"}, []store.Order{store.ByDue}},
		{"waiting in a long, old queue", store.Filter{States: in(job.Waiting), Queue: "old"}, []store.Order{store.ByDue}},
		{"a long queue", store.Filter{Queue: "q1"}, nil},
		{"ready in a long queue", store.Filter{States: in(job.Waiting), Queue: "q1", DueBefore: now}, []store.Order{store.ByDue}},
		{"scheduled in a long queue", store.Filter{States: in(job.Waiting), Queue: "q1", DueAfter: now}, []store.Order{store.ByDue}},
		{"a rare queue", store.Filter{Queue: "rare"}, nil},
		{"running", store.Filter{States: in(job.Running)}, []store.Order{store.ByWorker}},
		{"running of a worker", store.Filter{Worker: 17}, nil},
		{"running in a queue", store.Filter{States: in(job.Running), Queue: "q2"}, nil},
		{"suspended", store.Filter{States: in(job.Suspended)}, nil},
		{"parked", store.Filter{Wait: job.Parked}, nil},
		{"blocked", store.Filter{States: in(job.Blocked)}, nil},
		{"done", store.Filter{States: in(job.Done)}, nil},
		{"done in a queue", store.Filter{States: in(job.Done), Queue: "q1"}, nil},
		{"dead", store.Filter{States: in(job.Dead)}, []store.Order{store.ByFinish}},
		{"dead and cancelled", store.Filter{States: in(job.Dead, job.Cancelled)}, []store.Order{store.ByFinish}},
		{"dead in a queue", store.Filter{States: in(job.Dead), Queue: "q1"}, []store.Order{store.ByFinish}},
		{"dead in a rare queue", store.Filter{States: in(job.Dead), Queue: "rare"}, []store.Order{store.ByFinish}},
		{"dead of a rare kind", store.Filter{States: in(job.Dead), Kind: "rare"}, []store.Order{store.ByFinish}},
		{"dead last week", store.Filter{States: in(job.Dead), FinishedAfter: now.Add(-14 * 24 * time.Hour), FinishedBefore: now.Add(-7 * 24 * time.Hour)}, []store.Order{store.ByFinish}},
		{"a kind", store.Filter{Kind: "k3"}, nil},
		{"a kind that nobody has", store.Filter{Kind: "none"}, nil},
		{"a key that nobody has", store.Filter{Key: "none"}, nil},
		{"a tag", store.Filter{Tag: "red"}, nil},
		{"a tag that nobody has, among the dead", store.Filter{Tag: "none", States: in(job.Dead)}, nil},
		{"a fingerprint that nobody has", store.Filter{Fingerprint: job.Fingerprint("none")}, nil},
		{"enqueued last month", store.Filter{CreatedAfter: now.Add(-60 * 24 * time.Hour), CreatedBefore: now.Add(-30 * 24 * time.Hour)}, nil},
		{"ended last month", store.Filter{FinishedAfter: now.Add(-60 * 24 * time.Hour), FinishedBefore: now.Add(-30 * 24 * time.Hour)}, nil},
	} {
		for _, order := range append([]store.Order{store.ByID}, one.orders...) {
			p := store.Page{Limit: 100, Order: order}
			for n := 1; n <= 3; n++ {
				more := false
				ask(fmt.Sprintf("page %d, %v: %s", n, order, one.what), store.MaxVisits, func() (string, error) {
					listed, err := s.List(t.Context(), one.f, p)
					p.After, more = listed.Next, listed.More
					return fmt.Sprintf("%d jobs %v, more: %v, stopped: %v", len(listed.Jobs), listed.Order, listed.More, listed.Stopped), err
				})
				if !more {
					break
				}
			}
		}
		ask("count: "+one.what, store.MaxVisits+4*store.MaxQueues, func() (string, error) {
			n, err := s.Count(t.Context(), one.f, 0)
			return fmt.Sprintf("%d jobs, more: %v", n.Jobs, n.More), err
		})
	}
	states := len(job.States())
	ask("Counts", states*(10*store.MaxCounted+store.MaxQueues), func() (string, error) {
		counts, err := s.Counts(t.Context())
		return fmt.Sprintf("%d counts", len(counts)), err
	})
	ask("Queues", 2*10*store.MaxCounted+store.MaxCounted+store.MaxQueues+100, func() (string, error) {
		queues, err := s.Queues(t.Context(), nil)
		return fmt.Sprintf("%d queues", len(queues)), err
	})
	ask("Queues, one of them", 3*store.MaxCounted+100, func() (string, error) {
		queues, err := s.Queues(t.Context(), []string{"q1"})
		return fmt.Sprintf("%+v", queues[0].Ready), err
	})
	var ids []job.ID
	listed, err := s.List(t.Context(), store.Filter{States: in(job.Waiting), Queue: "q1"}, store.Page{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range listed.Jobs {
		ids = append(ids, listed.Jobs[i].ID)
	}
	slices.Reverse(ids)
	ask("why of 1,000 jobs", 400_000, func() (string, error) {
		list, err := s.Situations(t.Context(), ids)
		return fmt.Sprintf("%d groups", len(job.ExplainAll(list))), err
	})
}

const (
	// manyLive writes live jobs: most wait on five queues, a thirteenth is scheduled,
	// an eleventh has failed before, two in a hundred run, one is suspended. Those of
	// queue old are older than all of the others.
	manyLive = `INSERT INTO pawl.job (namespace, priority, state, id, due, created, max_attempts, used, run, queue, kind, args, worker, claim, started, tags, wait)
		SELECT $1, 1 + n % 9, state, ` + soakID + `, t + interval '10 days' * (n % 13 / 12), t, 5, n % 11 / 10, 1,
			CASE WHEN n <= $2::int / 10 THEN 'old' WHEN n % 100000 = 77 THEN 'rare' ELSE 'q' || n % 5 END, 'k' || n % 7, '{"n": 12345}',
			CASE state WHEN 3 THEN 1 + n / 101 % 200 END, CASE state WHEN 3 THEN 1 END, CASE state WHEN 3 THEN t END,
			CASE n % 1000 WHEN 1 THEN '{red,blue}'::text[] END, CASE state WHEN 4 THEN 1 END
		FROM (
			SELECT n, now() - interval '1 hour' + n * interval '1 hour' / $2 AS t,
				CASE n % 101 WHEN 50 THEN 3 WHEN 51 THEN 3 WHEN 52 THEN 4 ELSE 2 END AS state
			FROM generate_series(1, $2::int) AS n
		) AS made`

	// manyEnded writes archived jobs of a year: one in twenty is dead, one cancelled.
	manyEnded = `INSERT INTO pawl.job_archive (namespace, priority, state, id, due, created, finished, expires, run, version, max_attempts, used, queue, kind, args, worker, started, lost, rescues, snoozes, ties, throttles)
		SELECT $1, 5, CASE n % 20 WHEN 3 THEN 6 WHEN 4 THEN 7 ELSE 5 END, ` + soakID + `, t, t, t + n % 60 * interval '1 minute', t + interval '999 days', 1, 0, 5, 0,
			CASE WHEN n % 100000 = 83 THEN 'rare' ELSE 'q' || n % 7 END, 'k' || n % 3, '{"n": 12345}', 1, t, 0, 0, 0, 0, 0
		FROM (SELECT n, now() - interval '365 days' + n * interval '364 days' / $2 AS t FROM generate_series(1, $2::int) AS n) AS made`

	// manyWorkers writes those that run the jobs.
	manyWorkers = `INSERT INTO pawl.worker (namespace, id, label, host, process, machine, start, queues, slots, offer, lost_after, started, beat)
		SELECT $1, n, 'worker ' || n, 'h', n, '', '', '{q0,q1,q2,q3,q4,old}', '{20,20,20,20,20,20}', '{}', 30000000000, now(), now()
		FROM generate_series(1, 200) AS n`
)
