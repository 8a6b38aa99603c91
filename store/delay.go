package store

import (
	"context"
	"time"
)

// Delays is a log that keeps events until they are due.
type Delays interface {
	// AppendDue appends up to limit events whose time has come, in the order of their times,
	// in one commit that also takes them from those that wait. It is safe in every process
	// at once, and when an answer was lost: none is appended twice.
	AppendDue(ctx context.Context, limit int) (AppendDueReply, error)
}

// MaxDueBytes is how much data one AppendDue moves, about.
const MaxDueBytes = 8 << 20

// AppendDueReply is what AppendDue did.
type AppendDueReply struct {
	Appended int
	// Next is when the next event is due, by the store's clock, which is at Now; zero: none
	// waits. One that is past means that there is more.
	Now, Next time.Time
}
