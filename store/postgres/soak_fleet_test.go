//go:build soak

package postgres

import (
	"slices"
	"testing"
	"time"

	"github.com/pawlwork/pawl/store"
)

// othersEvery is how many of the leader's periods the rounds of the others are apart.
const othersEvery = 3

// TestSoak_J12_J18_AFleetCostsWhatTenWorkersDo takes the time of what a process does again and again: in a large registry, and
// beside a snapshot that was held for four hours.
func TestSoak_J12_J18_AFleetCostsWhatTenWorkersDo(t *testing.T) {
	const times, hours = 200, 4
	var base time.Duration
	for _, size := range []struct {
		name       string
		live, gone int
		beats      int // of each worker, beside a snapshot
	}{
		{name: "10 live workers", live: 10},
		{name: "100 live workers", live: 100},
		{name: "1,000 live and 9,000 gone workers", live: 1_000, gone: 9_000},
		{name: "100 live workers beside a snapshot of 4 h", live: 100, beats: hours * 3600 / 5},
	} {
		t.Run(size.name, func(t *testing.T) {
			f := newFleet(t, size.live, size.gone)
			if size.beats > 0 {
				holdSnapshot(t, f.s)
				f.beatsOfAll(size.beats)
			}
			var leader, other, fleet float64 // milliseconds in a second
			for _, w := range f.work() {
				for range 10 {
					w.do()
				}
				took := fast(times, w.do)
				every := w.every * othersEvery
				if w.name == beatWork {
					every = w.every
				}
				leader, other = leader+took/w.every, other+took/every
				t.Logf("%-32s %7.2f ms, every %v s", w.name, took, w.every)
			}
			t.Logf("%-32s %7.2f ms, for each process when the registry changes", "beat that reads who shares", fast(times/10, func() {
				if reply := f.beatAnew(); len(reply.Crews["x"].Workers) != size.live {
					t.Fatalf("%d share, want %d", len(reply.Crews["x"].Workers), size.live)
				}
			}))
			fleet = leader + other*float64(size.live-1)
			t.Logf("%s: the leader takes %.2f ms in a second, each other %.2f ms, all together %.1f ms", size.name, leader, other, fleet)
			if base == 0 {
				base = time.Duration(leader * float64(time.Millisecond))
			}
			if now := time.Duration(leader * float64(time.Millisecond)); now > 3*base {
				t.Errorf("%s cost their leader %v in a second, 10 workers %v", size.name, now, base)
			}
		})
	}
}

// fast is how many milliseconds a call takes of which nine in ten are slower: the disk and the processors are shared.
func fast(times int, call func()) float64 {
	var took []time.Duration
	for range times {
		begin := time.Now()
		call()
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return float64(took[len(took)/10].Microseconds()) / 1000
}

// beatAnew is a beat of its own worker that says what it serves, which is what it was, and so reads who shares that.
func (f *fleet) beatAnew() store.BeatReply {
	f.t.Helper()
	reply, err := f.s.Beat(f.t.Context(), store.Beat{
		Worker: f.own, Splits: true, Version: f.version,
		Serves: &store.Serves{Queues: []string{"x"}, Slots: []int{2}, Totals: []store.Total{{Queue: "x", Total: 5000, Workers: 2}}},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return reply
}
