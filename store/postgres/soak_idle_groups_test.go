//go:build soak

package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
)

// TestSoak_E10_IdleGroupsOfAThousandTopics counts what a process sends while nothing happens in a thousand topics: with ten
// groups that each read all of them, and with one group for each topic besides.
func TestSoak_E10_IdleGroupsOfAThousandTopics(t *testing.T) {
	const topics, window, most = 1_000, time.Minute, 20.0
	for _, own := range []int{0, 1_000} {
		t.Run(fmt.Sprintf("10 groups of all, %d of one", own), func(t *testing.T) {
			spaces, _, sent := newSpaces(t)
			e, err := pawl.New(spaces, pawl.Config{Namespace: "idle", Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			var items []pawl.EventItem
			for i := range topics {
				items = append(items, pawl.NewEvent(fmt.Sprintf("t.%d", i), pawl.Raw("1")))
			}
			if _, err := e.PublishMany(t.Context(), items...); err != nil {
				t.Fatal(err)
			}
			var handled atomic.Int64
			all := make(chan struct{})
			handle := func(context.Context, *pawl.Message[pawl.Raw]) error {
				if handled.Add(1) == int64(10*topics+own) {
					close(all)
				}
				return nil
			}
			for i := range 10 {
				pawl.Subscribe(e, fmt.Sprint("all-", i), "t.>", handle)
			}
			for i := range own {
				pawl.Subscribe(e, fmt.Sprint("own-", i), fmt.Sprintf("t.%d", i), handle)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- e.Run(ctx) }()
			<-all
			time.Sleep(10 * time.Second) // stimulus: acknowledgements, and the looks that follow, are over
			sent.take()
			time.Sleep(window) // stimulus: a minute passes, in which every round comes
			list := sent.take()
			rate := float64(len(list)) / window.Seconds()
			t.Logf("%d groups over %d topics send %.1f statements a second", 10+own, topics, rate)
			if rate >= most {
				t.Errorf("%.1f statements a second, want less than %.0f; mostly:\n%s", rate, most, mostly(list))
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// mostly are the five statements that were sent most often, with how often.
func mostly(list []string) string {
	times := map[string]int{}
	for _, text := range list {
		times[strings.Join(strings.Fields(text), " ")]++
	}
	var lines []string
	for text, n := range times {
		lines = append(lines, fmt.Sprintf("%6d %.150s", n, text))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(b, a) })
	return strings.Join(lines[:min(5, len(lines))], "\n")
}
