package batch

import (
	"container/heap"
	"time"
)

// deadlines is a heap of the keys whose first waiting item will be due. One timer per segment serves them all, and it is
// set only when the earliest deadline moves forward: a batch that fills up in time costs no timer. A timer that rings
// for a key that was served, or is gone, finds a later deadline or none, and does nothing.
type deadlines[K comparable, In, Out any] []*keyQueue[K, In, Out]

// schedule keeps the deadline of q true after any change of its line. The segment's lock is held.
func (s *segment[K, In, Out]) schedule(q *keyQueue[K, In, Out]) {
	if s.owner.wait == 0 {
		return
	}
	if q.waiting.count == 0 || q.ready() {
		if q.position >= 0 {
			heap.Remove(&s.deadlines, q.position)
		}
		return
	}
	deadline := q.waiting.head.arrived + s.owner.wait
	switch {
	case q.position < 0:
		q.deadline = deadline
		heap.Push(&s.deadlines, q)
	case q.deadline != deadline:
		q.deadline = deadline
		heap.Fix(&s.deadlines, q.position)
	default:
		return
	}
	s.setAlarm()
}

// setAlarm makes the timer ring no later than the earliest deadline.
func (s *segment[K, In, Out]) setAlarm() {
	if len(s.deadlines) == 0 {
		return
	}
	earliest := s.deadlines[0].deadline
	if s.rings != 0 && s.rings <= earliest {
		return
	}
	s.rings = earliest
	after := earliest - s.owner.now()
	if s.alarm == nil {
		s.alarm = time.AfterFunc(after, s.ring)
		return
	}
	s.alarm.Reset(after)
}

// ring starts the batches whose first item is due.
func (s *segment[K, In, Out]) ring() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rings = 0
	now := s.owner.now()
	for len(s.deadlines) > 0 && s.deadlines[0].deadline <= now {
		q := heap.Pop(&s.deadlines).(*keyQueue[K, In, Out])
		q.waiting.head.due = true
		q.pump()
	}
	s.setAlarm()
}

func (d deadlines[K, In, Out]) Len() int           { return len(d) }
func (d deadlines[K, In, Out]) Less(i, j int) bool { return d[i].deadline < d[j].deadline }
func (d deadlines[K, In, Out]) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].position, d[j].position = i, j
}

func (d *deadlines[K, In, Out]) Push(x any) {
	q := x.(*keyQueue[K, In, Out])
	q.position = len(*d)
	*d = append(*d, q)
}

func (d *deadlines[K, In, Out]) Pop() any {
	last := len(*d) - 1
	q := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	q.position = -1
	return q
}
