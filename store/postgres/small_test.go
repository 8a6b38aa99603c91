package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/postgres"
)

// follows does its work in one transaction with the user's rows.
type follows struct{ N int }

func (follows) Kind() string { return "follows" }

type endless struct{}

func (endless) Kind() string { return "endless" }

// smallest are the two ways to have as few connections as there may be. named is
// how the sessions of the store call themselves.
func smallest(t *testing.T) map[string]func(db need.Database, named string) store.Opener {
	two := func(db need.Database, named string) *pgxpool.Pool {
		config, err := pgxpool.ParseConfig(db.URL)
		if err != nil {
			t.Fatal(err)
		}
		config.MaxConns = 2
		config.ConnConfig.RuntimeParams["application_name"] = named
		p, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p
	}
	return map[string]func(need.Database, string) store.Opener{
		"two connections": func(db need.Database, named string) store.Opener {
			return postgres.Pool(two(db, named), postgres.Options{Schema: db.Schema, Connections: 2})
		},
		"only the user's pool": func(db need.Database, named string) store.Opener {
			return postgres.Pool(two(db, named), postgres.Options{Schema: db.Schema, OnlyPool: true})
		},
	}
}

// The smallest number of connections carries everything at once: senders, unique
// keys (one of them held by somebody's transaction), handlers with transactions of
// their own, a cancel, lists, a stop. Nothing waits for a second connection while
// it holds the first, and there are no more of them than was said.
func TestP10_TheSmallestPoolsCarryAWholeLoad(t *testing.T) {
	for name, open := range smallest(t) {
		t.Run(name, func(t *testing.T) {
			db := need.Postgres(t)
			ctx, others := t.Context(), pool(t, db)
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			named := "small " + db.Schema
			e, err := pawl.New(open(db, named), pawl.Config{Queues: pawl.Queues{"default": {Workers: 8}}})
			must(err)
			if _, ok := e.Store().(store.Listener); ok {
				t.Error("it says that it listens, which takes a connection")
			}
			_, err = others.Exec(ctx, "CREATE TABLE "+db.Schema+".effect (n integer)")
			must(err)

			ran := make(chan string, 10_000)
			began, stopped := make(chan struct{}), make(chan struct{})
			pawl.Handle(e, func(context.Context, *pawl.Job[ordinary]) error { ran <- "ordinary"; return nil })
			pawl.Handle(e, func(ctx context.Context, j *pawl.Job[follows]) error {
				err := e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
					if _, err := tx.Exec(ctx, "INSERT INTO "+db.Schema+".effect VALUES ($1)", j.Args.N); err != nil {
						return err
					}
					if _, err := tx.Enqueue(ctx, ordinary{}); err != nil {
						return err
					}
					return tx.Finish(j)
				})
				if err == nil {
					ran <- "follows"
				}
				return err
			})
			pawl.Handle(e, func(ctx context.Context, _ *pawl.Job[endless]) error {
				close(began)
				<-ctx.Done()
				close(stopped)
				return ctx.Err()
			})
			working, stop := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { ended <- e.Run(working) }()

			// Somebody's transaction holds a key, and a sender waits for it all the time.
			stuck, err := others.Begin(ctx)
			must(err)
			held, err := postgres.Within(e, stuck).Enqueue(ctx, ordinary{}, pawl.Unique(pawl.ByKey("held")))
			must(err)
			waits := make(chan pawl.Receipt, 1)
			go func() {
				r, err := e.Enqueue(ctx, ordinary{}, pawl.Unique(pawl.ByKey("held")))
				if err != nil {
					t.Errorf("enqueue of the held key: %v", err)
				}
				waits <- r
			}()

			const senders, each = 8, 30
			var accepted, effects atomic.Int64
			var sending sync.WaitGroup
			for s := range senders {
				sending.Go(func() {
					for i := range each {
						var r pawl.Receipt
						var err error
						switch i % 3 {
						case 0:
							r, err = e.Enqueue(ctx, ordinary{})
						case 1:
							r, err = e.Enqueue(ctx, ordinary{}, pawl.Unique(pawl.ByKey(fmt.Sprint("key ", i%5))))
						case 2:
							r, err = e.Enqueue(ctx, follows{s*each + i})
							accepted.Add(1) // and one that follows
							effects.Add(1)
						}
						if err != nil {
							t.Errorf("enqueue: %v", err)
						}
						if !r.Duplicate {
							accepted.Add(1)
						}
						if _, err := e.List(ctx, pawl.Filter{}, pawl.Page{Limit: 10}); err != nil {
							t.Errorf("list: %v", err)
						}
					}
				})
			}
			long, err := e.Enqueue(ctx, endless{})
			must(err)
			<-began
			change, err := e.Cancel(ctx, long.ID)
			must(err)
			if change != pawl.Asked {
				t.Errorf("cancel: %v", change)
			}
			<-stopped
			sending.Wait()
			for range accepted.Load() {
				<-ran
			}
			select {
			case r := <-waits:
				t.Errorf("answered %+v while the key is held", r)
			default:
			}
			must(stuck.Commit(ctx))
			<-ran
			if r := <-waits; !r.Duplicate {
				<-ran // the other had ended already
			} else if r.ID != held.ID {
				t.Errorf("answered %+v; want a duplicate of %s", r, held.ID)
			}

			var sessions int
			must(others.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", named).Scan(&sessions))
			if most := map[bool]int{true: 2, false: 4}[strings.HasPrefix(name, "only")]; sessions > most { // the user's pool has two in both
				t.Errorf("%d sessions, want at most %d", sessions, most)
			}
			stop()
			must(<-ended)
			j, err := e.Get(ctx, long.ID)
			must(err)
			if j.State != job.Cancelled {
				t.Errorf("the cancelled job is %s", j.State)
			}
			report, err := e.Check(ctx, pawl.CheckOptions{})
			must(err)
			if len(report.Faults) > 0 || report.Live > 0 {
				t.Errorf("check: %+v", report)
			}
			var rows int64
			must(others.QueryRow(ctx, "SELECT count(*) FROM "+db.Schema+".effect").Scan(&rows))
			if rows != effects.Load() {
				t.Errorf("%d effects, want %d", rows, effects.Load())
			}
			must(e.Close())
		})
	}
}
