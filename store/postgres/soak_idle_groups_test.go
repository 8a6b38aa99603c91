//go:build soak

package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/stream"
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
			handle := func(context.Context, *pawl.Message[pawl.Raw]) error { return nil }
			var groups []*pawl.Subscription
			for i := range 10 {
				groups = append(groups, pawl.Subscribe(e, fmt.Sprint("all-", i), "t.>", handle))
			}
			for i := range own {
				groups = append(groups, pawl.Subscribe(e, fmt.Sprint("own-", i), fmt.Sprintf("t.%d", i), handle, pawl.StartAt(stream.FromStart())))
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- e.Run(ctx) }()
			handled := func() (n uint64) {
				for _, g := range groups {
					n += g.Stats().Acked
				}
				return n
			}
			for want := uint64(10*topics + own); handled() < want; {
				time.Sleep(100 * time.Millisecond) // stimulus: the next look at how far they are
			}
			time.Sleep(10 * time.Second) // stimulus: the looks that follow are over
			sent.take()
			time.Sleep(window) // stimulus: a minute passes, in which every round comes
			list := sent.take()
			rate := float64(len(list)) / window.Seconds()
			t.Logf("%d groups over %d topics send %.1f statements a second", len(groups), topics, rate)
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
