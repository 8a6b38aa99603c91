package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/pawlwork/pawl"
)

const schema = `
create table if not exists orders(id integer primary key, cents integer not null);
create table if not exists charges(order_id integer not null, cents integer not null);`

// Charge takes the money.
type Charge struct {
	Order int64 `json:"order"`
	Cents int   `json:"cents"`
}

// Kind names the work.
func (Charge) Kind() string { return "charge" }

// Thanks is a mail to the customer.
type Thanks struct {
	Order int64 `json:"order"`
}

// Kind names the work.
func (Thanks) Kind() string { return "mail.thanks" }

// Reminder is a mail that many orders ask for and one sends.
type Reminder struct {
	Order int64 `json:"order"`
}

// Kind names the work.
func (Reminder) Kind() string { return "mail.reminder" }

// Thumbnail is work that is cheaper together.
type Thumbnail struct {
	Order int64  `json:"order"`
	Shelf string `json:"shelf"`
}

// Kind names the work.
func (Thumbnail) Kind() string { return "image.thumbnail" }

func handle(e *pawl.Engine) {
	// The charge and the end of its job are one commit: exactly once in this database.
	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Charge]) error {
		return e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
			if _, err := tx.Exec(ctx, "insert into charges values ($1, $2)", j.Args.Order, j.Args.Cents); err != nil {
				return err
			}
			if rand.IntN(50) == 0 {
				return errors.New("the bank hung up")
			}
			return tx.Finish(j)
		})
	}, pawl.Timeout(10*time.Second), pawl.Backoff(pawl.Constant(300*time.Millisecond)))

	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Thanks]) error {
		pause(ctx, time.Duration(rand.IntN(20))*time.Millisecond)
		switch n := rand.IntN(100); {
		case n < 10:
			return errors.New("mail server: try again later")
		case n < 11:
			panic("template: nil pointer")
		case n < 12:
			return pawl.Dead(errors.New("no such mailbox"))
		}
		return ctx.Err()
	})

	pawl.Handle(e, func(ctx context.Context, j *pawl.Job[Reminder]) error {
		if time.Since(j.Created) < 6*time.Second {
			return pawl.Snooze(time.Second)
		}
		return nil
	})

	pawl.HandleBatch(e, func(ctx context.Context, jobs []*pawl.Job[Thumbnail]) []error {
		pause(ctx, 30*time.Millisecond) // one trip for all of them
		return nil
	}, pawl.Batch[Thumbnail]{Size: 25, Key: func(a Thumbnail) string { return a.Shelf }})
}
