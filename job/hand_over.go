package job

import (
	"bytes"
	"slices"
	"time"
)

// HandOver asks that a draft begins in the commit that accepts it (J34). Its process
// has a slot for it, so no claim has to find it: the row is written as running, leased
// to the worker, in its first run.
//
// It holds only if, in that commit, the worker is not lost, the settings are those by
// which the process judged that the draft may begin (so nothing was paused or limited
// since), and its queue does not cool down. Otherwise the draft waits as any other.
type HandOver struct {
	Worker WorkerID
	// Revision is that of the settings that the process goes by.
	Revision int64
	Taker
}

// Taker is who keeps the slot.
type Taker interface {
	// Settle says what became of the job. A store calls it after the whole answer of the
	// commit and before the caller is answered, so that who cancels a job after Enqueue
	// finds its run. It may be called again: the first call counts. It does not call the
	// store.
	Settle(HandedOver)
}

// HandedOver is what became of a hand-over. Zero means that the job did not begin: it
// waits, or was not accepted.
type HandedOver struct {
	// Started is when it began, by the store's clock.
	Started time.Time
	// Unknown says that the answer was lost: the job may be leased to the worker.
	Unknown bool
}

// CanBegin reports whether nothing about a draft forbids that it begins in the commit
// that accepts it: it is due at once, surely new, and not bound to others by a unique
// key or a gate.
func (d *Draft) CanBegin() bool {
	return !d.Resend && d.Unique.Hash == nil && d.Gate == 0 && d.At.IsZero() && d.In == 0
}

// Begun is the job that a draft is when it has begun at a time, as a claim would
// answer it. It shares no bytes with the draft.
func (d *Draft) Begun(w WorkerID, at time.Time) Job {
	return Job{
		ID: d.ID, Queue: d.Queue, Kind: d.Kind, Version: d.Version, Priority: d.Priority,
		Args: bytes.Clone(d.Args), HeaderBytes: bytes.Clone(d.HeaderBytes), Key: d.Key,
		Tags: slices.Clone(d.Tags), Capabilities: slices.Clone(d.Capabilities), Budget: d.Budget,
		Created: at, Due: at, Started: at, Timeout: d.Timeout, Deadline: d.Deadline,
		Run: 1, MaxAttempts: d.Attempts, Worker: w, State: Running, Ties: d.Ties(),
	}
}

// SettleHandOvers says the same of all drafts that ask to begin. What was said of one
// before holds.
func SettleHandOvers(drafts []Draft, h HandedOver) {
	for i := range drafts {
		if drafts[i].HandOver != nil {
			drafts[i].HandOver.Settle(h)
		}
	}
}

// WithoutHandOver are drafts of which none asks to begin.
func WithoutHandOver(drafts []Draft) []Draft {
	if !slices.ContainsFunc(drafts, func(d Draft) bool { return d.HandOver != nil }) {
		return drafts
	}
	plain := slices.Clone(drafts)
	for i := range plain {
		plain[i].HandOver = nil
	}
	return plain
}
