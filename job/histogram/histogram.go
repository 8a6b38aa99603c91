// Package histogram counts durations in buckets that grow with them, so that the
// histograms of many processes and minutes add up to exactly the one that a single
// process would have made of all their durations. Quantiles are read from the sum;
// quantiles themselves cannot be added, nor averaged.
//
// Each power of two above 100 µs has 16 buckets of equal width, up to 30 days. What
// is read differs from what was counted by at most 1/32 of it. Below 100 µs there is
// one bucket, and what took longer than 30 days counts as that.
package histogram

import (
	"math/bits"
	"slices"
	"time"
)

const (
	// Least is where the buckets begin.
	Least = 100 * time.Microsecond
	// Most is where they end.
	Most = 30 * 24 * time.Hour

	parts   = 16            // buckets of each power of two
	unit    = Least / parts // the width of the first of them
	buckets = 1 + 35*parts  // the first is for what is below Least
)

// Histogram counts durations. The zero one is empty and ready. It is not safe for
// concurrent use.
type Histogram struct {
	low    int      // the bucket of counts[0]
	counts []uint64 // those that have been needed, in whole powers of two
	count  uint64
	sum    uint64 // microseconds
}

// Add counts one duration. It allocates only where one is longer or shorter, by a
// power of two, than any before.
func (h *Histogram) Add(d time.Duration) {
	d = min(max(d, 0), Most)
	h.add(bucketOf(d), 1)
	h.count = plus(h.count, 1)
	h.sum = plus(h.sum, uint64(d.Microseconds()))
}

func (h *Histogram) add(bucket int, n uint64) {
	i := bucket - h.low
	if uint(i) >= uint(len(h.counts)) {
		h.widen(bucket)
		i = bucket - h.low
	}
	h.counts[i] = plus(h.counts[i], n)
}

// widen makes room for a bucket.
func (h *Histogram) widen(bucket int) { h.cover(bucket, bucket) }

// cover makes room for all buckets from one to another, at once.
func (h *Histogram) cover(first, last int) {
	low := first / parts * parts
	high := min(last/parts*parts+parts, buckets)
	if len(h.counts) > 0 {
		if low, high = min(low, h.low), max(high, h.low+len(h.counts)); high-low == len(h.counts) {
			return
		}
	}
	counts := make([]uint64, high-low)
	if len(h.counts) > 0 {
		copy(counts[h.low-low:], h.counts)
	}
	h.low, h.counts = low, counts
}

// plus is addition that stops at the highest number, so that it stays the same in
// any order.
func plus(a, b uint64) uint64 {
	sum, over := bits.Add64(a, b, 0)
	if over != 0 {
		return ^uint64(0)
	}
	return sum
}

func bucketOf(d time.Duration) int {
	u := uint64(d / unit)
	if u < parts {
		return 0
	}
	e := bits.Len64(u) - 5 // parts is 2⁴: u>>e is parts..2·parts-1
	return 1 + e*parts + int(u>>e) - parts
}

// middle is what stands for the durations of a bucket: at most 1/32 away from each.
func middle(bucket int) time.Duration {
	if bucket == 0 {
		return Least / 2
	}
	e, part := (bucket-1)/parts, (bucket-1)%parts
	width := unit << e
	return min(width*time.Duration(parts+part)+width/2, Most)
}

// Merge adds what another has counted.
func (h *Histogram) Merge(other *Histogram) {
	if len(other.counts) > 0 && other.count > 0 {
		h.cover(other.low, other.low+len(other.counts)-1)
	}
	for i, n := range other.counts {
		if n > 0 {
			h.add(other.low+i, n)
		}
	}
	h.count, h.sum = plus(h.count, other.count), plus(h.sum, other.sum)
}

// Count is how many durations were counted.
func (h *Histogram) Count() uint64 { return h.count }

// Sum is what they add up to.
func (h *Histogram) Sum() time.Duration {
	return time.Duration(min(h.sum, uint64(1<<63-1)/uint64(time.Microsecond))) * time.Microsecond
}

// Below is how many durations were below one: exactly so where it is Least times a power
// of two, else of the buckets before the one that it is in.
func (h *Histogram) Below(d time.Duration) uint64 {
	if d > Most {
		return h.count
	}
	var below uint64
	for _, n := range h.counts[:min(max(bucketOf(max(d, 0))-h.low, 0), len(h.counts))] {
		below = plus(below, n)
	}
	return below
}

// Mean is their sum divided by their number; 0 where there are none.
func (h *Histogram) Mean() time.Duration {
	if h.count == 0 {
		return 0
	}
	return time.Duration(h.sum/h.count) * time.Microsecond
}

// Quantile is the duration that the part p of all, from 0 to 1, does not exceed: 0.5
// is the median. It is 0 where there are none.
func (h *Histogram) Quantile(p float64) time.Duration {
	if h.count == 0 {
		return 0
	}
	rank := rankOf(p, h.count)
	var passed uint64
	last := 0
	for i, n := range h.counts {
		if n == 0 {
			continue
		}
		last = h.low + i
		if passed = plus(passed, n); passed >= rank {
			break
		}
	}
	return middle(last)
}

// rankOf is which one of n is asked for, from 1: the nearest rank.
func rankOf(p float64, n uint64) uint64 {
	if !(p > 0) { // also what is no number
		return 1
	}
	if p >= 1 {
		return n
	}
	at := p * float64(n)
	rank := uint64(at)
	if float64(rank) < at {
		rank++
	}
	return min(max(rank, 1), n)
}

// Reset empties it and keeps its room.
func (h *Histogram) Reset() {
	clear(h.counts)
	h.count, h.sum = 0, 0
}

// Clone is a copy that shares nothing.
func (h *Histogram) Clone() Histogram {
	c := *h
	c.counts = slices.Clone(h.counts)
	return c
}
