package store

import (
	"math"
	"slices"
	"time"

	"github.com/pawlwork/pawl/stream"
)

// Waiting is a delivery that was given back in an ordered group, and waits for the member
// that has its stripe.
type Waiting struct {
	Seq      int64
	Stripe   int16
	Failures int
	Losses   int
	Due      time.Time
}

// MaxWaiting is how many of them one turn looks at.
const MaxWaiting = 1000

// NotRead is the place of a stripe that is not read now.
const NotRead = math.MaxInt64

// OrderedPlan is what a member of an ordered group takes in one turn.
type OrderedPlan struct {
	Again []Waiting // rows that it gets, by position
	Alone bool      // the one of Again must be alone
	// From is behind which number new events of each stripe are read, or NotRead.
	From [stream.Stripes]int64
	// Low is the lowest of From, and NotRead when nothing is read.
	Low int64
	// N is how many new events are wanted, and Visits how many are looked at for them: those
	// of others' stripes lie between.
	N, Visits int
	// First and Last are the lowest and highest stripe that is read.
	First, Last int16
}

// PlanOrdered decides what an ordered member takes. What was given back comes before new
// events of its stripe, in its order. A suspect comes alone to an idle member, and a busy one
// gets nothing while it waits. Stripes that are about to be another's are not in ours.
func PlanOrdered(t *Turn, ours map[int16]int64, waiting []Waiting, now time.Time) OrderedPlan {
	p := OrderedPlan{Low: NotRead, N: t.Want.N}
	for i := range p.From {
		p.From[i] = NotRead
	}
	if p.N < 1 {
		return p
	}
	stuck := map[int16]bool{} // something of it waits and is not taken
	for _, w := range waiting {
		if _, mine := ours[w.Stripe]; !mine || slices.Contains(t.Want.Not, w.Stripe) || stuck[w.Stripe] {
			continue
		}
		stuck[w.Stripe] = true
		if w.Losses >= SuspectAfter && !w.Due.After(now) && !t.Busy[w.Stripe] {
			p.N = 0
			if t.Want.Idle {
				p.Again, p.Alone = []Waiting{w}, true
			}
			return p
		}
	}
	clear(stuck)
	for _, w := range waiting {
		if _, mine := ours[w.Stripe]; !mine || slices.Contains(t.Want.Not, w.Stripe) {
			continue
		}
		if stuck[w.Stripe] || w.Due.After(now) || w.Losses >= SuspectAfter || len(p.Again) == t.Want.N {
			stuck[w.Stripe] = true
			continue
		}
		p.Again = append(p.Again, w)
	}
	p.N -= len(p.Again)
	if p.N < 1 || len(waiting) == MaxWaiting { // there may be more that wait: they come first
		p.N = 0
		return p
	}
	p.First, p.Last = stream.Stripes, -1
	read, high := 0, int64(0)
	for s, at := range ours {
		if !stuck[s] && !slices.Contains(t.Want.Not, s) {
			p.From[s], p.Low = at, min(p.Low, at)
			p.First, p.Last = min(p.First, s), max(p.Last, s)
			high = max(high, at)
			read++
		}
	}
	switch p.Visits = p.N; {
	case read > 0 && high > p.Low: // what some have passed lies between
		p.Visits = TurnVisits
	case read < stream.Stripes:
		p.Visits = min(TurnVisits, p.N*stream.Stripes/max(read, 1)+p.N)
	}
	return p
}

// Read moves the stripes that were read up to a number.
func (p *OrderedPlan) Read(stripes map[int16]int64, upto int64) {
	for s, from := range p.From {
		if from != NotRead {
			stripes[int16(s)] = max(from, upto)
		}
	}
}

// StripesOf are those that a member should have: as many for each, next to each other, in the
// order of the members' numbers.
func StripesOf(members []int64, me int64) (first, end int16) {
	members = slices.Sorted(slices.Values(members))
	i, ok := slices.BinarySearch(members, me)
	if !ok {
		return 0, 0
	}
	n := len(members)
	return int16(i * stream.Stripes / n), int16((i + 1) * stream.Stripes / n)
}

// Places are stripes as a hand keeps them: most are at one place, some are behind.
func Places(stripes map[int16]int64) (upto int64, behind []int16, at []int64) {
	for _, p := range stripes {
		upto = max(upto, p)
	}
	for s := range int16(stream.Stripes) {
		if p, ok := stripes[s]; ok && p < upto {
			behind, at = append(behind, s), append(at, p)
		}
	}
	return upto, behind, at
}

// StripesAt is what Places wrote, for the stripes that a hand has.
func StripesAt(has []int16, upto int64, behind []int16, at []int64) map[int16]int64 {
	list := make(map[int16]int64, len(has))
	for _, s := range has {
		list[s] = upto
	}
	for i, s := range behind {
		if _, ok := list[s]; ok && i < len(at) {
			list[s] = at[i]
		}
	}
	return list
}
