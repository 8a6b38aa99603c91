// Shop is a small living system on an embedded store: orders are placed in one
// transaction with the jobs they cause, cards are charged exactly once in the
// shop's own database, mails fail and are retried, thumbnails are made in
// batches. It prints what happens once a second until Ctrl-C.
//
//	go run ./examples/shop             # a new shop in a temporary file
//	go run ./examples/shop -file s.db  # a shop that goes on where it stopped
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/store/sqlite"
)

func main() {
	file := flag.String("file", "", "the shop's database; a temporary one when empty")
	length := flag.Duration("for", 0, "how long to run; until Ctrl-C when 0")
	flag.Parse()
	if err := run(*file, *length); err != nil {
		log.Fatal(err)
	}
}

func run(file string, length time.Duration) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, length)
		defer cancel()
	}
	if file == "" {
		dir, err := os.MkdirTemp("", "pawl-shop-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		file = filepath.Join(dir, "shop.db")
	}
	e, err := pawl.New(sqlite.File(file), pawl.Config{
		Queues: pawl.Queues{
			"default": {Workers: 20},
			"mail":    {Workers: 10, Backoff: pawl.Exponential(200*time.Millisecond, 5*time.Second)},
			"images":  {Workers: 50, KeepDone: pawl.KeepNone},
		},
		Routes: []pawl.Route{{Kind: "mail.*", Queue: "mail"}, {Kind: "image.*", Queue: "images"}},
		Grace:  3 * time.Second,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	defer e.Close()
	if _, err := e.DB().ExecContext(ctx, schema); err != nil {
		return err
	}
	handle(e)
	fmt.Println("a shop on", file, "- stop it with Ctrl-C")
	go sell(ctx, e)
	go report(ctx, e)
	if err := e.Run(ctx); err != nil {
		return err
	}
	return closeBooks(context.Background(), e)
}

// sell places orders, in bursts like real customers.
func sell(ctx context.Context, e *pawl.Engine) {
	for n := 0; ctx.Err() == nil; n++ {
		for range rand.IntN(20) {
			if err := placeOrder(ctx, e, 100+rand.IntN(10_000)); err != nil && ctx.Err() == nil {
				fmt.Println("order refused:", err)
			}
		}
		pause(ctx, time.Duration(50+rand.IntN(150))*time.Millisecond)
	}
}

// placeOrder writes the order and hands in everything it causes, in one commit.
func placeOrder(ctx context.Context, e *pawl.Engine, cents int) error {
	return e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
		var id int64
		if err := tx.QueryRow(ctx, "insert into orders(cents) values ($1) returning id", cents).Scan(&id); err != nil {
			return err
		}
		_, err := tx.EnqueueMany(ctx,
			pawl.NewItem(Charge{Order: id, Cents: cents}, pawl.Priority(1)),
			pawl.NewItem(Thanks{Order: id}),
			pawl.NewItem(Thumbnail{Order: id, Shelf: fmt.Sprint("shelf-", id%5)}),
			pawl.NewItem(Reminder{Order: id}, pawl.In(5*time.Second), pawl.Unique(pawl.ByKey(fmt.Sprint("minute-", id/100)))))
		return err
	})
}

// report prints one line a second.
func report(ctx context.Context, e *pawl.Engine) {
	var before uint64
	for pause(ctx, time.Second) {
		s := e.Stats()
		done := s.Finished[pawl.OutcomeSucceeded] + s.InTx
		waiting, err := e.Count(ctx, pawl.Filter{States: []pawl.State{pawl.StateWaiting}}, 10_000)
		if err != nil {
			continue
		}
		dead, _ := e.Count(ctx, pawl.Filter{States: []pawl.State{pawl.StateDead}}, 10_000)
		fmt.Printf("done %7d (%5d/s)   running %3d   waiting %5d   failed and retried %5d   panics %4d   dead %3d\n",
			done, done-before, s.Running, waiting.Jobs, s.Finished[pawl.OutcomeFailed], s.Panics, dead.Jobs)
		before = done
	}
}

// closeBooks shows that nothing was charged twice or forgotten.
func closeBooks(ctx context.Context, e *pawl.Engine) error {
	var orders, charged, twice int
	err := e.DB().QueryRowContext(ctx, `select (select count(*) from orders), (select count(*) from charges),
		(select count(*) from (select 1 from charges group by order_id having count(*) > 1))`).Scan(&orders, &charged, &twice)
	if err != nil {
		return err
	}
	left := 0
	for page := (pawl.Page{Limit: 1000}); ; {
		listed, err := e.List(ctx, pawl.Filter{Kind: Charge{}.Kind(), States: []pawl.State{pawl.StateWaiting, pawl.StateRunning}}, page)
		if err != nil {
			return err
		}
		if left += len(listed.Jobs); !listed.More {
			break
		}
		page.After = listed.Next
	}
	check, err := e.Check(ctx, pawl.CheckOptions{})
	if err != nil {
		return err
	}
	fmt.Printf("%d orders: %d charged, %d charges waiting for the next start, %d charged twice; check: %d jobs, %d faults\n",
		orders, charged, left, twice, check.Live+check.Archived, len(check.Faults))
	if charged+left != orders || twice > 0 || len(check.Faults) > 0 {
		return errors.New("the books do not add up")
	}
	return nil
}

// pause waits, and says whether to go on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
