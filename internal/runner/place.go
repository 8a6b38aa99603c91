package runner

import (
	"iter"
	"slices"
)

// place is where a task is. It is in one at a time, from the answer of its claim
// until its end is stored.
type place uint8

const (
	placeNone     place = iota // just claimed, or over
	placeFirst                 // claimed; its beginning has to be committed (begin.go): it goes before those that are ready
	placeReady                 // claimed, in the order to start
	placeSuspect               // it waits to run alone (alone.go)
	placeMarking               // its beginning is being committed; a slot is kept for it
	placeReserved              // it is being handed over (hand_over.go); a slot is kept for it
	placeRunning               // its handler runs
	placeEnding                // ended, until the next call to store ends
	placeInflight              // its end is on its way to the store
	placeWaiting               // ended, its job locked by an open transaction
	placeOver                  // finished in its own transaction: only the hook is left
	places        = iota
)

// takesSlot reports whether a slot of its queue is taken.
func (p place) takesSlot() bool { return placeMarking <= p && p <= placeRunning }

// unstored reports whether there is an end that the store does not have.
func (p place) unstored() bool { return placeEnding <= p && p <= placeWaiting }

// tasks is every task of a runner, by its place. Guarded by Runner.mu.
type tasks struct {
	lists    [places]list // but those of placeFirst and placeReady are each queue's own
	counts   [places]int
	held     int // in all places
	ends     int // that the store does not have
	endBytes int // their weight
}

// move puts a task behind all others of a place. Only move and moveFirst change a
// place, and with it what is counted.
func (s *tasks) move(t *Task, to place) {
	s.leave(t, to)
	if to != placeNone {
		s.list(t, to).push(t)
	}
}

// moveFirst puts it before them.
func (s *tasks) moveFirst(t *Task, to place) {
	s.leave(t, to)
	s.list(t, to).pushFirst(t)
}

// leave takes a task out of its place and counts it for the next.
func (s *tasks) leave(t *Task, to place) {
	from := t.place
	if from != placeNone {
		s.list(t, from).remove(t)
		s.counts[from]--
		s.held--
	}
	if t.place = to; to != placeNone {
		s.counts[to]++
		s.held++
	}
	if from.takesSlot() {
		t.queue.running--
	}
	if to.takesSlot() {
		t.queue.running++
	}
	if from.unstored() {
		s.ends--
		s.endBytes -= t.weight
	}
	if to.unstored() {
		s.ends++
		s.endBytes += t.weight
	}
}

func (s *tasks) list(t *Task, p place) *list {
	switch p {
	case placeFirst:
		return &t.queue.first
	case placeReady:
		return &t.queue.ready
	}
	return &s.lists[p]
}

// in is the tasks of a place that is not a queue's.
func (s *tasks) in(p place) iter.Seq[*Task] { return s.lists[p].all() }

// count is how many tasks the places hold together.
func (s *tasks) count(at ...place) int {
	n := 0
	for _, p := range at {
		n += s.counts[p]
	}
	return n
}

// list is tasks in their order. A task is in one at a time, and is itself the link:
// moving it allocates nothing.
type list struct {
	head, tail *Task
	n          int
}

func (l *list) len() int { return l.n }

func (l *list) push(t *Task) {
	t.before, t.after = l.tail, nil
	if l.tail == nil {
		l.head = t
	} else {
		l.tail.after = t
	}
	l.tail = t
	l.n++
}

func (l *list) pushFirst(t *Task) {
	t.before, t.after = nil, l.head
	if l.head == nil {
		l.tail = t
	} else {
		l.head.before = t
	}
	l.head = t
	l.n++
}

func (l *list) remove(t *Task) {
	if t.before == nil {
		l.head = t.after
	} else {
		t.before.after = t.after
	}
	if t.after == nil {
		l.tail = t.before
	} else {
		t.after.before = t.before
	}
	t.before, t.after = nil, nil
	l.n--
}

// all visits the tasks. The one that is visited may be moved meanwhile, no other.
func (l *list) all() iter.Seq[*Task] {
	return func(yield func(*Task) bool) {
		for t := l.head; t != nil; {
			after := t.after
			if !yield(t) {
				return
			}
			t = after
		}
	}
}

// where is a copy of the list with the tasks that match: they may be moved freely.
func (l *list) where(match func(*Task) bool) []*Task {
	var found []*Task
	for t := range l.all() {
		if match(t) {
			found = append(found, t)
		}
	}
	return found
}

func (l *list) copy() []*Task { return slices.AppendSeq(make([]*Task, 0, l.n), l.all()) }
