package pawltest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres"
	"github.com/pawlwork/pawl/store/sqlite"
)

// pool is a pool of a Postgres of the test's own.
func pool(t *testing.T) (*pgxpool.Pool, string) {
	t.Helper()
	db := need.Postgres(t)
	p, err := pgxpool.New(t.Context(), db.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, db.Schema
}

// onEachStore runs a test on SQLite in memory, in a file, and on Postgres.
func onEachStore(t *testing.T, test func(t *testing.T, opener store.Opener)) {
	t.Run("sqlite memory", func(t *testing.T) { test(t, sqlite.Memory()) })
	t.Run("sqlite file", func(t *testing.T) { test(t, sqlite.File(filepath.Join(t.TempDir(), "work.db"))) })
	t.Run("postgres", func(t *testing.T) {
		p, schema := pool(t)
		test(t, postgres.Pool(p, postgres.Options{Schema: schema}))
	})
}

// The connection stays open between two jobs, which virtual time cannot pass by, and is used for both.
func TestU10_RealRunsHandlersThatKeepConnectionsAlive(t *testing.T) {
	var connections atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	pawltest.Real(t, sqlite.Memory(), func(e *pawl.Engine) { pawl.Handle(e, fetcher(client)) }, func(t *testing.T, e *pawltest.Engine) {
		for range 2 {
			r := e.Enqueue(fetch{s.URL})
			e.RunUntilIdle()
			e.RequireState(r.ID, job.Done)
		}
	})
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections, want one that was kept alive", n)
	}
}

type note struct{ Text string }

func (note) Kind() string { return "note" }

func TestU10_RealRunsHandlersWithAPool(t *testing.T) {
	p, schema := pool(t)
	if _, err := p.Exec(t.Context(), "create table note (id text primary key, text text)"); err != nil {
		t.Fatal(err)
	}
	pawltest.Real(t, postgres.Pool(p, postgres.Options{Schema: schema}), func(e *pawl.Engine) {
		pawl.Handle(e, func(ctx context.Context, j *pawl.Job[note]) error {
			_, err := p.Exec(ctx, "insert into note values ($1, $2)", j.ID.String(), j.Args.Text)
			return err
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		for i := range 20 {
			e.Enqueue(note{fmt.Sprint(i)})
		}
		e.RunUntilIdle()
		notes := 0
		if err := p.QueryRow(t.Context(), "select count(*) from note").Scan(&notes); err != nil {
			t.Fatal(err)
		}
		if notes != 20 {
			t.Errorf("%d notes, want 20", notes)
		}
	})
}

type branch struct {
	Depth int `json:"depth"`
}

func (branch) Kind() string { return "branch" }

// Each job leaves more work behind, in a transaction or not, and some fail first and are due again at once: idle is only
// when all of it is done.
func TestU10_RealIsIdleWhenNothingIsLeft(t *testing.T) {
	onEachStore(t, func(t *testing.T, opener store.Opener) {
		register := func(e *pawl.Engine) {
			pawl.Handle(e, func(ctx context.Context, j *pawl.Job[branch]) error {
				if j.Args.Depth == 0 {
					return nil
				}
				if j.Args.Depth%2 == 1 && j.Attempt == 1 {
					return errors.New("not yet")
				}
				next := branch{j.Args.Depth - 1}
				if _, err := e.Enqueue(ctx, next); err != nil {
					return err
				}
				return e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
					if _, err := tx.Enqueue(ctx, next); err != nil {
						return err
					}
					return tx.Finish(j)
				})
			}, pawl.Backoff(pawl.Constant(0)))
		}
		pawltest.Real(t, opener, register, func(t *testing.T, e *pawltest.Engine) {
			const depth = 5
			for range 3 {
				e.Enqueue(branch{depth})
				e.RunUntilIdle()
				for _, j := range e.Enqueued("branch") {
					if j.State != job.Done {
						t.Fatalf("a job of depth %s is %s after RunUntilIdle", j.Args, j.State)
					}
				}
			}
			if n := len(e.Enqueued("branch")); n != 3*(1<<(depth+1)-1) {
				t.Errorf("%d jobs, want %d", n, 3*(1<<(depth+1)-1))
			}
		})
	})
}

