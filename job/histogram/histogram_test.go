package histogram

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// duration draws one of any size: each power of two is as likely.
func duration(r *rand.Rand) time.Duration {
	return time.Duration(r.Uint64()>>(r.IntN(50)+12)) % (40 * 24 * time.Hour)
}

// exact is the nearest rank in a sorted list, written without the histogram.
func exact(sorted []time.Duration, p float64) time.Duration {
	i := 0
	for float64(i+1) < p*float64(len(sorted)) {
		i++
	}
	return sorted[i]
}

func near(t *testing.T, got, want time.Duration, what string) {
	t.Helper()
	want = min(want, Most)
	if want < Least {
		if got > Least {
			t.Errorf("%s: %v, want at most %v", what, got, Least)
		}
		return
	}
	if diff := (got - want).Abs(); diff > want/32+1 {
		t.Errorf("%s: %v, want %v within 1/32", what, got, want)
	}
}

func TestJ20_QuantilesAreThoseOfTheSamples(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 20))
		var h Histogram
		var all []time.Duration
		for range 1 + r.IntN(300) {
			d := duration(r)
			h.Add(d)
			all = append(all, d)
		}
		slices.Sort(all)
		if h.Count() != uint64(len(all)) {
			t.Fatalf("seed %d: %d counted, want %d", seed, h.Count(), len(all))
		}
		for _, p := range []float64{0, 0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1} {
			near(t, h.Quantile(p), exact(all, p), "quantile")
		}
	}
}

// Not: percentiles averaged. Two processes, one fast and busy, one slow: the mean of
// their 99th percentiles is nowhere near that of all jobs, and the merged one is.
func TestJ20_NotPercentilesAveraged(t *testing.T) {
	var fast, slow, both Histogram
	var all []time.Duration
	for i := range 1000 {
		d := time.Millisecond + time.Duration(i)*time.Microsecond
		fast.Add(d)
		all = append(all, d)
	}
	slow.Add(time.Minute)
	all = append(all, time.Minute)
	both.Merge(&fast)
	both.Merge(&slow)
	slices.Sort(all)
	near(t, both.Quantile(0.99), exact(all, 0.99), "the 99th percentile of both")
	if averaged := (fast.Quantile(0.99) + slow.Quantile(0.99)) / 2; averaged < 20*time.Second || both.Quantile(0.99) > 3*time.Millisecond {
		t.Errorf("merged %v, averaged %v: the test tells nothing", both.Quantile(0.99), averaged)
	}
}

func TestJ20_MergeIsExactAddition(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 21))
		var whole Histogram
		parts := make([]Histogram, 1+r.IntN(6))
		for range r.IntN(500) {
			d := duration(r)
			whole.Add(d)
			parts[r.IntN(len(parts))].Add(d)
		}
		r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		var merged Histogram
		for i := range parts {
			rest, err := merged.Decode(parts[i].Append(nil))
			if err != nil || len(rest) > 0 {
				t.Fatalf("seed %d: %v, %d bytes left", seed, err, len(rest))
			}
		}
		if got, want := merged.Append(nil), whole.Append(nil); !bytes.Equal(got, want) {
			t.Fatalf("seed %d: merged %x, want %x", seed, got, want)
		}
		if merged.Sum() != whole.Sum() || merged.Mean() != whole.Mean() || merged.Count() != whole.Count() {
			t.Fatalf("seed %d: sums differ", seed)
		}
	}
}

func TestJ20_BucketsAreInOrderAndBounded(t *testing.T) {
	last := time.Duration(-1)
	for b := range buckets {
		m := middle(b)
		if m < last || m == last && m != Most {
			t.Fatalf("bucket %d stands for %v, the one before for %v", b, m, last)
		}
		last = m
		if m < Most && bucketOf(m) != b {
			t.Errorf("bucket %d: its middle %v is in bucket %d", b, m, bucketOf(m))
		}
	}
	if b := bucketOf(Most); b >= buckets {
		t.Errorf("%v is in bucket %d of %d", Most, b, buckets)
	}
	var h Histogram
	h.Add(-time.Second)
	h.Add(365 * 24 * time.Hour)
	if lowest, highest := h.Quantile(0), h.Quantile(1); lowest > Least || highest > Most {
		t.Errorf("%v..%v", lowest, highest)
	}
}

