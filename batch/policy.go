package batch

import (
	"fmt"
	"time"
)

// Policy decides when waiting items of a key are ready to become a batch. Ready is not started: a ready batch still
// needs a place under Options.Concurrency and Options.TotalConcurrency. The zero Policy is [Immediate].
//
// Under every policy a batch is ready when it is full, when its oldest item has waited for Options.MaxWait, and when
// the batcher is closing. [Policy.RejectWhenFull] takes the first of these away.
type Policy struct {
	kind   policyKind
	hint   int
	wait   time.Duration
	reject bool // a full batch refuses instead of starting early; Duration only
}

type policyKind uint8

const (
	immediate policyKind = iota
	size
	duration
	balanced
)

// Immediate makes waiting items ready at once. Below the concurrency limit a new item starts a batch, which stays open
// to more items while it acquires its resource; at the limit items gather, and each finished batch starts the next.
func Immediate() Policy { return Policy{kind: immediate} }

// Size makes a batch ready when it is full. What never fills up is ready after Options.MaxWait.
func Size() Policy { return Policy{kind: size} }

// Duration makes a batch ready d after its first item arrived, or when it is full, whichever comes first.
func Duration(d time.Duration) Policy { return Policy{kind: duration, wait: d} }

// RejectWhenFull makes a policy of Duration a hard pace: the batches of a key start at least d apart and hold at most
// Options.MaxBatch items, so that what they call gets no more than MaxBatch items of a key in d, however many callers
// come. Items for a batch that is full and not yet due are refused with [ErrQueueFull], the limit being "MaxBatch",
// instead of starting it early.
//
// One batch's worth may wait per key, because a second one behind it would start with it or break the pace:
// Options.MaxWaiting is 1, and Options.MaxWait is not below d. [Batcher.Close] does not keep the pace: what waits is
// flushed at once, at most one batch per key. The pace is a key's own; give all items one key for a pace over all.
// Other policies than Duration have no pace to keep and refuse to be changed so.
func (p Policy) RejectWhenFull() Policy {
	p.reject = true
	return p
}

// Balanced makes a batch ready when nothing is running for its key, and otherwise when it has hint items: an idle key
// answers at once, and a busy one gets batches that are worth their cost.
func Balanced(hint int) Policy { return Policy{kind: balanced, hint: hint} }

// String names the policy as it is written in code.
func (p Policy) String() string {
	if p.reject {
		p.reject = false
		return p.String() + ".RejectWhenFull()"
	}
	switch p.kind {
	case immediate:
		return "Immediate()"
	case size:
		return "Size()"
	case duration:
		return fmt.Sprintf("Duration(%v)", p.wait)
	case balanced:
		return fmt.Sprintf("Balanced(%d)", p.hint)
	default:
		return fmt.Sprintf("Policy(%d)", p.kind)
	}
}

func (p Policy) check(maxBatch int) error {
	if p.reject && p.kind != duration && p.kind <= balanced {
		return fmt.Errorf("%w: Options.Policy is %v; only Duration can refuse when full", ErrInvalid, p)
	}
	switch p.kind {
	case immediate, size:
		return nil
	case duration:
		if p.wait <= 0 {
			return fmt.Errorf("%w: Options.Policy is %v; the duration must be above 0", ErrInvalid, p)
		}
		return nil
	case balanced:
		if p.hint < 1 || p.hint > maxBatch {
			return fmt.Errorf("%w: Options.Policy is %v; the hint must be from 1 to MaxBatch, which is %d", ErrInvalid, p, maxBatch)
		}
		return nil
	default:
		return fmt.Errorf("%w: Options.Policy is %v; it must come from Immediate, Size, Duration or Balanced", ErrInvalid, p)
	}
}
