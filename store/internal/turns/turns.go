// Package turns remembers, for the claims of one process, which gates of a queue have
// waiting jobs and whose turn is next. It knows no database, and only saves work: what
// is forgotten is found again by a scan, and what holds is decided in the claim.
//
//	scan of job_gated ---- Found ---> +-------------------------------+
//	own enqueues --------- Note ----> | ring of gates, by number      |
//	own ends ------------- Open ----> | at: whose turn it is, and     |--- Next ---> claim
//	hints of others ------ Stale ---> |     how much of it is left    |<-- Settle --+
//	                                  +-------------------------------+
//
// Gates have their turn in the order of their numbers, round and round. One that is
// closed (its bound is reached, its tokens are used up, its jobs are not due) is passed
// until then. A queue with more gates than fit is looked at through a window, which
// moves on when all in it have had their turn.
package turns

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

const (
	// Window is how many gates of a queue are remembered.
	Window = 4096
	// maxQueues bounds the memory of a process that is offered ever new queues.
	maxQueues = 10_000
	// ScanEvery is how often the gates of a queue are scanned for what nobody has
	// told of.
	ScanEvery = 5 * time.Second
	// fullFor is how long a gate without room is passed, the first time.
	fullFor = 200 * time.Millisecond
	// scanPause is how much longer than a scan the pause is that follows it, so that
	// hints without end do not make claims scan all the time.
	scanPause = 10
	// longest bounds Long.
	longest = 4
	// maxChanges bounds what is kept for claims that are under way.
	maxChanges = 256
)

// Long is how many times its weight a gate gets in its turn, where there are more gates
// than a claim visits at once and it asks for more jobs than that. Shares stay as they
// are, rounds are longer, and what a visit costs is paid for more jobs.
func Long(limit, visits int, more bool) int {
	if !more {
		return 1
	}
	return min(max((limit+visits-1)/visits, 1), longest)
}

// Gate is one that may have waiting jobs.
type Gate[T any] struct {
	Number    int64
	Kind, Key string  // of the job by which it was found
	Data      T       // the store's own
	Credit    float64 // turns that it may have before others, in a list from Next
	closed    time.Time
	changes   int  // that it has seen, of those of its queue
	told      int  // when somebody last told of it
	full      int  // how often in a row it had no room
	idle      bool // closed until a job falls due: one that comes earlier opens it
	credit    credit
}

// Full is how long it is passed when it has no room, unless somebody tells that it
// has: longer each time, because an end in another process does not tell.
func (g *Gate[T]) Full() time.Duration { return fullFor << min(g.full, 3) }

// Turns are those of all queues. The zero value is ready for use.
type Turns[T any] struct {
	mu     sync.Mutex
	rules  string // by which gates were closed
	queues map[string]*ring[T]
}

type ring[T any] struct {
	gates     []*Gate[T] // by number
	at        int64      // whose turn is next, or that of the next behind it
	left      int        // how much of it is left; 0: all
	whole     bool       // there are no others
	stale     bool       // there may be others since the last scan
	scanned   time.Time  // zero: never
	pause     time.Duration
	changes   []func(*T) // the last ones, for claims that are under way
	before    int        // how many came before those
	gone      map[int64]gone[T]
	time      float64 // turns that a gate has had that was always there
	fresh     credit  // of those that nobody knows
	tells     int     // how often somebody told of one of them
	scanTells int     // by the last scan
}

// gone is what the store remembers of a gate behind which nothing waited and from which
// nothing ran, for when it comes back.
type gone[T any] struct {
	data    T
	changes int // that it has seen
	credit  credit
}

func (t *Turns[T]) ring(queue string) *ring[T] {
	r := t.queues[queue]
	if r == nil {
		if t.queues == nil || len(t.queues) >= maxQueues {
			t.queues = map[string]*ring[T]{}
		}
		r = &ring[T]{at: math.MinInt64, fresh: credit{away: true}}
		t.queues[queue] = r
	}
	return r
}

func (r *ring[T]) find(number int64) (int, bool) {
	return slices.BinarySearchFunc(r.gates, number, func(g *Gate[T], n int64) int { return cmp.Compare(g.Number, n) })
}

// add puts a gate into the ring, if it fits, or opens it.
func (r *ring[T]) add(number int64, kind, key string) *Gate[T] {
	i, known := r.find(number)
	if known {
		r.gates[i].closed = time.Time{}
		r.tell(r.gates[i])
		r.gates[i].credit.come(r.time)
		return r.gates[i]
	}
	switch {
	case len(r.gates) >= Window:
		r.whole = false
		return nil
	case !r.whole && (len(r.gates) == 0 || number > r.gates[len(r.gates)-1].Number):
		return nil // the window comes to it
	}
	g := r.newGate(number, true)
	g.Kind, g.Key = kind, key
	r.tell(g)
	r.gates = slices.Insert(r.gates, i, g)
	return g
}

