package pawl_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/pawlwork/pawl"
)

// Visit is a row to be counted.
type Visit struct{ Page string }

func (Visit) Kind() string { return "visit" }

// Each job of a batch has an end of its own.
func ExampleHandleBatch_errors() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e := newEngine()
	defer e.Close()

	pawl.HandleBatch(e, func(ctx context.Context, jobs []*pawl.Job[Email]) []error {
		defer stop()
		errs := make([]error, len(jobs)) // one for each job, in order; nil is done
		for i, j := range jobs {
			if j.Args.To == "" {
				errs[i] = pawl.Dead(fmt.Errorf("no address"))
			}
		}
		return errs
	}, pawl.Batch[Email]{
		Size: 3,
		Key:  func(a Email) string { return a.Domain },
		Wait: time.Minute,
	})

	rs, err := e.EnqueueMany(ctx,
		pawl.NewItem(Email{"ann", "example.com"}),
		pawl.NewItem(Email{"", "example.com"}),
		pawl.NewItem(Email{"eve", "example.com"}))
	if err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	for _, r := range rs {
		j, _ := e.Get(context.Background(), r.ID)
		fmt.Println(j.State)
	}
	// Output:
	// done
	// dead
	// done
}

// A whole batch in one transaction: its rows and the ends of its jobs.
func ExampleHandleBatch_transaction() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e := newEngine()
	defer e.Close()
	if _, err := e.DB().ExecContext(ctx, "create table visit(page text)"); err != nil {
		log.Fatal(err)
	}

	pawl.HandleBatch(e, func(ctx context.Context, jobs []*pawl.Job[Visit]) []error {
		defer stop()
		err := e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
			for _, j := range jobs {
				if _, err := tx.Exec(ctx, "insert into visit values ($1)", j.Args.Page); err != nil {
					return err
				}
				if err := tx.Finish(j); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil { // nothing was written for any of them
			return slices.Repeat([]error{err}, len(jobs))
		}
		return nil
	}, pawl.Batch[Visit]{Size: 3, Wait: time.Minute})

	_, err := e.EnqueueMany(ctx, pawl.NewItem(Visit{"/"}), pawl.NewItem(Visit{"/a"}), pawl.NewItem(Visit{"/b"}))
	if err != nil {
		log.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		log.Fatal(err)
	}
	var visits int
	if err := e.DB().QueryRow("select count(*) from visit").Scan(&visits); err != nil {
		log.Fatal(err)
	}
	done, _ := e.Count(context.Background(), pawl.Filter{States: []pawl.State{pawl.StateDone}}, 0)
	fmt.Println(visits, "visits,", done.Jobs, "jobs done")
	// Output: 3 visits, 3 jobs done
}
