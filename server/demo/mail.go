package demo

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlwork/pawl"
)

// Receipt is a mail about an order.
type Receipt struct {
	Number   int64  `json:"number"`
	Customer string `json:"customer"`
}

// Kind is "mail.receipt".
func (Receipt) Kind() string { return "mail.receipt" }

// Defaults puts it into the queue of mails.
func (Receipt) Defaults() []pawl.EnqueueOption {
	return []pawl.EnqueueOption{pawl.Queue("mail"), pawl.Attempts(8)}
}

// Reminder is a mail about what a customer left in the cart.
type Reminder struct {
	Customer string `json:"customer"`
}

// Kind is "mail.reminder".
func (Reminder) Kind() string { return "mail.reminder" }

// Defaults puts it into the queue of mails, behind receipts.
func (Reminder) Defaults() []pawl.EnqueueOption {
	return []pawl.EnqueueOption{pawl.Queue("mail"), pawl.Priority(7), pawl.Attempts(8)}
}

// refusals is how often the relay refuses a receipt before it takes it: one in twelve, one in
// 24 twice.
func (r Receipt) refusals() int {
	switch {
	case r.Number%24 == 5:
		return 2
	case r.Number%12 == 5:
		return 1
	}
	return 0
}

func (s *shop) receipt(ctx context.Context, j *pawl.Job[Receipt]) error {
	path := "/mail/" + j.Args.Customer
	if j.Attempt <= j.Args.refusals() {
		path += "?greylisted=yes"
	}
	status, _, err := s.client.ask(ctx, http.MethodPost, s.outside+path)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("mail relay: %d %s: mailbox busy, try again later", status, http.StatusText(status))
	}
	return nil
}

func (s *shop) remind(ctx context.Context, _ *pawl.Job[Reminder]) error {
	if !pause(ctx, 30*time.Millisecond) {
		return context.Cause(ctx)
	}
	return nil
}