func TestJ20_EncodedHistogramsAreSmall(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 22))
	var h Histogram
	for range 100_000 { // of one kind: around 20 ms, some much slower
		h.Add(20*time.Millisecond + time.Duration(r.ExpFloat64()*float64(15*time.Millisecond)))
	}
	if n := len(h.Append(nil)); n > 400 {
		t.Errorf("%d bytes", n)
	}
	for range 1_000_000 {
		h.Add(duration(r))
	}
	if n := len(h.Append(nil)); n > buckets*5+20 {
		t.Errorf("%d bytes when every bucket is used", n)
	}
}

func TestJ20_AddingDoesNotAllocate(t *testing.T) {
	var h Histogram
	r := rand.New(rand.NewPCG(1, 23))
	for range 1000 {
		h.Add(duration(r))
	}
	h.Reset()
	if n := testing.AllocsPerRun(1000, func() { h.Add(duration(r)) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestJ20_CloneSharesNothing(t *testing.T) {
	var h Histogram
	h.Add(time.Second)
	c := h.Clone()
	h.Add(time.Second)
	if c.Count() != 1 || c.Quantile(1) == 0 {
		t.Errorf("%d counted in the copy", c.Count())
	}
	before := c.Append(nil)
	h.Reset()
	if !bytes.Equal(before, c.Append(nil)) {
		t.Error("the copy changed")
	}
}

func TestJ20_WhatIsReadIsAddedInPlace(t *testing.T) {
	var sum, one Histogram
	for n := range 100 {
		one.Add(time.Duration(1+n*n) * time.Millisecond)
	}
	data := one.Append(nil)
	if n := testing.AllocsPerRun(10, func() {
		if rest, err := sum.Decode(data); err != nil || len(rest) > 0 {
			t.Error(rest, err)
		}
	}); n > 0 { // the first run, which makes room, is not counted
		t.Errorf("%v allocations", n)
	}
	if sum.Count() != 11*one.Count() || sum.Sum() != 11*one.Sum() || sum.Quantile(0.5) != one.Quantile(0.5) {
		t.Errorf("%d durations, %v", sum.Count(), sum.Sum())
	}
	if rest, err := Skip(append(data, 7)); err != nil || len(rest) != 1 {
		t.Error(rest, err)
	}
	for n := range data {
		if _, err := Skip(data[:n]); err == nil {
			t.Errorf("%d of %d bytes are a whole one", n, len(data))
		}
	}
}

func FuzzDecode(f *testing.F) {
	var h Histogram
	f.Add(h.Append(nil))
	h.Add(time.Second)
	h.Add(time.Hour)
	f.Add(h.Append(nil))
	f.Add([]byte{1, 0, 1, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Histogram
		rest, err := h.Decode(b)
		if err != nil {
			if h.Count() != 0 || h.Sum() != 0 {
				t.Fatal("what cannot be read was added")
			}
			return
		}
		again := h.Append(nil)
		var back Histogram
		if left, err := back.Decode(again); err != nil || len(left) > 0 {
			t.Fatalf("%v, %d bytes left", err, len(left))
		}
		if !bytes.Equal(again, back.Append(nil)) || len(rest) > len(b) {
			t.Fatal("it is not read as it was written")
		}
		h.Quantile(0.5)
	})
}

func BenchmarkAdd(b *testing.B) {
	var h Histogram
	h.Add(time.Second)
	b.ReportAllocs()
	for i := range b.N {
		h.Add(time.Duration(i&1023) * time.Millisecond)
	}
}

func TestJ20_BelowIsExactAtPowersOfTwo(t *testing.T) {
	var h Histogram
	r := rand.New(rand.NewPCG(7, 7))
	var all []time.Duration
	for range 5000 {
		d := time.Duration(r.Int64N(int64(time.Microsecond) << r.IntN(40)))
		all = append(all, d)
		h.Add(d)
	}
	for bound := Least; bound < 2*Most; bound *= 2 {
		var below uint64
		for _, d := range all {
			if min(d, Most) < bound {
				below++
			}
		}
		if got := h.Below(bound); got != below {
			t.Errorf("%d below %v, want %d", got, bound, below)
		}
	}
	if h.Below(0) != 0 || h.Below(-1) != 0 || (&Histogram{}).Below(time.Hour) != 0 {
		t.Error("there is nothing below 0, and nothing in an empty one")
	}
}
