//go:build fault || soak

package fault

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/internal/need/pgserver"
	"github.com/pawlwork/pawl/job"
	_ "github.com/pawlwork/pawl/store/postgres" // their schemes
	_ "github.com/pawlwork/pawl/store/sqlite"
)

// ground is the database of one test, as the test itself sees it.
type ground struct {
	*pawl.Engine
	t       *testing.T
	address string
}

// onSQLite makes an empty file.
func onSQLite(t *testing.T) *ground {
	return openGround(t, "sqlite:"+filepath.Join(t.TempDir(), "work.db"))
}

// onPostgres makes a schema on the shared server.
func onPostgres(t *testing.T) *ground {
	db := need.Postgres(t)
	return openGround(t, db.URL+"&pawl_schema="+db.Schema)
}

// onServer makes a Postgres of the test's own, to be broken.
func onServer(t *testing.T) (*ground, *pgserver.Server) {
	server := need.PostgresServer(t)
	return openGround(t, server.URL()+"&pawl_schema=pawl"), server
}

// openGround opens an empty database and makes the user's table in it. Whatever the test did to it, its rules must
// hold at the end (P6).
func openGround(t *testing.T, address string) *ground {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	c := config()
	c.Logger = slog.New(slog.NewTextHandler(log, nil))
	e, err := pawl.Open(t.Context(), address, c)
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{Engine: e, t: t, address: address}
	t.Cleanup(func() {
		if strings.HasPrefix(address, "postgres:") {
			g.expectNoDeadlocks()
		}
		report, err := e.Check(context.Background(), pawl.CheckOptions{})
		if err != nil {
			t.Error("check:", err)
		}
		for _, fault := range report.Faults {
			t.Errorf("check: %+v", fault)
		}
		if err := errors.Join(e.Close(), log.Close()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("log of the test's own engine:\n%s", lastLines(log.Name()))
		}
	})
	err = e.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
		_, err := tx.Exec(ctx, "create table effect (n bigint, run bigint)")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// watch runs the test's own engine, which knows no kind of job that there is and so runs none. It lives throughout, and
// so may declare others lost. The function that is returned stops it.
func (g *ground) watch() (stop func()) {
	var none pawl.Handlers
	pawl.HandleRaw(&none, "none", func(context.Context, *pawl.Job[pawl.Raw]) error { return nil })
	g.Register(&none)
	ctx, cancel := context.WithCancel(g.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	return func() {
		g.t.Helper()
		cancel()
		if err := <-ended; err != nil {
			g.t.Error(err)
		}
	}
}

// live counts the jobs that have not ended.
func (g *ground) live() int {
	g.t.Helper()
	n, err := g.Count(g.t.Context(), pawl.Filter{States: []job.State{job.Waiting, job.Running, job.Suspended}}, 0)
	if err != nil {
		g.t.Fatal(err)
	}
	return n.Jobs
}

// drained waits until every job has ended. There is no event for it that covers what a killed process committed and
// could no longer say, so the store is asked.
func (g *ground) drained(limit time.Duration) {
	g.t.Helper()
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for late := time.After(limit); g.live() > 0; {
		select {
		case <-look.C:
		case <-late:
			g.t.Fatalf("%d jobs have not ended after %v", g.live(), limit)
		}
	}
}

// ended waits until so many jobs are done.
func (g *ground) ended(jobs int, limit time.Duration) {
	g.t.Helper()
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for late := time.After(limit); ; {
		done, err := g.Count(g.t.Context(), pawl.Filter{States: []job.State{job.Done}}, 0)
		if err != nil {
			g.t.Fatal(err)
		}
		if done.Jobs >= jobs {
			return
		}
		select {
		case <-look.C:
		case <-late:
			g.t.Fatalf("%d jobs are done after %v, want %d", done.Jobs, limit, jobs)
		}
	}
}

// rows are the numbers in the user's table, in order.
func (g *ground) rows() (numbers []int) {
	g.t.Helper()
	err := g.Tx(g.t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
		rows, err := tx.Query(ctx, "select n from effect order by n")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var n int
			if err := rows.Scan(&n); err != nil {
				return err
			}
			numbers = append(numbers, n)
		}
		return rows.Err()
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return numbers
}

// jobs are all jobs, by pages.
func (g *ground) jobs() (all []job.Job) {
	g.t.Helper()
	for page := (pawl.Page{Limit: 1000}); ; {
		listed, err := g.List(g.t.Context(), pawl.Filter{}, page)
		if err != nil {
			g.t.Fatal(err)
		}
		all = append(all, listed.Jobs...)
		if !listed.More {
			return all
		}
		page.After = listed.Next
	}
}

// expectOnce demands that exactly these numbers were accepted, that their jobs are all done, and that each has left one
// row, no more.
func (g *ground) expectOnce(numbers []int) {
	g.t.Helper()
	times := make(map[int]int, len(numbers))
	jobs := g.jobs()
	var undone int
	for _, j := range jobs {
		var args struct{ N int }
		if err := json.Unmarshal(j.Args, &args); err != nil {
			g.t.Fatal(err)
		}
		if _, twice := times[args.N]; twice {
			g.t.Errorf("number %d has two jobs", args.N)
		}
		times[args.N] = 0
		if j.State != job.Done {
			if undone++; undone <= 10 {
				g.t.Errorf("job %s %s is %s after %d runs (%d lost): %s %v", j.ID, j.Args, j.State, j.Run, j.Lost, j.Reason, j.Failures)
			}
		}
	}
	for _, n := range g.rows() {
		times[n]++
	}
	for _, n := range numbers {
		if rows, ok := times[n]; !ok || rows != 1 {
			g.t.Errorf("number %d was accepted: it has a job: %t, and %d rows, want one", n, ok, rows)
			break
		}
	}
	if len(times) != len(numbers) {
		g.t.Errorf("%d numbers have a job or a row, want the %d that were accepted", len(times), len(numbers))
	}
}

// blamed counts the attempts that were burned and the runs that were lost.
func (g *ground) blamed() (burned, lost int) {
	g.t.Helper()
	for _, j := range g.jobs() {
		burned += j.Used
		lost += j.Lost
	}
	return burned, lost
}

// expectNoDeadlocks demands that the database has met none, of any test, since its server was started.
func (g *ground) expectNoDeadlocks() {
	g.t.Helper()
	var deadlocks int
	err := g.Tx(context.Background(), func(ctx context.Context, tx *pawl.Tx) error {
		return tx.QueryRow(ctx, "select deadlocks from pg_stat_database where datname = current_database()").Scan(&deadlocks)
	})
	if err != nil {
		g.t.Error(err)
	}
	if deadlocks != 0 {
		g.t.Errorf("%d deadlocks, want none", deadlocks)
	}
}

// enqueue hands in n Effect jobs, numbered from one on, and returns their numbers.
func (g *ground) enqueue(from, n int) (numbers []int) {
	g.t.Helper()
	for len(numbers) < n {
		var items []pawl.Item
		for range min(500, n-len(numbers)) {
			items = append(items, pawl.NewItem(Effect{from + len(numbers)}))
			numbers = append(numbers, from+len(numbers))
		}
		if _, err := g.EnqueueMany(g.t.Context(), items...); err != nil {
			g.t.Fatal(err)
		}
	}
	return numbers
}
