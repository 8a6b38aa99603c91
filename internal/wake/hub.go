package wake

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl/store"
)

// Hub hands hints to its subscriptions. All methods may be called from any
// goroutine.
type Hub struct {
	mu      sync.Mutex
	subs    []*Subscription
	healthy bool
}

// NewHub makes a hub without listener: not healthy until Service says so.
func NewHub() *Hub { return &Hub{} }

// Ready gives hints that come from this process.
func (h *Hub) Ready(hints ...store.Hint) { h.give(here, hints...) }

// Accepted gives hints of jobs of this process that its runner has counted
// (Runner.Accepted).
func (h *Hub) Accepted(hints ...store.Hint) { h.give(counted, hints...) }

// origin is where a hint comes from.
type origin uint8

const (
	counted origin = iota
	here
	outside // another process, where a throttle may have swallowed the hints that follow
)

// give merges hints into every subscription.
func (h *Hub) give(from origin, hints ...store.Hint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.subs {
		for i := range hints {
			s.add(from, &hints[i])
		}
	}
}

// Healthy reports whether a listener is running that hears of commits elsewhere.
func (h *Hub) Healthy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.healthy
}

// setHealthy tells every subscription of a change. Both ways ask for a look at
// everything: what was committed while nobody listened was not heard.
func (h *Hub) setHealthy(healthy bool) {
	h.mu.Lock()
	changed := h.healthy != healthy
	h.healthy = healthy
	h.mu.Unlock()
	if changed {
		h.Ready(store.Hint{})
	}
}

// Subscription collects the hints for some queues.
type Subscription struct {
	hub   *Hub
	token chan struct{}

	uncounted atomic.Bool // there are hints about jobs that the runner has not counted

	// Guarded by hub.mu.
	queues map[string]int // to its place in hinted
	hinted []Hinted
	heard  Heard
	match  func(queue string) bool // of others that are collected by name; nil: none
	found  []string                // those
	any    bool                    // a hint did not say which queue
}

// Subscribe collects hints for these queues from now on. Others are ignored.
func (h *Hub) Subscribe(queues ...string) *Subscription {
	s := &Subscription{hub: h, token: make(chan struct{}, 1)}
	s.set(queues)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs = append(h.subs, s)
	return s
}

// SubscribeMatching collects the names of hinted queues that match. It is called
// for every hint, under the hub's lock.
func (h *Hub) SubscribeMatching(match func(queue string) bool) *Subscription {
	s := h.Subscribe()
	h.mu.Lock()
	defer h.mu.Unlock()
	s.match = match
	return s
}

// maxMatching bounds the names that are collected between two Takes: of more it is
// only known that there were some.
const maxMatching = 1000

// TakeMatching removes and returns the names that were collected, and whether there
// were hints that may mean any queue.
func (s *Subscription) TakeMatching() (queues []string, any bool) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	queues, any = s.found, s.any
	s.found, s.any = nil, false
	return queues, any
}

// SetQueues collects for these queues instead, by their new places. What was
// hinted for those that stay is kept.
func (s *Subscription) SetQueues(queues ...string) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.set(queues)
}

func (s *Subscription) set(queues []string) {
	before, hinted := s.queues, s.hinted
	s.queues, s.hinted = make(map[string]int, len(queues)), make([]Hinted, len(queues))
	for i, q := range queues {
		s.queues[q] = i
		if was, ok := before[q]; ok {
			s.hinted[i] = hinted[was]
		}
	}
}

// Close ends the subscription. It is idempotent.
func (s *Subscription) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.subs = slices.DeleteFunc(s.hub.subs, func(other *Subscription) bool { return other == s })
}

// C holds a token when there is something to Take.
func (s *Subscription) C() <-chan struct{} { return s.token }

// Uncounted reports whether there are hints about jobs to Take that the runner has not
// counted.
func (s *Subscription) Uncounted() bool { return s.uncounted.Load() }

// Hinted is what was heard of one queue.
type Hinted struct {
	some bool
	from origin
	Due  time.Time // the lowest of the hints, by the store's clock; zero means now
}

// Counted reports whether all of it is jobs that the runner has counted.
func (h Hinted) Counted() bool { return h.from == counted }

// Outside reports whether some of it came from another process.
func (h Hinted) Outside() bool { return h.from == outside }

// Heard is what Take found besides the queues, by subject.
type Heard struct {
	Job     bool // a run may have been asked to cancel, or a job have ended
	Members bool // a worker with totals came, left or was lost
	Setting bool // something may have been declared, set or paused
	Topic   bool // events may have been appended
	Intent  bool // a transaction may have left intents
	Group   bool // a group may have news for its members
	Delay   bool // events may have been accepted that are not due yet
}

// Take removes what was hinted. It calls ready for each hinted queue, by its
// place in Subscribe or SetQueues; nil drops them. ready must not call the hub.
func (s *Subscription) Take(ready func(queue int, what Hinted)) Heard {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for i := range s.hinted {
		if s.hinted[i].some {
			if ready != nil {
				ready(i, s.hinted[i])
			}
			s.hinted[i] = Hinted{}
		}
	}
	s.uncounted.Store(false)
	heard := s.heard
	s.heard = Heard{}
	select {
	case <-s.token:
	default:
	}
	return heard
}

// add merges one hint. The caller holds hub.mu.
func (s *Subscription) add(from origin, hint *store.Hint) {
	switch hint.Subject {
	case store.SubjectQueue:
		if !s.hintQueue(from, hint) {
			return
		}
	case store.SubjectJob:
		s.heard.Job = true
	case store.SubjectMembers:
		s.heard.Members = true
	case store.SubjectSetting:
		s.heard.Setting = true
	case store.SubjectTopic:
		s.heard.Topic = true
	case store.SubjectIntent:
		s.heard.Intent = true
	case store.SubjectGroup:
		s.heard.Group = true
	case store.SubjectDelay:
		s.heard.Delay = true
	case store.SubjectAll:
		s.hintQueue(from, &store.Hint{Due: hint.Due})
		s.heard = Heard{Job: true, Members: true, Setting: true, Topic: true, Intent: true, Delay: true, Group: true}
	default:
		return
	}
	select {
	case s.token <- struct{}{}:
	default:
	}
}

// hintQueue notes what became ready: in one queue, or in any of them where the
// hint has no name. It reports whether one of the subscription's may be meant.
func (s *Subscription) hintQueue(from origin, hint *store.Hint) bool {
	if hint.Name == "" {
		for i := range s.hinted {
			s.merge(i, from, hint.Due)
		}
		s.any = true
		return true
	}
	i, mine := s.queues[hint.Name]
	if mine {
		s.merge(i, from, hint.Due)
	}
	if s.match == nil || !s.match(hint.Name) {
		return mine
	}
	switch {
	case len(s.found) >= maxMatching:
		s.any = true
	case !slices.Contains(s.found, hint.Name):
		s.found = append(s.found, hint.Name)
	}
	return true
}

func (s *Subscription) merge(i int, from origin, due time.Time) {
	h := &s.hinted[i]
	if !h.some || due.Before(h.Due) {
		h.Due = due
	}
	h.some, h.from = true, max(h.from, from)
	if from != counted {
		s.uncounted.Store(true)
	}
}
