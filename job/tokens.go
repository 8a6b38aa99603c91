package job

import (
	"math"
	"math/bits"
	"time"
)

// Bucket is how the tokens of one limit stand. A store keeps it in a row and changes
// it only by Take, under the lock of that row. What is kept for nobody is full: a
// row that is gone and a full bucket are the same.
//
// Tokens come by themselves, and leave in blocks: a process takes several at once and
// hands them out itself. The sum of what is here and what is in blocks never exceeds
// the burst and grows by the rate only, so over any time no more tokens are used than
// burst + rate × time:
//
//  1. A block is counted until it is settled, or for as long as it may be used and a
//     second more. What a dead process had is lost, never given twice.
//  2. A block may hold tokens that come within the next half second, half of the burst
//     at most. Level is below zero then, and its holder waits for each of them. All
//     blocks together are no larger than the burst, so that what comes finds room.
//  3. Time is the bucket's own (Tick). It goes on as the store's clock does, unless that
//     was set: back, and nothing comes for the time between two changes; forward, and
//     whoever has asked before finds out by its own clock. Only one who asks for the
//     first time cannot tell such a step from an idle hour.
type Bucket struct {
	Level   int64 // parts of tokens; below 0 so many that come are promised
	At      int64 // the store's time of the last change, in µs
	Tick    int64 // the bucket's own time then, in µs
	Held    int64 // tokens of blocks that were taken in this second of Tick
	Before  int64 // and in the second before it
	Drained int64 // Tick of the last drain: blocks from before it bring nothing back
	Until   int64 // Tick until which nothing comes
	Turn    int64 // Tick at which the last one who was refused asks again
	// What holds, by the newest settings that anybody has asked with.
	Rate     int64 // parts in a second
	Burst    int64 // tokens
	Revision int64 // of the settings
}

// A token has so many parts, so that slow rates and short times count.
const (
	TokenParts = 1_000_000_000
	// BlockFor is how long a block may be used, from when it was asked for.
	BlockFor = time.Second
	// blockSecond is a second of Tick: blocks are counted by it.
	blockSecond = 1_000_000
	// clockStep is the least by which the clock is set forward. Less cannot be told from
	// a request that was long on its way.
	clockStep = 200_000
	// longestTurn bounds, with turnsAhead turns, how long one who is refused waits for
	// others who were.
	longestTurn = 2_000_000
	turnsAhead  = 8
	// Who is refused because others hold too much asks again after a turn, which is
	// counted between these.
	leastTurn, mostTurn = 5_000, blockSecond
)

// Parts is the rate in parts of tokens in a second. It is rounded down.
func (r Rate) Parts() int64 { return int64(r.PerSecond * TokenParts) }

// TakeRequest is what a process wants of a bucket.
type TakeRequest struct {
	Rate
	Revision int64 // of the settings that say so
	// Need is what the next one in line needs: less is of no use. Want is how many all
	// of them do. 0 takes nothing.
	Need, Want int
	// Since is how long ago the caller asked for its last answer about this bucket, by
	// its own clock; negative when it has none. Last is the time in that answer.
	Since time.Duration
	Last  int64
	// Settle gives back the caller's last block.
	Settle Block
	// Drain empties the bucket, for that long. 0 does not; Undrain ends a drain.
	Drain time.Duration
}

// Undrain ends a drain: tokens come again from now on.
const Undrain time.Duration = -1

// Block is what a process has taken.
type Block struct {
	Taken  int64 // Tick when it was taken
	Size   int   // tokens; 0: there is none
	Unused int   // of them, when it is settled
}

// TakeReply is the answer.
type TakeReply struct {
	Block
	// Ready are the parts that were there: token n of the block comes when those and
	// what the rate has brought since are n tokens.
	Ready int64
	At    int64 // the store's time, in µs
	// Wait is how long until it is worth asking again, when the block is empty.
	Wait time.Duration
	// What holds, by the newest settings that anybody has asked with.
	Rate     int64
	Burst    int64
	Revision int64
}

// NewBucket is a full one, of which nobody has taken.
func (q *TakeRequest) NewBucket(now int64) Bucket {
	b := Bucket{At: now, Tick: blockSecond, Rate: q.Parts(), Burst: int64(q.Burst), Revision: q.Revision}
	b.Level = b.Burst * TokenParts
	if q.Since >= 0 { // the caller knows of a bucket that is gone: it may not be full yet
		b.Level = min(b.Level, parts(q.Since.Microseconds(), b.Rate))
	}
	return b
}

// Take changes the bucket at a time of the store's clock, in µs.
func (b *Bucket) Take(now int64, q *TakeRequest) (reply TakeReply) {
	b.advance(now, q)
	if q.Revision >= b.Revision {
		b.Rate, b.Burst, b.Revision = q.Parts(), int64(q.Burst), q.Revision
	}
	b.settle(q.Settle)
	switch {
	case q.Drain > 0:
		b.Level = min(b.Level, 0)
		b.Drained, b.Until = b.Tick, max(b.Until, b.Tick+q.Drain.Microseconds())
	case q.Drain == Undrain:
		b.Until = min(b.Until, b.Tick)
	}
	reply = TakeReply{At: b.At, Ready: b.Level, Rate: b.Rate, Burst: b.Burst, Revision: b.Revision}
	reply.Taken = b.Tick
	if q.Need > 0 {
		b.lease(int64(q.Need), int64(q.Want), &reply)
	}
	return reply
}

