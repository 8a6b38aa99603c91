package batch

import "sync/atomic"

// bound is a count with a limit that is never exceeded, not even for a moment: a caller near the limit is refused only
// by what is really held.
type bound struct {
	held atomic.Int64
	most int64
}

// take reserves n and reports whether it fitted, and what was held if not.
func (t *bound) take(n int) (held int64, ok bool) {
	for {
		held = t.held.Load()
		if int64(n) > t.most-held {
			return held, false
		}
		if t.held.CompareAndSwap(held, held+int64(n)) {
			return held, true
		}
	}
}

func (t *bound) give(n int) { t.held.Add(-int64(n)) }

// totals are the limits over all keys on what is accepted and not yet answered.
type totals struct {
	name  string // the batcher's, for errors
	items bound
	bytes bound
}

func (t *totals) take(weight int) error {
	if held, ok := t.items.take(1); !ok {
		return &QueueFullError{Name: t.name, Limit: "TotalItems", Max: int(t.items.most), Held: int(held), Asked: 1}
	}
	if weight == 0 {
		return nil
	}
	if held, ok := t.bytes.take(weight); !ok {
		t.items.give(1)
		return &QueueFullError{Name: t.name, Limit: "TotalBytes", Max: int(t.bytes.most), Held: int(held), Asked: weight}
	}
	return nil
}

func (t *totals) give(items, weight int) {
	if items != 0 {
		t.items.give(items)
	}
	if weight != 0 {
		t.bytes.give(weight)
	}
}