// put keeps a gate in the ring.
func (r *ring[T]) put(g *Gate[T]) {
	if i, known := r.find(g.Number); !known {
		r.gates = slices.Insert(r.gates, i, g)
	}
}

// tell notes that somebody told of a gate. Each time has a number of its own, so that a
// claim which began before sees that.
func (r *ring[T]) tell(g *Gate[T]) {
	r.tells++
	g.told = r.tells
}

// newGate makes a gate, which may have been there before. What the store remembers of it
// holds where somebody told what has changed since; a scan only knows that something waits.
func (r *ring[T]) newGate(number int64, remember bool) *Gate[T] {
	g := &Gate[T]{Number: number}
	if was, ok := r.gone[number]; ok {
		delete(r.gone, number)
		if g.credit = was.credit; remember {
			r.catchUp(&g.Data, was.data, was.changes)
		}
	} else { // all that are new share what one has missed: names that are always new have no more
		g.credit.left, r.fresh = r.fresh.at(r.time), credit{away: true, since: r.time}
	}
	g.credit.come(r.time)
	return g
}

// catchUp takes over what was remembered after some changes, with those that came since;
// with more of them than are kept it is not.
func (r *ring[T]) catchUp(data *T, was T, changes int) {
	missed := changes - r.before
	if missed < 0 || missed > len(r.changes) {
		return
	}
	*data = was
	for _, change := range r.changes[missed:] {
		change(data)
	}
}

// keep remembers a gate that leaves the ring.
func (r *ring[T]) keep(g *Gate[T], data T, changes int) {
	if r.gone == nil || len(r.gone) >= Window {
		r.gone = map[int64]gone[T]{}
	}
	g.credit.leave(r.time)
	r.gone[g.Number] = gone[T]{data, changes, g.credit}
}

// Note tells of a job that waits behind a gate. change is applied to what the store
// remembers of it.
func (t *Turns[T]) Note(queue string, number int64, kind, key string, change func(*T)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.queues[queue]
	if r == nil {
		return // the first look scans
	}
	if g := r.add(number, kind, key); g != nil && change != nil {
		change(&g.Data)
	}
}

// Change is for what the store remembers of every gate of a queue.
func (t *Turns[T]) Change(queue string, change func(*T)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.queues[queue]; r != nil {
		for _, g := range r.gates {
			change(&g.Data)
		}
		if r.changes = append(r.changes, change); len(r.changes) > maxChanges {
			r.changes = slices.Delete(r.changes, 0, 1)
			r.before++
		}
	}
}

// Open tells that fewer jobs run from some gates. It reports whether one was closed.
func (t *Turns[T]) Open(numbers ...int64) (opened bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.queues {
		for _, n := range numbers {
			if i, known := r.find(n); known {
				opened = opened || !r.gates[i].closed.IsZero()
				r.gates[i].closed = time.Time{}
				r.tell(r.gates[i])
			}
		}
	}
	return opened
}

// Under tells by which rules claims go now. With others what is closed may be open.
func (t *Turns[T]) Under(rules string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rules != rules {
		t.rules, t.queues = rules, nil
	}
}

// OpenFull tells that fewer jobs run of a limit that bounds jobs behind several gates.
func (t *Turns[T]) OpenFull() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.queues {
		for _, g := range r.gates {
			if g.full > 0 && !g.closed.IsZero() {
				g.closed, g.full = time.Time{}, 0
				r.tell(g)
			}
		}
	}
}

// Stale tells that a queue may have other gates, or what is closed be open; an empty
// name means every queue.
func (t *Turns[T]) Stale(queue string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, r := range t.queues {
		if queue == "" || name == queue {
			r.stale = true
		}
	}
}

// Drop forgets everything.
func (t *Turns[T]) Drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queues = nil
}

// Scan reports whether the gates of a queue are to be scanned, and behind which one
// the scan begins: the first is math.MinInt64.
func (t *Turns[T]) Scan(queue string, now time.Time) (after int64, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.ring(queue)
	since := now.Sub(r.scanned)
	switch {
	case r.scanned.IsZero() || since < 0:
	case r.passed() && since >= r.pause: // first: where scans are slow, or hints have no end, the others would never come
		r.scanTells = r.tells
		if n := len(r.gates); n > 0 {
			return r.gates[n-1].Number, true
		}
	case since >= max(ScanEvery, r.pause):
	case r.stale && since >= r.pause:
	default:
		return 0, false
	}
	r.stale, r.scanTells = false, r.tells // what is told from now on may not be seen
	if !r.whole && len(r.gates) > 0 {
		return r.gates[0].Number - 1, true
	}
	return math.MinInt64, true
}

// passed reports whether the window has had its turn.
func (r *ring[T]) passed() bool {
	return !r.whole && (len(r.gates) == 0 || r.at > r.gates[len(r.gates)-1].Number)
}

// Found is a gate that a scan met.
type Found struct {
	Number    int64
	Kind, Key string
}

