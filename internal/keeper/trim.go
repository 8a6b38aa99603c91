package keeper

import (
	"context"
	"fmt"
	"sync"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// trimRound is the name of the round that removes events whose time is over.
const trimRound = "trim"

// TopicKeep is what topics keep; nil where all of them keep everything.
type TopicKeep func(topic string) stream.TopicSettings

// trims is where the round is among the topics.
type trims struct {
	store store.Trimmer // nil where the store keeps no events

	mu    sync.Mutex
	after string // the topic it goes on behind
	again bool   // a topic had more than its turn
}

// trimDue says whether there is something to trim: events have expired, or topics keep less
// than everything, and who looks at each of them says whether it has too much.
func (k *Keeper) trimDue(due store.Due) bool { return due.Trim || k.config.Topics() != nil }

// trim removes events of some topics, a turn for each. It goes on until all had theirs, and
// begins anew at once while one had more than that.
func (k *Keeper) trim(ctx context.Context, limit int) (report store.UpkeepReport, err error) {
	t := &k.trims
	t.mu.Lock()
	after := t.after
	t.mu.Unlock()
	reply, err := t.store.Trim(ctx, store.TrimRequest{Keep: k.config.Topics(), After: after, Limit: limit})
	if err != nil {
		return report, fmt.Errorf("trim: %w", err)
	}
	report.Add("events removed", reply.Removed)
	report.Add("expired events removed", reply.Expired)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.after, t.again = reply.Next, t.again || reply.More
	if report.More, report.Pause = t.after != "" || t.again, breath; t.after == "" {
		t.again = false
	}
	return report, nil
}
