package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/internal/consumer"
	"github.com/pawlwork/pawl/stream"
	"github.com/pawlwork/pawl/stream/memory"
)

// lab is a backend in memory and in a bubble, with what its subscriptions did.
type lab struct {
	*testing.T
	backend *memory.Backend
	faulty  *faulty

	mu       sync.Mutex
	troubles []consumer.Trouble
	runs     []run
	now      int // handlers that run
	most     int // that ran at once
}

// run is one call of a handler with one event.
type run struct {
	id       string
	failures int
	at       time.Duration // since the lab began
}

func inLab(t *testing.T, o memory.Options, test func(l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(o)
		test(&lab{T: t, backend: b, faulty: &faulty{Backend: b}})
	})
}

// faulty is a backend whose feeds can be told to fail, and that keeps what was asked of it.
type faulty struct {
	stream.Backend
	mu    sync.Mutex
	join  func() error
	next  func(settled []stream.Settlement, want stream.Want) error // before it
	wait  func() error
	leave func() error
	wants []stream.Want
	calls int
}

type faultyFeed struct {
	stream.Feed
	f *faulty
}

func (f *faulty) Join(ctx context.Context, m stream.Membership) (stream.Feed, error) {
	if f.join != nil {
		if err := f.join(); err != nil {
			return nil, err
		}
	}
	feed, err := f.Backend.Join(ctx, m)
	return &faultyFeed{feed, f}, err
}

func (f *faultyFeed) Next(ctx context.Context, settled []stream.Settlement, want stream.Want) ([]stream.Delivery, error) {
	f.f.mu.Lock()
	f.f.calls++
	f.f.wants = append(f.f.wants, want)
	next := f.f.next
	f.f.mu.Unlock()
	if next != nil {
		if err := next(settled, want); err != nil {
			return nil, err
		}
	}
	return f.Feed.Next(ctx, settled, want)
}

func (f *faultyFeed) Wait(ctx context.Context) error {
	if f.f.wait != nil {
		if err := f.f.wait(); err != nil {
			return err
		}
	}
	return f.Feed.Wait(ctx)
}

func (f *faultyFeed) Leave(ctx context.Context, settled []stream.Settlement) error {
	if f.f.leave != nil {
		if err := f.f.leave(); err != nil {
			return err
		}
	}
	return f.Feed.Leave(ctx, settled)
}

// hold lets no Next of a subscription through while do runs.
func (l *lab) hold(do func()) {
	free := make(chan struct{})
	l.faulty.mu.Lock()
	l.faulty.next = func([]stream.Settlement, stream.Want) error { <-free; return nil }
	l.faulty.mu.Unlock()
	do()
	l.faulty.mu.Lock()
	l.faulty.next = nil
	l.faulty.mu.Unlock()
	close(free)
}

// publish appends events of a topic, one for each id; "id@key" has a key.
func (l *lab) publish(topic string, ids ...string) {
	l.Helper()
	var list []stream.Publication
	for _, id := range ids {
		p := stream.Publication{Event: stream.Event{ID: id, Topic: topic}}
		if name, key, ok := cut(id); ok {
			p.ID, p.Key = name, key
		}
		list = append(list, p)
	}
	if _, err := l.backend.Publish(l.Context(), list); err != nil {
		l.Fatal(err)
	}
}

func cut(id string) (name, key string, ok bool) {
	for i := range id {
		if id[i] == '@' {
			return id[:i], id[i+1:], true
		}
	}
	return id, "", false
}

// numbers are ids.
func numbers(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprint(i))
	}
	return ids
}