// Found takes a scan over: what comes behind a gate, at most Window of them, whole
// when that is all. Those that it did not meet are forgotten, unless they are closed:
// what runs from there may come back. It took so long.
func (t *Turns[T]) Found(queue string, after int64, list []Found, whole bool, now time.Time, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.ring(queue)
	before := map[int64]*Gate[T]{}
	for _, g := range r.gates {
		before[g.Number] = g
	}
	r.gates = r.gates[:0:0]
	for _, f := range list {
		g := before[f.Number]
		if g == nil {
			g = r.newGate(f.Number, false)
		}
		delete(before, f.Number)
		r.tell(g)
		g.Kind, g.Key = f.Kind, f.Key
		g.credit.come(r.time)
		if g.idle { // there may be another job by now
			g.closed, g.idle = time.Time{}, false
		}
		r.gates = append(r.gates, g)
	}
	for _, g := range before {
		if n := len(r.gates); g.told > r.scanTells && (whole || n > 0 && g.Number < r.gates[n-1].Number) {
			defer r.put(g) // somebody told of it while the scan was under way, which may not have seen that
		} else {
			r.keep(g, g.Data, r.before+len(r.changes))
		}
	}
	if r.whole = whole && after == math.MinInt64; whole && !r.whole {
		r.at, r.left = math.MinInt64, 0 // the last window: the next is the first
		if len(r.gates) > 0 {
			r.at = r.gates[0].Number
		}
	}
	r.scanned, r.pause = now, scanPause*took
	if r.whole && len(r.gates) == 0 {
		r.at, r.left = math.MinInt64, 0
	}
}

// Next lists up to n gates that are not closed, in turn, and how much of the first
// one's turn is left: 0 means all. more: there are others, whose turn it is then.
func (t *Turns[T]) Next(queue string, n int, now time.Time) (list []Gate[T], left int, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.ring(queue)
	first, _ := r.find(r.at)
	rest := len(r.gates)
	if !r.whole { // no second turn of a gate before the other windows had theirs
		rest -= first
	}
	for i := range rest {
		if len(list) == n {
			break
		}
		g := r.gates[(first+i)%len(r.gates)]
		if g.closed.After(now) {
			continue
		}
		if len(list) == 0 && g.Number == r.at {
			left = r.left
		}
		list = append(list, *g)
		list[len(list)-1].changes = r.before + len(r.changes)
		list[len(list)-1].Credit = g.credit.at(r.time)
	}
	if !r.whole && len(list) == 0 && len(r.gates) > 0 && r.gates[len(r.gates)-1].Number < math.MaxInt64 {
		r.at, r.left = r.gates[len(r.gates)-1].Number+1, 0 // the window has had its turn
	}
	return list, left, !r.whole || len(list) == n
}

// Visit is what a claim found at a gate that it got from Next.
type Visit[T any] struct {
	Of     *Gate[T]
	Full   bool      // it had no room
	Idle   bool      // it is closed until its next job falls due
	Gone   bool      // neither waits nor runs a job there
	Closed time.Time // until then it is passed; zero: it is not
	Data   T
	Took   int // jobs
	Ahead  int // of those, on credit
	Weight int
}

// Settle takes visits over, and whose turn is next.
func (t *Turns[T]) Settle(queue string, visits []Visit[T], at int64, left int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.ring(queue)
	r.at, r.left = at, left
	pass(r, visits)
	for _, v := range visits {
		i, known := r.find(v.Of.Number)
		if !known {
			continue
		}
		if r.gates[i].full++; !v.Full {
			r.gates[i].full = 0
		}
		told := r.gates[i].told != v.Of.told // since the claim looked: it saw less than there is
		settle(&r.gates[i].credit, &v, told, r.time)
		switch {
		case v.Gone && !told:
			r.keep(r.gates[i], v.Data, v.Of.changes)
			r.gates = slices.Delete(r.gates, i, i+1)
		case !told:
			r.gates[i].closed, r.gates[i].idle = v.Closed, v.Idle
			r.catchUp(&r.gates[i].Data, v.Data, v.Of.changes)
		}
	}
}

// Wait is how long until the first closed gate of a queue opens by itself, or a scan
// is due that somebody asked for; 0 when neither comes.
func (t *Turns[T]) Wait(queue string, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	var first time.Time
	if r := t.queues[queue]; r != nil {
		for _, g := range r.gates {
			if !g.closed.IsZero() && (first.IsZero() || g.closed.Before(first)) {
				first = g.closed
			}
		}
	}
	if r := t.queues[queue]; r != nil && (r.stale || r.passed()) {
		if at := r.scanned.Add(r.pause); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	if first.IsZero() {
		return 0
	}
	return max(first.Sub(now), time.Millisecond)
}

// Some reports whether a queue is known to have gates.
func (t *Turns[T]) Some(queue string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.queues[queue]
	return r == nil || len(r.gates) > 0 || !r.whole
}
