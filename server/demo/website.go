package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlwork/pawl"
)

// beat is how often the website sends what has come in.
const beat = 250 * time.Millisecond

// website enqueues what customers, suppliers and tenants do, at a steady pace. What could pile up is
// unique, so that what waits is bounded also where nobody works on it.
func (c *Company) website(ctx context.Context) {
	w := &website{orders: c.config.Orders}
	var told error
	for n := int64(0); ctx.Err() == nil; n++ {
		var items []pawl.Item
		var orders []Order
		w.next(n, func(a pawl.Args, opts ...pawl.EnqueueOption) {
			items = append(items, pawl.NewItem(a, opts...))
			if c, ok := a.(Charge); ok {
				orders = append(orders, c.Order)
			}
		})
		_, err := c.config.Front.EnqueueMany(ctx, items...)
		if err == nil {
			err = c.tell(ctx, orders)
		}
		if err != nil && ctx.Err() == nil && told == nil {
			c.config.Logger.Warn("the website could not enqueue", "error", err) // once, until it goes on
		}
		if told = err; errors.Is(err, pawl.ErrClosed) {
			return
		}
		pause(ctx, beat)
	}
}

// website makes what comes in.
type website struct {
	orders int   // a second
	sold   int64 // so far
	due    int64 // quarters of an order that are left over
	lines  int64
}

// next adds what has come in at the n-th beat, four a second.
func (w *website) next(n int64, add func(pawl.Args, ...pawl.EnqueueOption)) {
	for w.due += int64(w.orders); w.due >= 4; w.due -= 4 {
		w.sold++
		add(Charge{newOrder(w.sold)}, pawl.Tags("web"))
	}
	second, at := n/4, n%4
	switch at {
	case 0:
		add(newThumb(second))
		if second%2 == 0 {
			add(Push{fmt.Sprintf("customer-%d", second/2%200)})
			add(Feed{"globex", fmt.Sprintf("stock-%d.csv", second/2%50)})
		}
	case 1:
		if second%3 == 0 { // more at once than the service for places allows
			for i := range int64(12) {
				add(Locate{fmt.Sprintf("%05d", (second*4+i)*137%60+10_115)})
			}
		}
	case 2:
		w.tenants(second, add)
	case 3:
		add(Reminder{fmt.Sprintf("customer-%d", second%120)}, pawl.In(90*time.Second), pawl.Unique())
		if second%20 == 2 {
			add(Export{smallTenants[second/20%3], 12_000})
		}
		if second%180 == 6 {
			add(poison)
		}
	}
}

// tenants is what they want done: the large one much at once, the small ones a little.
func (w *website) tenants(second int64, add func(pawl.Args, ...pawl.EnqueueOption)) {
	if second%4 == 0 {
		for part := range 16 {
			add(Sync{largeTenant, part})
		}
	}
	small := smallTenants[second%3]
	add(Sync{small, int(second / 3 % 10)})
	for _, tenant := range []string{largeTenant, small} {
		w.lines++
		add(Post{tenant, w.lines})
	}
}
