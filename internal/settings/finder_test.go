package settings_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/internal/settings"
	"github.com/pawlwork/pawl/internal/wake"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/supervise"
)

// queues is a store of which only the queues with waiting jobs are known.
type queues struct {
	mu    sync.Mutex
	names []string // in order
	looks int
}

func (q *queues) WaitingQueues(_ context.Context, after string, limit int) ([]string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.looks++
	i, found := slices.BinarySearch(q.names, after)
	if found {
		i++
	}
	return slices.Clone(q.names[i:min(i+limit, len(q.names))]), nil
}

func (q *queues) set(names ...string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	slices.Sort(names)
	q.names = names
}

// finding runs a finder of "mail.*", while a test changes the queues.
func finding(t *testing.T, test func(t *testing.T, q *queues, f *settings.Finder, hub *wake.Hub), change ...func(*settings.FinderConfig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q, hub := &queues{}, wake.NewHub()
		c := settings.FinderConfig{
			Store: q, Hub: hub, Logger: slog.New(slog.DiscardHandler), Patterns: []string{"mail.*"}, Named: []string{"mail.own"},
			Poll: 5 * time.Second, PollOnly: 500 * time.Millisecond, Holds: func(string) bool { return false }, Changed: func() {},
		}
		for _, f := range change {
			f(&c)
		}
		f := settings.NewFinder(c)
		stop := running(t, f.Service())
		defer stop()
		test(t, q, f, hub)
	})
}

func running(t *testing.T, s supervise.Service) (stop func()) {
	tree, err := supervise.New(supervise.Config{Logger: slog.New(slog.DiscardHandler), Services: []supervise.Service{s}})
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return func() { tree.Stop(context.Background()) }
}

func pass(d time.Duration) {
	time.Sleep(d) // virtual: so much time passes
	synctest.Wait()
}

func TestJ30_QueuesThatMatchAreFoundAndDroppedWhenEmpty(t *testing.T) {
	changes := 0
	finding(t, func(t *testing.T, q *queues, f *settings.Finder, hub *wake.Hub) {
		q.set("mail.a", "mail.own", "video")
		hub.Ready(store.Hint{Subject: store.SubjectQueue, Name: "mail.b"}, store.Hint{Subject: store.SubjectQueue, Name: "video"})
		synctest.Wait()
		if got := f.Found(); !slices.Equal(got, []string{"mail.b"}) {
			t.Errorf("a hint that names a queue is enough: found %v", got)
		}
		pass(time.Second)
		if got := f.Found(); !slices.Equal(got, []string{"mail.a", "mail.b"}) {
			t.Errorf("found %v", got)
		}
		pass(58 * time.Second)
		if got := f.Found(); len(got) != 2 {
			t.Errorf("dropped before a minute: %v", got)
		}
		pass(3 * time.Second)
		if got := f.Found(); !slices.Equal(got, []string{"mail.a"}) {
			t.Errorf("found %v after mail.b has been empty for a minute", got)
		}
		pass(10 * time.Minute)
		if changes != 3 {
			t.Errorf("told of %d changes, want 3: mail.b came and went, and mail.a came", changes)
		}
	}, func(c *settings.FinderConfig) { c.Changed = func() { changes++ } })
}

func TestJ30_AQueueWhoseJobsAreHeldHereIsNotDropped(t *testing.T) {
	finding(t, func(t *testing.T, q *queues, f *settings.Finder, hub *wake.Hub) {
		hub.Ready(store.Hint{Subject: store.SubjectQueue, Name: "mail.long"})
		pass(10 * time.Minute)
		if got := f.Found(); len(got) != 1 {
			t.Errorf("found %v", got)
		}
	}, func(c *settings.FinderConfig) { c.Holds = func(q string) bool { return q == "mail.long" } })
}

