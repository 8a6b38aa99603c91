package job_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
)

// The model of a rate knows nothing of buckets. It has the moments, in true time, at which tokens were
// used, and counts: over any time that begins and ends with a use there are no more than burst + rate × time.

// use is some tokens used at a true time, in µs.
type use struct {
	at int64
	n  int64
}

// overIssued finds a stretch of uses with more than burst + rate × time, in exact numbers.
func overIssued(uses []use, r job.Rate) string {
	slices.SortStableFunc(uses, func(a, b use) int { return int(a.at - b.at) })
	// used(i..j) <= burst + rate × (at j - at i) for all i <= j: with v = used before it - rate × at, the sum
	// after j minus the v of i is at most the burst. So the least v so far decides.
	perMicro := new(big.Rat).Quo(new(big.Rat).SetFloat64(r.PerSecond), big.NewRat(1_000_000, 1))
	burst := new(big.Rat).SetInt64(int64(r.Burst))
	var least *big.Rat
	begin, total := int64(0), int64(0)
	for _, u := range uses {
		came := new(big.Rat).Mul(perMicro, new(big.Rat).SetInt64(u.at))
		v := new(big.Rat).Sub(new(big.Rat).SetInt64(total), came)
		if least == nil || v.Cmp(least) < 0 {
			least, begin = v, u.at
		}
		total += u.n
		over := new(big.Rat).Sub(new(big.Rat).Sub(new(big.Rat).SetInt64(total), came), least)
		if over.Cmp(burst) > 0 {
			f, _ := over.Float64()
			return fmt.Sprintf("from %d µs to %d µs %.3f tokens were used beyond the rate, the burst is %d", begin, u.at, f, r.Burst)
		}
	}
	return ""
}

// holder is a process as it may behave at worst: it uses tokens as late or as soon as it may, all at once or one
// by one, dies with a block, or loses an answer.
type holder struct {
	asked  int64 // true time of the last request that was answered; -1 before
	last   int64 // the store's time in that answer
	block  job.Block
	ready  int64
	rate   int64
	began  int64 // true time at which the block came
	until  int64 // and until which it may be used
	used   int
	paused int64 // it does nothing before
}

// active is how many tokens of the block have come.
func (h *holder) active(now int64) int {
	parts := new(big.Int).Mul(big.NewInt(now-h.began), big.NewInt(h.rate))
	parts.Div(parts, big.NewInt(1_000_000)).Add(parts, big.NewInt(h.ready)).Div(parts, big.NewInt(job.TokenParts))
	return int(max(min(parts.Int64(), int64(h.block.Size)), 0))
}

func TestJ17_NeverMoreThanBurstAndRate(t *testing.T) {
	tokens, refusals := 0, 0
	for round := range 60 {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 17))
		rate := job.Rate{PerSecond: []float64{0.7, 1.4, 3, 20, 100, 333.3, 5000}[r.IntN(7)], Burst: []int{1, 2, 5, 40, 100, 1000}[r.IntN(6)]}
		uses, refused := playTokens(r, rate, 3, round%2 == 1)
		if fault := overIssued(uses, rate); fault != "" {
			t.Fatalf("seed %d, %+v: %s", seed, rate, fault)
		}
		tokens, refusals = tokens+len(uses), refusals+refused
	}
	if tokens < 1000 || refusals < 1000 {
		t.Errorf("%d uses and %d refusals prove nothing", tokens, refusals)
	}
}

// playTokens lets processes take from one bucket for a few seconds of true time. With steps, the store's clock is
// set forward and back again and again, each time when every process has been answered since the last time.
func playTokens(r *rand.Rand, rate job.Rate, processes int, steps bool) (uses []use, refused int) {
	holders := make([]*holder, processes)
	for i := range holders {
		holders[i] = &holder{asked: -1}
	}
	var bucket *job.Bucket
	shift, there, answered := int64(1_000_000_000), int64(0), map[*holder]bool{}
	request := func(now int64, h *holder, q *job.TakeRequest) {
		q.Rate, q.Since = rate, -1
		if h.asked >= 0 {
			q.Since, q.Last = time.Duration(now-h.asked)*time.Microsecond, h.last
		}
		if h.block.Size > 0 {
			q.Settle = h.block
			q.Settle.Unused = h.block.Size - h.used
			h.block = job.Block{}
		}
		there = max(there, now+r.Int64N(2000)) // on its way, one after the other
		if bucket == nil {
			b := q.NewBucket(there + shift)
			bucket = &b
		}
		reply := bucket.Take(there+shift, q)
		if r.IntN(10) == 0 { // the answer is lost
			h.paused = there
			return
		}
		back := there + r.Int64N(2000)
		answered[h] = true
		h.asked, h.last, h.paused = now, reply.At, back
		if reply.Size > 0 {
			h.block, h.ready, h.rate, h.began, h.used = reply.Block, reply.Ready, reply.Rate, back, 0
			h.until = now + job.BlockFor.Microseconds()
			return
		}
		if q.Need > 0 {
			refused++
			h.paused = back + r.Int64N(reply.Wait.Microseconds()/2+1)
		}
	}
	now := int64(0)
	for range 3000 {
		now += r.Int64N(5000)
		if r.IntN(200) == 0 {
			now += r.Int64N(4_000_000) // all are idle
		}
		if steps && len(answered) == processes && r.IntN(20) == 0 {
			clear(answered)
			shift += []int64{-3_600_000_000, -2_000_000, -100_000, 300_000, 2_000_000, 3_600_000_000}[r.IntN(6)]
		}
		h := holders[r.IntN(processes)]
		switch {
		case now < h.paused:
		case h.block.Size > 0 && now < h.until && r.IntN(3) > 0:
			if free := h.active(now) - h.used; free > 0 {
				n := free
				if r.IntN(2) == 0 {
					n = 1 + r.IntN(free)
				}
				h.used += n
				uses = append(uses, use{now, int64(n)})
			}
		case r.IntN(20) == 0 && !steps:
			*h = holder{asked: -1} // it dies, and another comes
		case r.IntN(10) == 0:
			request(now, h, &job.TakeRequest{}) // it only gives back
		case h.block.Size > 0 && h.used < h.block.Size && now < h.until && r.IntN(3) > 0:
		default:
			need := 1 + r.IntN(min(rate.Burst, 4))
			request(now, h, &job.TakeRequest{Need: need, Want: need + r.IntN(50)})
		}
	}
	return uses, refused
}

