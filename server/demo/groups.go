package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlwork/pawl"
)

// Groups of the company: one is quick and stumbles over an order now and then, one is slow.
const (
	groupLoyalty   = "loyalty"
	groupWarehouse = "warehouse"
)

// subscribe makes the workers members of the groups.
func (s *shop) subscribe(e *pawl.Engine) {
	pawl.Subscribe(e, groupLoyalty, topicPlaced, s.points, pawl.InFlight(8), pawl.Deliveries(3), pawl.Backoff(pawl.Constant(2*time.Second)))
	pawl.Subscribe(e, groupWarehouse, orders.Topic, s.pick, pawl.Ordered(), pawl.InFlight(1), pawl.Fetch(4))
}

// points gives a customer points for an order. The first version knows nothing of vouchers: such an
// order fails three times and is parked.
func (s *shop) points(ctx context.Context, m *pawl.Message[OrderPlaced]) error {
	if !pause(ctx, 5*time.Millisecond) {
		return context.Cause(ctx)
	}
	if m.Data.Voucher != "" && s.version == versionFirst {
		return fmt.Errorf("points of order %d: there is no rule for voucher %q", m.Data.Number, m.Data.Voucher)
	}
	return nil
}

// The warehouse picks slowOf of every pickOf events by hand, and the others by machine: it falls
// behind, catches up, and falls behind again.
const (
	slowOf = 100
	pickOf = 300
)

func (s *shop) pick(ctx context.Context, _ *pawl.Message[pawl.Raw]) error {
	takes := 5 * time.Millisecond
	if s.picked.Add(1)%pickOf <= slowOf {
		takes = 600 * time.Millisecond
	}
	if !pause(ctx, takes) {
		return context.Cause(ctx)
	}
	return nil
}
