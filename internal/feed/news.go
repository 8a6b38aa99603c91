package feed

import (
	"context"
	"sync"
	"time"

	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
)

// news looks for all members of this process that wait at once whether their groups have
// news: when something happened here, when another process says so, and every poll. Its loop
// runs while somebody waits.
type news struct {
	b *Backend

	mu      sync.Mutex
	waiting map[*listener]bool
	looking bool
	come    chan struct{}
}

// listener is one call of Wait.
type listener struct {
	feed  *Feed
	seen  seen
	ready chan error // holds one
}

func (n *news) init(b *Backend) {
	n.b, n.waiting, n.come = b, map[*listener]bool{}, make(chan struct{}, 1)
}

// changed says that something has happened to a group.
func (n *news) changed() {
	select {
	case n.come <- struct{}{}:
	default:
	}
}

// listen adds a call of Wait, and starts the loop.
func (n *news) listen(l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting[l] = true
	if !n.looking {
		n.looking = true
		go n.look()
	}
	n.changed()
}

func (n *news) leave(l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.waiting, l)
	n.changed() // the loop ends when nobody is left
}

func (n *news) look() {
	hints := n.b.config.Hub.Subscribe()
	defer hints.Close()
	timer := time.NewTimer(n.b.config.Poll)
	defer timer.Stop()
	for {
		n.mu.Lock()
		list := make([]*listener, 0, len(n.waiting))
		for l := range n.waiting {
			list = append(list, l)
		}
		n.looking = len(list) > 0
		n.mu.Unlock()
		if len(list) == 0 {
			return
		}
		pause := min(n.b.config.Poll, n.lookOnce(list))
		timer.Reset(pause)
		for due := false; !due; {
			select {
			case <-hints.C():
				due = hints.Take(nil).Group
			case <-n.come:
				due = true
			case <-timer.C:
				due = true
			}
		}
	}
}

// lookOnce asks for all that wait, wakes whom it concerns, and says when the next of what
// waits is due. While the store does not answer nobody is woken.
func (n *news) lookOnce(list []*listener) (next time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	next = n.b.config.Poll
	for len(list) > 0 {
		some := list[:min(len(list), store.MaxEventPage)]
		list = list[len(some):]
		hands := make([]store.Hand, len(some))
		for i, l := range some {
			hands[i] = l.feed.Hand()
		}
		answers, err := n.b.groups.GroupNews(ctx, hands)
		if err != nil {
			return next
		}
		now := time.Now()
		for i, l := range some {
			a := &answers[i]
			switch {
			case a.Gone:
				l.tell(stream.ErrFeedLost)
			case a.Version != l.seen.version || l.seen.due(now):
				l.tell(nil)
			case a.Next >= 0:
				next = min(next, max(a.Next, time.Millisecond))
			}
			if in := l.seen.in(now); in > 0 {
				next = min(next, in)
			}
		}
	}
	return next
}

func (l *listener) tell(err error) {
	select {
	case l.ready <- err:
	default:
	}
}

// in is when something is due of which the last Next knew; 0: now, or nothing is.
func (s *seen) in(now time.Time) time.Duration {
	if s.next < 0 {
		return 0
	}
	return max(0, s.at.Add(s.next).Sub(now))
}

// due reports whether that has become due since.
func (s *seen) due(now time.Time) bool { return s.next >= 0 && !now.Before(s.at.Add(s.next)) }

// Wait implements stream.Feed.
func (f *Feed) Wait(ctx context.Context) error {
	f.mu.Lock()
	gone, s := f.gone, f.seen
	f.mu.Unlock()
	switch {
	case gone:
		return stream.ErrFeedLost
	case !s.any:
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := &listener{feed: f, seen: s, ready: make(chan error, 1)}
	f.b.news.listen(l)
	defer f.b.news.leave(l)
	moved := make(chan error, 1)
	go func() { moved <- f.b.config.Tail.Wait(ctx, s.head, f.membership.Match.Pattern) }()
	var err error
	select {
	case err = <-l.ready:
		cancel(nil)
		<-moved
	case err = <-moved:
	}
	if err == nil {
		return nil
	}
	if err == stream.ErrFeedLost {
		return f.failed(err)
	}
	return err
}