// The model can fail: a bucket that gives each block twice is found out.
func TestJ17_TheModelCounts(t *testing.T) {
	rate := job.Rate{PerSecond: 10, Burst: 5}
	for _, good := range [][]use{{{0, 5}}, {{0, 5}, {100_000, 1}}, {{0, 3}, {0, 2}, {1_000_000, 5}, {1_500_000, 5}}} {
		if fault := overIssued(good, rate); fault != "" {
			t.Errorf("%v: %s", good, fault)
		}
	}
	for _, bad := range [][]use{{{0, 6}}, {{0, 5}, {99_999, 1}}, {{0, 1}, {50_000_000, 5}, {50_050_000, 1}}} {
		if overIssued(bad, rate) == "" {
			t.Errorf("%v is called within the rate", bad)
		}
	}
}

// One who takes for as long as there is something gets all of it, in blocks: about one statement for the tokens of
// a quarter of a second.
func TestJ17_OneTakerGetsAllOfTheRate(t *testing.T) {
	rate := job.Rate{PerSecond: 100, Burst: 100}
	q := job.TakeRequest{Rate: rate, Need: 1, Want: 1000, Since: -1}
	b := q.NewBucket(0)
	now, taken, statements := int64(0), 0, 0
	for now < 10_000_000 {
		reply := b.Take(now, &q)
		statements++
		taken += reply.Size
		q.Settle = reply.Block
		if reply.Size == 0 {
			now += reply.Wait.Microseconds()
			continue
		}
		// used as soon as they come
		last := (int64(reply.Size)*job.TokenParts - reply.Ready) / (reply.Rate / 1_000_000)
		now += max(last, 1)
	}
	if taken < 1090 || statements*10 > taken {
		t.Errorf("%d tokens in ten seconds by %d statements, want 1,100 by a tenth of that at most", taken, statements)
	}
}

func TestJ17_ADrainHoldsForItsTime(t *testing.T) {
	rate := job.Rate{PerSecond: 10, Burst: 20}
	q := job.TakeRequest{Rate: rate, Need: 1, Want: 1, Since: -1}
	b := q.NewBucket(0)
	b.Take(0, &job.TakeRequest{Rate: rate, Since: -1, Drain: 3 * time.Second})
	for now := int64(0); now < 3_000_000; now += 50_000 {
		probe := b
		if reply := probe.Take(now, &q); reply.Size > 0 || reply.Wait.Microseconds() < 3_000_000-now {
			t.Fatalf("after %d µs of a drain of 3 s: %+v", now, reply)
		}
	}
	if reply := b.Take(3_100_000, &q); reply.Size != 1 || b.Level > 0 {
		t.Errorf("after the drain: %+v, want the one token that has come", reply)
	}
}

// A step of the clock brings nothing; set back, tokens go on coming.
func TestJ17_AStepOfTheClockBringsNothing(t *testing.T) {
	rate := job.Rate{PerSecond: 1, Burst: 10}
	const start, hour = int64(1e15), int64(3_600_000_000)
	all := job.TakeRequest{Rate: rate, Need: 10, Want: 10, Since: -1}
	one := job.TakeRequest{Rate: rate, Need: 1, Want: 1}
	for _, step := range []int64{hour, -hour} {
		b := all.NewBucket(start)
		first := b.Take(start, &all)
		one.Settle, one.Since, one.Last = first.Block, 10*time.Millisecond, first.At
		second := b.Take(start+step+10_000, &one)
		if second.Size > 0 {
			t.Errorf("a step of %d µs brings %d tokens", step, second.Size)
		}
		one.Since, one.Last, one.Settle = 2*time.Second, second.At, job.Block{}
		if reply := b.Take(start+step+2_010_000, &one); reply.Size != 1 {
			t.Errorf("two seconds after a step of %d µs: %+v", step, reply)
		}
	}
}
