package memory_test

import (
	"context"
	"fmt"

	"github.com/pawlwork/pawl/stream"
	"github.com/pawlwork/pawl/stream/memory"
)

// A member that dies has its events given to another, with the loss.
func ExampleBackend_Kill() {
	ctx := context.Background()
	b := memory.New(memory.Options{})
	orders, _ := stream.Filter{Topic: "orders.*"}.Matcher()
	b.Publish(ctx, []stream.Publication{{Event: stream.Event{ID: "1", Topic: "orders.placed", Data: []byte(`{"total":7}`)}}})

	first, _ := b.Join(ctx, stream.Membership{Group: "billing", Member: "first", Match: orders})
	first.Next(ctx, nil, stream.Want{N: 10})
	b.Kill("billing", "first")

	second, _ := b.Join(ctx, stream.Membership{Group: "billing", Member: "second", Match: orders})
	got, _ := second.Next(ctx, nil, stream.Want{N: 10})
	fmt.Println(got[0].Event.ID, string(got[0].Event.Data), "losses:", got[0].Losses)
	_, err := first.Next(ctx, nil, stream.Want{N: 10})
	fmt.Println(err)
	// Output:
	// 1 {"total":7} losses: 1
	// pawl: this member's events were given to others
}
