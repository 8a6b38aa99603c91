//go:build soak

package postgres

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// Thirty-two clients of eight processes commit a row and a job as fast as they can, by turns as it is and with a
// notification in the transaction, ten times a second and process, as it once was.
func TestSoak_P8_CommitsOfUsersWithJobs(t *testing.T) {
	server := need.PostgresServer(t, "shared_buffers=256MB", "max_wal_size=4GB", "max_connections=300")
	const processes, clients, length = 8, 4, 2 * time.Second
	var stores [processes]*Store
	ctx, cancel := context.WithCancel(t.Context())
	var hearing sync.WaitGroup
	defer hearing.Wait()
	defer cancel()
	for i := range stores {
		s := openOn(t, with(t, server.URL(), "pool_max_conns", "8"), Options{Schema: "pawl"}, store.Settings{})
		stores[i] = s
		hearing.Go(func() { _ = listening{s}.Listen(ctx, func(store.Hint) {}) })
	}
	exec(t, stores[0], "CREATE TABLE mine (n bigint)")
	const inside, each, outside, alone = "a notification in it now and then", "one in each", "as it is", "no job"
	commits := func(how string) float64 {
		var n atomic.Int64
		var all sync.WaitGroup
		begin := time.Now()
		for i, s := range stores {
			var paces sync.Mutex
			var last time.Time
			due := func() bool {
				paces.Lock()
				defer paces.Unlock()
				if time.Since(last) < 100*time.Millisecond {
					return false
				}
				last = time.Now()
				return true
			}
			for range clients {
				all.Go(func() {
					for time.Since(begin) < length {
						err := pgx.BeginFunc(t.Context(), s.pg.Users, func(tx pgx.Tx) error {
							_, err := tx.Exec(t.Context(), "INSERT INTO mine VALUES (1)")
							if err == nil && how != alone {
								_, err = s.Within(tx).Enqueue(t.Context(), []job.Draft{someDraft(func(d *job.Draft) { d.Queue = fmt.Sprintf("q%d", i) })})
							}
							if err == nil && (how == each || how == inside && due()) {
								_, err = tx.Exec(t.Context(), "SELECT pg_notify('somewhere', 'q')")
							}
							return err
						})
						if err != nil {
							t.Error(err)
							return
						}
						n.Add(1)
					}
				})
			}
		}
		all.Wait()
		return float64(n.Load()) / time.Since(begin).Seconds()
	}
	commits(outside) // warm
	t.Logf("a row alone: %.0f commits a second; with a job and a notification in each: %.0f", commits(alone), commits(each))
	ratios(t, "commits of 32 clients with a row and a job, as it is beside one with notifications inside", 5,
		func() float64 { return commits(inside) }, func() float64 { return commits(outside) }, 0.9)
}
