package batch

// Flush makes what waits of a key ready now, whatever the policy says: for a caller who knows that no more will come.
// It starts when there is a place, and Flush does not wait for it. A policy with RejectWhenFull keeps its pace: then
// Flush does nothing.
func (b *Batcher[K, In, Out]) Flush(key K) {
	if b.fault != nil || b.options.Policy.reject {
		return
	}
	s := b.segmentOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	q, known := s.keys[key]
	if !known {
		return
	}
	for it := q.waiting.head; it != nil; it = it.next { // not only the first: it may leave before there is a place
		it.due = true
	}
	q.pump()
}
