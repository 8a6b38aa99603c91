// Package feedtest holds the groups of a store against streamtest.
package feedtest

import (
	"context"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/feed"
	"github.com/pawlwork/pawl/internal/tail"
	"github.com/pawlwork/pawl/internal/wake"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/stream"
	"github.com/pawlwork/pawl/stream/streamtest"
)

// Grouping is a store whose groups are tested.
type Grouping interface {
	store.Store
	store.Groups
	store.GroupObjects
}

// Fixture is an empty store as streamtest wants it. spoil makes the newest event one that
// cannot be read.
func Fixture(t testing.TB, o store.Opener, spoil func(t testing.TB, s store.Store)) streamtest.Fixture {
	t.Helper()
	return fixture(backendOf(t, o), spoil)
}

// Shared is one whose members live in several processes, in turn: each opener opens the same
// store once more.
func Shared(t testing.TB, spoil func(t testing.TB, s store.Store), openers ...store.Opener) streamtest.Fixture {
	t.Helper()
	all := &several{of: map[[2]string]*Backend{}}
	var f streamtest.Fixture
	for i, o := range openers {
		b := backendOf(t, o)
		all.list = append(all.list, b)
		if i == 0 {
			f = fixture(b, spoil)
		}
	}
	f.Backend, f.Kill = all, all.kill
	return f
}

// backendOf makes a backend of a store, which is checked and closed with the test.
func backendOf(t testing.TB, o store.Opener) *Backend {
	t.Helper()
	st, err := o.Open(t.Context(), store.Settings{LostAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s := st.(Grouping)
	t.Cleanup(func() {
		Check(t, s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return New(t, s)
}

func fixture(b *Backend, spoil func(t testing.TB, s store.Store)) streamtest.Fixture {
	return streamtest.Fixture{
		Backend: b, Kill: b.Kill,
		Parked: func(t testing.TB, group string) []stream.Parked {
			list, err := b.store.ParkedEvents(context.Background(), group, store.ParkedAfter{}, 1000)
			if err != nil && group == "g" {
				t.Error(err)
			}
			return list
		},
		PutBad: func(t testing.TB, topic, key string, data []byte) {
			e := stream.Publication{Event: stream.Event{ID: "bad", Topic: topic, Key: key, Data: data, Headers: map[string]string{"a": "b"}}}
			if _, err := b.Publish(context.Background(), []stream.Publication{e}); err != nil {
				t.Fatal(err)
			}
			spoil(t, b.store)
		},
		Versioned: versioned,
	}
}

// versioned is a topic whose keys have versions.
const versioned = "accounts.opened"

// Publish implements stream.Backend. What is delayed is appended when it is due: a process
// that runs does that by itself.
func (b *Backend) Publish(ctx context.Context, drafts []stream.Publication) ([]stream.PublishReply, error) {
	for i := range drafts {
		drafts[i].Versioned = drafts[i].Topic == versioned
	}
	replies, err := b.Backend.Publish(ctx, drafts)
	for i := range replies {
		if replies[i].Delayed {
			wait := max(drafts[i].In, time.Until(drafts[i].At)) + time.Millisecond
			time.AfterFunc(wait, func() {
				_, _ = b.store.(store.Delays).AppendDue(context.Background(), 100) // the case sees what is missing
				b.hub.Ready(store.Hint{Subject: store.SubjectTopic})
			})
		}
	}
	return replies, err
}

// Check fails the test where a rule of the store is broken.
func Check(t testing.TB, s store.Store) {
	t.Helper()
	report, err := s.Check(context.Background(), store.Check{})
	if err != nil || len(report.Faults) > 0 {
		t.Errorf("check: %v, %v", report.Faults, err)
	}
}

// Backend is a process with members, of which tests take one for dead.
type Backend struct {
	*feed.Backend
	store Grouping
	hub   *wake.Hub
	hands map[[2]string]func() int64
}

// New registers a worker and makes a backend of it.
func New(t testing.TB, s Grouping) *Backend {
	t.Helper()
	id, err := s.Register(context.Background(), store.Worker{Label: "feedtest", LostAfter: time.Hour, Offer: job.Offer{}})
	if err != nil {
		t.Fatal(err)
	}
	hub := wake.NewHub()
	b := feed.New(feed.Config{
		Store: s, Hub: hub, Tail: tail.New(s, hub, time.Second), Worker: func(context.Context) (job.WorkerID, error) { return id, nil },
		Ahead: 1, // few events are enough for it
	})
	return &Backend{b, s, hub, map[[2]string]func() int64{}}
}

// Join implements stream.Backend.
func (b *Backend) Join(ctx context.Context, m stream.Membership) (stream.Feed, error) {
	f, err := b.Backend.Join(ctx, m)
	if err == nil {
		b.hands[[2]string{m.Group, m.Member}] = func() int64 { return f.(*feed.Feed).Hand().ID }
	}
	return f, err
}

// Kill takes a member for dead.
func (b *Backend) Kill(t testing.TB, group, member string) {
	t.Helper()
	n, err := b.store.LoseMembers(context.Background(), store.LoseMembers{Hands: []int64{b.hands[[2]string{group, member}]()}})
	if err != nil || n != 1 {
		t.Errorf("%d members of %s are lost, %v", n, group, err)
	}
	b.Backend.Nudge()
}

// Exec runs a statement through a transaction of the store's own.
func Exec(t testing.TB, s store.Store, text string, args ...any) {
	t.Helper()
	ctx := context.Background()
	tx, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, text, args...); err != nil {
		_ = tx.Rollback(ctx)
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
}