// There may be more queues than one look lists and than are served.
func TestP10_QueuesFoundAreBounded(t *testing.T) {
	var log strings.Builder
	finding(t, func(t *testing.T, q *queues, f *settings.Finder, hub *wake.Hub) {
		var names []string
		for i := range 3 * settings.MaxFound {
			names = append(names, fmt.Sprintf("other.%04d", i))
		}
		q.set(append(names, "zmail.1", "mail.0", "mail.9")...)
		pass(3 * time.Second)
		if got := f.Found(); !slices.Equal(got, []string{"mail.0", "mail.9", "zmail.1"}) {
			t.Errorf("behind 3,000 queues of others: found %v", got)
		}
		pass(5 * time.Minute)
		if got := f.Found(); len(got) != 3 {
			t.Errorf("dropped although they have jobs: %v", got)
		}
		for i := range names {
			names[i] = fmt.Sprintf("mail.%04d", i)
		}
		q.set(names...)
		pass(5 * time.Minute)
		if n := len(f.Found()); n != settings.MaxFound {
			t.Errorf("found %d queues, want %d at most", n, settings.MaxFound)
		}
		if n := strings.Count(log.String(), "more queues match"); n < 1 || n > 2 {
			t.Errorf("told %d times", n)
		}
	}, func(c *settings.FinderConfig) {
		c.Patterns = []string{"mail.*", "zmail.*"}
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
}

// A listener that cannot say which queue costs a look each time, within bounds.
func TestJ30_HintsOfAnyQueueAreLookedAfterSeldom(t *testing.T) {
	finding(t, func(t *testing.T, q *queues, f *settings.Finder, hub *wake.Hub) {
		before := q.looks
		for range 100 {
			hub.Ready(store.Hint{Subject: store.SubjectQueue})
			pass(10 * time.Millisecond)
		}
		if n := q.looks - before; n > 3 {
			t.Errorf("%d looks in a second of hints", n)
		}
	})
}

// answers is a store whose settings a test changes.
type answers struct {
	store.Control
	mu    sync.Mutex
	reply store.SettingsReply
	err   error
	reads int
}

func (a *answers) Settings(context.Context) (store.SettingsReply, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reads++
	return a.reply, a.err
}

func (a *answers) set(revision int64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reply.Revision, a.err = revision, err
}

func TestJ30_AChangeIsReadOnceHoweverItIsHeardOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, hub := &answers{}, wake.NewHub()
		a.set(1, nil)
		var told []int64
		f := settings.NewMirror(a, hub, slog.New(slog.DiscardHandler), func(e *store.Effective) { told = append(told, e.Revision) })
		defer f.Close()
		defer running(t, f.Service())()
		f.Heard(1)
		synctest.Wait()
		f.Heard(1)
		f.Heard(1)
		pass(time.Hour)
		if a.reads != 1 || !slices.Equal(told, []int64{1}) {
			t.Errorf("%d reads, told %v", a.reads, told)
		}
		a.set(2, errors.New("down"))
		hub.Ready(store.Hint{Subject: store.SubjectSetting})
		pass(time.Minute)
		if f.Known().Revision != 1 {
			t.Errorf("knows %+v", f.Known())
		}
		a.set(2, nil) // nobody tells again: a look that failed is repeated
		pass(3 * time.Second)
		reads := a.reads
		if f.Known().Revision != 2 || !slices.Equal(told, []int64{1, 2}) {
			t.Errorf("told %v", told)
		}
		hub.Ready(store.Hint{Subject: store.SubjectQueue, Name: "q"}, store.Hint{Subject: store.SubjectJob})
		pass(time.Hour)
		if a.reads != reads {
			t.Errorf("%d reads for hints of jobs", a.reads-reads)
		}
	})
}

func TestJ30_RefreshDelaysNobodyAndIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{}
		a.set(1, nil)
		f := settings.NewMirror(a, wake.NewHub(), slog.New(slog.DiscardHandler), func(*store.Effective) {})
		a.mu.Lock() // the store hangs
		for range 100 {
			f.Refresh()
		}
		a.mu.Unlock()
		synctest.Wait()
		if a.reads != 1 {
			t.Errorf("%d reads at once", a.reads)
		}
		f.Refresh()
		pass(999 * time.Millisecond)
		f.Refresh()
		synctest.Wait()
		if a.reads != 1 {
			t.Errorf("%d reads within a second", a.reads)
		}
		pass(time.Millisecond)
		f.Refresh()
		synctest.Wait()
		f.Close()
		if a.reads != 2 {
			t.Errorf("%d reads after a second", a.reads)
		}
		f.Refresh()
		synctest.Wait()
		if a.reads != 2 {
			t.Errorf("a closed one reads")
		}
	})
}