// advance lets time pass. Blocks go second by second: what is in one counts against
// the burst for as long as it may be used, and tokens that find no room are lost.
func (b *Bucket) advance(now int64, q *TakeRequest) {
	from, to := b.Tick, b.Tick+b.elapsed(now, q)
	b.At = now
	first := (from/blockSecond + 1) * blockSecond
	come := func(from, to, room int64) {
		b.Level = min(b.Level+parts(max(to-max(from, b.Until), 0), b.Rate), room*TokenParts)
	}
	come(from, min(to, first), b.Burst-b.Held-b.Before)
	if to >= first {
		b.Held, b.Before = 0, b.Held
		come(first, min(to, first+blockSecond), b.Burst-b.Before)
	}
	if to >= first+blockSecond {
		b.Before = 0
		come(first+blockSecond, to, b.Burst)
	}
	b.Tick = to
}

// elapsed is the time since the last change. Who has asked before knows what the clock
// must show: what it showed then, and the time since. If it shows more it was set, and
// what the caller knows counts.
func (b *Bucket) elapsed(now int64, q *TakeRequest) int64 {
	if q.Since >= 0 {
		if shows := q.Last + q.Since.Microseconds(); now > shows+clockStep {
			return max(shows-b.At, 0)
		}
	}
	return max(now-b.At, 0)
}

// settle ends a block. What was not used goes back, unless the bucket has been
// drained since.
func (b *Bucket) settle(s Block) {
	if s.Size > 0 {
		switch b.Tick/blockSecond - s.Taken/blockSecond {
		case 0:
			b.Held = max(b.Held-int64(s.Size), 0)
		case 1:
			b.Before = max(b.Before-int64(s.Size), 0)
		default: // its time is over, and it is counted no more
			s.Unused = 0
		}
		if s.Taken > b.Drained {
			b.Level += int64(s.Unused) * TokenParts
		}
	}
	b.Level = min(b.Level, (b.Burst-b.Held-b.Before)*TokenParts) // the burst may have become smaller
}

// lease takes a block, or says when to ask again.
func (b *Bucket) lease(need, want int64, reply *TakeReply) {
	// ahead is what may be taken before it has come.
	ahead := min(b.Rate/2, b.Burst*(TokenParts/2))
	want = min(want, max(need, ahead/TokenParts))
	// Blocks are not made much smaller than that: where many take, each would get
	// one token with each statement.
	least := max(need, min(want, ahead/4*3/TokenParts))
	room := b.Burst - b.Held - b.Before
	there := min((b.Level+ahead)/TokenParts, room)
	switch {
	case need > b.Burst:
		return
	case b.Tick >= b.Until && there >= least:
		reply.Size = int(min(want, there))
		b.Level -= int64(reply.Size) * TokenParts
		b.Held += int64(reply.Size)
		return
	}
	wait := max(b.Until-b.Tick, 0) + ticks(least*TokenParts-ahead-b.Level, b.Rate)
	turn := ticks(least*TokenParts, b.Rate)
	if room < least {
		wait = max(wait, min(max(turn, leastTurn), mostTurn))
	}
	behind := b.Turn + turn // of the last one who was refused
	if b.Turn <= b.Tick {   // who has asked again by now
		behind = 0
	}
	b.Turn = max(b.Tick+wait, min(behind, b.Tick+wait+longestTurn+turnsAhead*turn))
	reply.Wait = time.Duration(min(b.Turn-b.Tick, math.MaxInt64/1000)) * time.Microsecond
}

// Expires is when the bucket is as good as gone, in µs of the store's clock: it is
// full by then. It is rounded up to whole hours, and an hour more, so that it rarely
// changes: it has an index.
func (b *Bucket) Expires() int64 {
	const hour = 3_600_000_000
	full := max(b.Until-b.Tick, 0) + ticks(b.Burst*TokenParts-b.Level, b.Rate)
	return (b.At+full)/hour*hour + 2*hour
}

// longestTicks bounds a time that is computed: ten years.
const longestTicks = 10 * 365 * 86_400_000_000

// parts are what comes at a rate in some µs.
func parts(elapsed, rate int64) int64 {
	hi, lo := bits.Mul64(uint64(elapsed), uint64(rate))
	if hi >= blockSecond/2 {
		return math.MaxInt64 / 4 // more than any bucket holds
	}
	q, _ := bits.Div64(hi, lo, blockSecond)
	return int64(min(q, math.MaxInt64/4))
}

// ticks is in how many µs parts come at a rate, rounded up.
func ticks(parts, rate int64) int64 {
	if parts <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(parts), blockSecond)
	lo, carry := bits.Add64(lo, uint64(rate-1), 0)
	hi += carry
	if hi >= uint64(rate) {
		return longestTicks
	}
	q, _ := bits.Div64(hi, lo, uint64(rate))
	return int64(min(q, longestTicks))
}
