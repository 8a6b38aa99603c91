package batch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pawlwork/pawl/batch"
)

type Row struct{ Name string }

// Many goroutines insert one row each; the table sees a few inserts of many rows.
func ExampleNew() {
	ctx := context.Background()
	var inserted int64
	insertAll := func(_ context.Context, _ string, rows []Row) ([]int64, error) {
		ids := make([]int64, len(rows))
		for i := range rows {
			inserted++
			ids[i] = inserted
		}
		return ids, nil
	}

	b := batch.New(func(ctx context.Context, table string, rows []Row) ([]int64, error) {
		return insertAll(ctx, table, rows)
	}, batch.Options{Policy: batch.Balanced(20), MaxBatch: 500, Concurrency: 1})

	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			if _, err := b.Do(ctx, "orders", Row{Name: "a row"}); err != nil {
				fmt.Println(err)
			}
		})
	}
	group.Wait()
	fmt.Println(inserted, "rows;", b.Close(ctx))
	// Output: 50 rows; <nil>
}

// A partner's interface takes two letters per call and 20 calls a second for each customer, and not more. What is above
// that is refused at once, under the batcher's name, for its caller to try again later.
func ExamplePolicy_RejectWhenFull() {
	ctx := context.Background()
	b := batch.New(func(_ context.Context, customer string, letters []string) ([]string, error) {
		return letters, nil
	}, batch.Options{Name: "letters", Policy: batch.Duration(50 * time.Millisecond).RejectWhenFull(), MaxBatch: 2})

	sent, err := b.DoMany(ctx, "acme", []string{"offer", "invoice", "reminder"}) // answered when the time of its batch has come
	fmt.Println(sent[:2])
	fmt.Println(err)
	_ = b.Close(ctx)
	// Output:
	// [offer invoice]
	// batch: 1 of 3 items failed; item 2: letters: batch: queue full: Options.MaxBatch is 2; 2 held and 1 more asked
}

// Five round trips of 1 ms under a row lock: the lock, not the database, decides how much gets done.
func Example_rowLock() {
	ctx := context.Background()
	for _, size := range []int{1, 4} {
		milliseconds := 0
		b := batch.New(func(_ context.Context, _ string, items []int) ([]int, error) {
			milliseconds += 5 // begin, lock the row, read, write, commit: however many items there are
			return items, nil
		}, batch.Options{Policy: batch.Size(), MaxBatch: size, Concurrency: 1, MaxWaiting: 400})

		if _, err := b.DoMany(ctx, "the row", make([]int, 400)); err != nil {
			fmt.Println(err)
		}
		fmt.Printf("batches of %d: %d items a second\n", size, 400*1000/milliseconds)
		_ = b.Close(ctx)
	}
	// Output:
	// batches of 1: 200 items a second
	// batches of 4: 800 items a second
}

// Tx stands for a transaction.
type Tx struct{ statements []string }

// Each batch runs in a transaction of its own. While the transaction begins, more items may join; items are weighed so
// that no more than 1 MiB of them is held at any time.
func ExampleNewWork() {
	ctx := context.Background()
	b := batch.NewWork(batch.Work[string, *Tx, string, int]{
		Acquire: func(_ context.Context, tenant string) (*Tx, error) {
			return &Tx{statements: []string{"begin for " + tenant}}, nil
		},
		Process: func(_ context.Context, _ string, tx *Tx, notes []string) ([]int, error) {
			lengths := make([]int, len(notes))
			for i, note := range notes {
				tx.statements = append(tx.statements, "insert "+note)
				lengths[i] = len(note)
			}
			return lengths, nil
		},
		Release: func(_ string, tx *Tx) { fmt.Println(strings.Join(append(tx.statements, "commit"), "; ")) },
		Weigh:   func(note string) int { return len(note) },
	}, batch.Options{TotalBytes: 1 << 20})

	lengths, err := b.DoMany(ctx, "acme", []string{"bolt", "nut"})
	fmt.Println(lengths, err, b.Close(ctx))
	// Output:
	// begin for acme; insert bolt; insert nut; commit
	// [4 3] <nil> <nil>
}

// A process function that knows which items failed says so, item by item.
func ExampleErrors() {
	ctx := context.Background()
	b := batch.New(func(_ context.Context, _ string, amounts []int) ([]string, error) {
		receipts, errs := make([]string, len(amounts)), make(batch.Errors, len(amounts))
		for i, amount := range amounts {
			if amount < 0 {
				errs[i] = fmt.Errorf("%d is below zero", amount)
				continue
			}
			receipts[i] = fmt.Sprintf("paid %d", amount)
		}
		return receipts, errs
	}, batch.Options{})

	receipts, err := b.DoMany(ctx, "account", []int{5, -1, 7})
	fmt.Printf("%q\n%v\n", receipts, err)
	_ = b.Close(ctx)
	// Output:
	// ["paid 5" "" "paid 7"]
	// batch: 1 of 3 items failed; item 1: -1 is below zero
}

// A database tells that a statement failed, not which row was to blame. Bisecting finds the row; an error that is not
// about a row is left alone.
func ExampleOptions_bisect() {
	ctx := context.Background()
	errConstraint := errors.New("constraint violated")
	b := batch.New(func(_ context.Context, _ string, names []string) ([]int, error) {
		for _, name := range names {
			if name == "" {
				return nil, errConstraint
			}
		}
		return make([]int, len(names)), nil
	}, batch.Options{Bisect: func(err error) bool { return errors.Is(err, errConstraint) }})

	_, err := b.DoMany(ctx, "people", []string{"Ada", "", "Grace", "Edsger"})
	fmt.Println(err)
	_ = b.Close(ctx)
	// Output: batch: 1 of 4 items failed; item 1: constraint violated
}
