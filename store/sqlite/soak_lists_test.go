//go:build soak

package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// TestSoak_J35_FindingJobsInAFile asks everything that can be asked of a file with a
// million live and five million archived jobs. No answer takes longer than five
// seconds, most take milliseconds.
func TestSoak_J35_FindingJobsInAFile(t *testing.T) {
	opened, err := newFile(t).Open(t.Context(), store.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	s := opened.(*Store)
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	began := time.Now()
	for from, part := 0, 50_000; from < 5_000_000; from += part { // a transaction may take five seconds
		exec := func(text string) {
			if _, err := s.DB().Exec(text, s.namespace, from, part); err != nil {
				t.Fatal(err)
			}
		}
		if from < 1_000_000 {
			exec(manyLive)
		}
		exec(manyEnded)
	}
	t.Logf("the jobs were made in %v", time.Since(began).Round(time.Second))
	ask := func(what string, call func() (string, error)) {
		begin := time.Now()
		answer, err := call()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		took := time.Since(begin)
		t.Logf("%-50s %8v  %s", what, took.Round(time.Millisecond/10), answer)
		if took > 5*time.Second {
			t.Errorf("%s took %v", what, took)
		}
	}
	in := func(states ...job.State) []job.State { return states }
	for _, one := range []struct {
		what   string
		f      store.Filter
		orders []store.Order
	}{
		{"everything", store.Filter{}, nil},
		{"waiting in a long queue", store.Filter{States: in(job.Waiting), Queue: "q1"}, []store.Order{store.ByDue}},
		{"a long, old queue", store.Filter{Queue: "old"}, nil},
		{"a rare queue", store.Filter{Queue: "rare"}, nil},
		{"running", store.Filter{States: in(job.Running)}, []store.Order{store.ByWorker}},
		{"running of a worker", store.Filter{Worker: 17}, nil},
		{"suspended", store.Filter{States: in(job.Suspended)}, nil},
		{"done", store.Filter{States: in(job.Done)}, nil},
		{"dead and cancelled", store.Filter{States: in(job.Dead, job.Cancelled)}, []store.Order{store.ByFinish}},
		{"dead in a queue", store.Filter{States: in(job.Dead), Queue: "q1"}, []store.Order{store.ByFinish}},
		{"dead of a kind that nobody has", store.Filter{States: in(job.Dead), Kind: "none"}, []store.Order{store.ByFinish}},
		{"a kind that nobody has", store.Filter{Kind: "none"}, nil},
		{"a tag that nobody has", store.Filter{Tag: "none"}, nil},
		{"a fingerprint that nobody has", store.Filter{Fingerprint: job.Fingerprint("none")}, nil},
		{"ended last month", store.Filter{FinishedAfter: time.Now().Add(-60 * 24 * time.Hour), FinishedBefore: time.Now().Add(-30 * 24 * time.Hour)}, nil},
	} {
		for _, order := range append([]store.Order{store.ByID}, one.orders...) {
			p := store.Page{Limit: 100, Order: order}
			for n := 1; n <= 2; n++ {
				ask(fmt.Sprintf("page %d, %v: %s", n, order, one.what), func() (string, error) {
					listed, err := s.List(t.Context(), one.f, p)
					p.After = listed.Next
					return fmt.Sprintf("%d jobs %v, more: %v, stopped: %v", len(listed.Jobs), listed.Order, listed.More, listed.Stopped), err
				})
				if p.After == (store.Bookmark{}) {
					break
				}
			}
		}
		ask("count: "+one.what, func() (string, error) {
			n, err := s.Count(t.Context(), one.f, 0)
			return fmt.Sprintf("%d jobs, more: %v", n.Jobs, n.More), err
		})
	}
	ask("Counts", func() (string, error) {
		counts, err := s.Counts(t.Context())
		return fmt.Sprintf("%d counts", len(counts)), err
	})
	ask("Queues", func() (string, error) {
		queues, err := s.Queues(t.Context(), nil)
		return fmt.Sprintf("%d queues", len(queues)), err
	})
}

const (
	// Numbers behind ?2, ?3 of them; the last of all is of now.
	soakNumbers = `WITH RECURSIVE number (n) AS (
		SELECT ?2 + 1
		UNION ALL
		SELECT n + 1
		FROM number
		WHERE n < ?2 + ?3
	), made AS (
		SELECT n, (unixepoch() - %[1]s) * 1000000 AS t
		FROM number
	)`

	soakID = `unhex(printf('%012x7%03x8%015x', t / 1000, n % 4096, n))`
)

var (
	manyLive = fmt.Sprintf(soakNumbers, "(1000000 - n) / 300") + `
	INSERT INTO pawl_job (namespace, id, state, priority, due, run, worker, claim, used, max_attempts, created, queue, kind, wait)
	SELECT ?1, ` + soakID + `, CASE n % 101 WHEN 50 THEN 3 WHEN 51 THEN 3 WHEN 52 THEN 4 ELSE 2 END, 1 + n % 9,
		t + 864000000000 * (n % 13 / 12), 1, CASE WHEN n % 101 IN (50, 51) THEN 1 + n / 101 % 200 END, CASE WHEN n % 101 IN (50, 51) THEN 1 END,
		n % 11 / 10, 5, t, CASE WHEN n <= 100000 THEN 'old' WHEN n % 100000 = 77 THEN 'rare' ELSE 'q' || (n % 5) END, 'k' || (n % 7),
		CASE n % 101 WHEN 52 THEN 1 END
	FROM made`

	manyEnded = fmt.Sprintf(soakNumbers, "(5000000 - n) * 6") + `
	INSERT INTO pawl_job_archive (namespace, id, state, priority, due, run, used, max_attempts, lost, rescues, snoozes, ties, throttles, logs, version, created, finished, expires, queue, kind)
	SELECT ?1, ` + soakID + `, CASE n % 20 WHEN 3 THEN 6 WHEN 4 THEN 7 ELSE 5 END, 5, t, 1, 0, 5, 0, 0, 0, 0, 0, 0, 0, t, t + n % 60 * 60000000, t + 86400000000000,
		CASE WHEN n % 100000 = 83 THEN 'rare' ELSE 'q' || (n % 7) END, 'k' || (n % 3)
	FROM made`
)