func TestU10_RealLeavesWhatNobodyTakes(t *testing.T) {
	onEachStore(t, func(t *testing.T, opener store.Opener) {
		var ran atomic.Int64
		pawltest.Real(t, opener, func(e *pawl.Engine) {
			pawl.Handle(e, func(context.Context, *pawl.Job[welcome]) error { ran.Add(1); return nil })
		}, func(t *testing.T, e *pawltest.Engine) {
			left := map[string]job.ID{
				"of an unserved queue": e.Enqueue(welcome{1}, pawl.Queue("elsewhere")).ID,
				"of an unknown kind":   e.Enqueue(ship{1}).ID,
				"due later":            e.Enqueue(welcome{2}, pawl.In(time.Hour)).ID,
				"of a paused queue":    e.Enqueue(welcome{3}, pawl.Queue("paused")).ID,
			}
			if err := e.Queue("paused").Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			done := e.Enqueue(welcome{4})
			e.RunUntilIdle()
			e.RequireState(done.ID, job.Done)
			for what, id := range left {
				if j := e.RequireState(id, job.Waiting); j.Run != 0 {
					t.Errorf("the job %s has run", what)
				}
			}
			if n := ran.Load(); n != 1 {
				t.Errorf("%d jobs ran, want 1", n)
			}
		}, pawltest.Config(func(c *pawl.Config) {
			c.Queues = pawl.Queues{"default": {Workers: 2}, "paused": {Workers: 2}}
		}))
	})
}

func TestU10_RealAdvanceRunsWhatFallsDueMeanwhile(t *testing.T) {
	pawltest.Real(t, sqlite.Memory(), func(e *pawl.Engine) {
		pawl.Handle(e, func(context.Context, *pawl.Job[welcome]) error { return nil })
	}, func(t *testing.T, e *pawltest.Engine) {
		soon := e.Enqueue(welcome{1}, pawl.In(50*time.Millisecond))
		later := e.Enqueue(welcome{2}, pawl.In(time.Hour))
		e.Advance(100 * time.Millisecond)
		e.RequireState(soon.ID, job.Done)
		e.RequireState(later.ID, job.Waiting)
	})
}

// Tests on one database do not see each other's jobs.
func TestU10_RealHasANamespaceOfItsOwn(t *testing.T) {
	file := sqlite.File(filepath.Join(t.TempDir(), "work.db"))
	for range 2 {
		pawltest.Real(t, file, nil, func(t *testing.T, e *pawltest.Engine) {
			e.RequireNotEnqueued(ship{7})
			e.Enqueue(ship{7})
		})
	}
	shared := pawltest.Config(func(c *pawl.Config) { c.Namespace = "shared" })
	pawltest.Real(t, file, nil, func(_ *testing.T, e *pawltest.Engine) { e.Enqueue(ship{8}) }, shared)
	pawltest.Real(t, file, nil, func(_ *testing.T, e *pawltest.Engine) { e.RequireEnqueued(ship{8}) }, shared)
}

// A handler may talk to the world in virtual time as long as it leaves no connection open.
func TestU10_VirtualTimeStandsConnectionsThatAreClosed(t *testing.T) {
	s := server(t)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	pawltest.Run(t, func(e *pawl.Engine) { pawl.Handle(e, fetcher(client)) }, func(t *testing.T, e *pawltest.Engine) {
		now := e.Enqueue(fetch{s.URL})
		later := e.Enqueue(fetch{s.URL}, pawl.In(time.Hour))
		e.Advance(2 * time.Hour)
		e.RequireState(now.ID, job.Done)
		e.RequireState(later.ID, job.Done)
	})
}

// A handler that computes for longer than the limit is no standstill.
func TestU10_ComputingIsNoStandstill(t *testing.T) {
	pawltest.Run(t, func(e *pawl.Engine) {
		pawl.Handle(e, func(ctx context.Context, _ *pawl.Job[welcome]) error {
			x := 1
			for range 400_000_000 { // stimulus: about 0.2 s, many times the limit
				x = x*31 + 7
			}
			if x == 0 {
				return errors.New("zero")
			}
			return nil
		})
	}, func(t *testing.T, e *pawltest.Engine) {
		r := e.Enqueue(welcome{1})
		e.RunUntilIdle()
		e.RequireState(r.ID, job.Done)
	}, pawltest.Standstill(50*time.Millisecond))
}