// config is that of a subscription of everything on t.
func (l *lab) config(h consumer.HandlerFunc, edit ...func(*consumer.Config)) consumer.Config {
	match, err := stream.Filter{Topic: "t.>"}.Matcher()
	if err != nil {
		l.Fatal(err)
	}
	began := time.Now()
	c := consumer.Config{
		Backend: l.faulty, Membership: stream.Membership{Group: "g", Match: match},
		Backoff: func(f consumer.Failed) time.Duration { return time.Duration(f.Failures) * time.Second },
		Observe: func(t consumer.Trouble) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.troubles = append(l.troubles, t)
		},
	}
	c.Handler = consumer.HandlerFunc(func(ctx context.Context, m *consumer.Message) error {
		l.mu.Lock()
		l.runs = append(l.runs, run{m.Event.ID, m.Failures, time.Since(began)})
		l.now++
		l.most = max(l.most, l.now)
		l.mu.Unlock()
		defer func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.now--
		}()
		return h(ctx, m)
	})
	for _, f := range edit {
		f(&c)
	}
	return c
}

// subscription is one that runs.
type subscription struct {
	*consumer.Consumer
	l     *lab
	ended chan error
}

func (l *lab) start(c consumer.Config) *subscription {
	l.Helper()
	return l.startIn(l.Context(), c)
}

func (l *lab) startIn(ctx context.Context, c consumer.Config) *subscription {
	l.Helper()
	s, err := consumer.New(c)
	if err != nil {
		l.Fatal(err)
	}
	sub := &subscription{s, l, make(chan error, 1)}
	go func() { sub.ended <- s.Run(context.WithoutCancel(ctx)) }()
	synctest.Wait()
	return sub
}

// subscribe starts a subscription of everything.
func (l *lab) subscribe(h consumer.HandlerFunc, edit ...func(*consumer.Config)) *subscription {
	l.Helper()
	return l.start(l.config(h, edit...))
}

// close ends it within a minute, without an error.
func (s *subscription) close() {
	s.l.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		s.l.Errorf("close: %v", err)
	}
	if s.Running() {
		s.l.Error("it runs after it was closed")
	}
	if err := <-s.ended; err != nil {
		s.l.Errorf("run: %v", err)
	}
}

// takes is how long a handler or a backend needs.
func takes(d time.Duration) { time.Sleep(d) } // virtual: the work

// after lets virtual time pass, and all that it brings.
func after(d time.Duration) {
	time.Sleep(d) // virtual: time that passes
	synctest.Wait()
}

func (l *lab) ids() (ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.runs {
		ids = append(ids, r.id)
	}
	return ids
}

// atOnce is how many handlers ran together at most.
func (l *lab) atOnce() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.most
}

// sorted are the ids of what ran, of which some ran at once.
func (l *lab) sorted() []string { return slices.Sorted(slices.Values(l.ids())) }

func (l *lab) scopes() (list []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.troubles {
		list = append(list, t.Scope.String())
	}
	return list
}

// left is what the group has not settled, as a member that comes afterwards sees it.
func (l *lab) left() map[string]int {
	l.Helper()
	match, _ := stream.Filter{Topic: "t.>"}.Matcher()
	for _, mode := range []stream.Mode{stream.Competing, stream.Ordered} {
		feed, err := l.backend.Join(l.Context(), stream.Membership{Group: "g", Match: match, Mode: mode})
		if err != nil {
			continue
		}
		after(time.Hour) // virtual: every retry is due
		got := map[string]int{}
		for {
			list, err := feed.Next(l.Context(), nil, stream.Want{N: 1000, Idle: true})
			if err != nil {
				l.Fatal(err)
			}
			for _, d := range list {
				got[d.Event.ID] = d.Failures
			}
			if len(list) == 0 || list[0].Alone {
				break
			}
		}
		if err := feed.Leave(l.Context(), nil); err != nil {
			l.Fatal(err)
		}
		return got
	}
	l.Fatal("nobody can join")
	return nil
}

func (l *lab) parked() (list []string) {
	for _, p := range l.backend.Parked("g") {
		list = append(list, fmt.Sprintf("%s after %d: %s", p.Event.ID, p.Failures, p.Reason))
	}
	slices.Sort(list)
	return list
}

func ordered(c *consumer.Config) { c.Membership.Mode = stream.Ordered }

func equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

var errBroken = errors.New("broken")

func fine(context.Context, *consumer.Message) error { return nil }

func fails(context.Context, *consumer.Message) error { return errBroken }
