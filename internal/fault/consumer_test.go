//go:build fault || soak

package fault

import (
	"context"
	"os"
	"strconv"
	"syscall"

	"github.com/pawlwork/pawl"
)

// parcel is an event of these tests. Poison ends the process that handles it.
type parcel struct {
	N      int
	Poison bool
}

// deliveriesVariable is after how many deliveries a parcel is given up.
const deliveriesVariable = "PAWL_FAULT_DELIVERIES"

// inFlight is how many events a member works on at once.
const inFlight = 8

// consume is two groups on one topic: "once" stores an effect and its acknowledgement in one
// transaction, "line" notes in which order each key's events come, and acknowledges afterwards.
func consume(ctx context.Context, e *pawl.Engine) error {
	deliveries, err := strconv.Atoi(os.Getenv(deliveriesVariable))
	if err != nil {
		return err
	}
	note := func(ctx context.Context, text string, n int, and func(*pawl.Tx) error) error {
		return e.Tx(ctx, func(ctx context.Context, tx *pawl.Tx) error {
			if _, err := tx.Exec(ctx, text, n); err != nil {
				return err
			}
			return and(tx)
		})
	}
	pawl.Subscribe(e, "once", "parcels", func(ctx context.Context, m *pawl.Message[parcel]) error {
		if m.Data.Poison {
			say("poisoned", m.Data.N)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		err := note(ctx, "insert into effect (n, run) values ($1, 0)", m.Data.N, func(tx *pawl.Tx) error { return tx.Ack(m) })
		if err == nil {
			say("done", m.Data.N)
		}
		return err
	}, pawl.InFlight(inFlight), pawl.Deliveries(deliveries), pawl.DeadLetter("dead"))
	pawl.Subscribe(e, "line", "parcels", func(ctx context.Context, m *pawl.Message[parcel]) error {
		return note(ctx, "insert into arrival (n) values ($1)", m.Data.N, func(*pawl.Tx) error { return nil })
	}, pawl.Ordered(), pawl.InFlight(inFlight), pawl.Deliveries(1_000))
	return e.Run(ctx)
}
