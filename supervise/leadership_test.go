package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlwork/pawl/supervise"
)

// lease is a Leadership whose answer the test sets.
type lease struct {
	mu      sync.Mutex
	mine    bool
	err     error
	asked   int
	changed chan struct{}
}

func newLease(mine bool) *lease { return &lease{mine: mine, changed: make(chan struct{})} }

func (l *lease) Mine(context.Context, string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	return l.mine, l.err
}

func (l *lease) Changed(string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

func (l *lease) set(mine bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mine, l.err = mine, err
	close(l.changed)
	l.changed = make(chan struct{})
}

func TestS8_TickThatIsNotMineIsSkippedQuietly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logbook
		leader := newLease(false)
		starts := newTrace[int]()
		tree := startConfig(t, supervise.Config{Logger: log.logger(), Services: []supervise.Service{
			supervise.Every("tick", 10*time.Second, func(context.Context) error { starts.add(0); return nil }, supervise.OnlyIfMine(leader)),
		}})
		time.Sleep(25 * time.Second)
		if err := tree.Wake("tick"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := status(t, tree, "tick"); s.Skipped != 4 || s.Cycles != 0 || s.Errors != 0 {
			t.Errorf("%+v, want 4 skipped (0s, 10s, 20s, the wake), no cycle and no error", s)
		}
		if _, at := starts.all(); len(at) != 0 {
			t.Errorf("ran at %v though it is not mine", at)
		}
		if records := log.records(t, ""); len(records) != 0 {
			t.Errorf("logged %v, want nothing", records)
		}
	})
}

func TestS8_TickRunsAsSoonAsItBecomesMine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader := newLease(false)
		starts := newTrace[int]()
		start(t, supervise.Every("tick", time.Hour, func(context.Context) error { starts.add(0); return nil }, supervise.OnlyIfMine(leader)))
		time.Sleep(7 * time.Second)
		leader.set(true, nil)
		time.Sleep(time.Second)
		leader.set(false, nil) // lost and won again: it has run within the hour, so it is not due
		time.Sleep(time.Second)
		leader.set(true, nil)
		time.Sleep(time.Hour)
		if _, at := starts.all(); !slices.Equal(at, seconds(7, 3607)) {
			t.Errorf("ran at %v, want 7s and an hour later", at)
		}
	})
}

func TestS8_LeadershipThatCannotAnswerIsAnErrorAndNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logbook
		leader := newLease(true)
		leader.set(true, errBoom)
		tree := startConfig(t, supervise.Config{Logger: log.logger(), Services: []supervise.Service{
			supervise.Every("tick", time.Second, nothing, supervise.OnlyIfMine(leader)),
		}})
		synctest.Wait()
		if s := status(t, tree, "tick"); s.Cycles != 0 || s.Errors != 1 || s.LastError != "boom" {
			t.Errorf("%+v, want no cycle and one error", s)
		}
		if records := log.records(t, "service failed"); len(records) != 1 || records[0]["service"] != "tick" {
			t.Errorf("logged %v, want one record with the service", records)
		}
		leader.set(true, nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if s := status(t, tree, "tick"); s.Cycles == 0 {
			t.Errorf("%+v, want it to run once the answer is yes", s)
		}
	})
}

type panickingLease struct{ *lease }

func (panickingLease) Mine(context.Context, string) (bool, error) { panic(errBoom) }

func TestS8_LeadershipThatPanicsIsHandledByThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := start(t, supervise.Every("tick", time.Second, nothing, supervise.OnlyIfMine(panickingLease{newLease(true)}), supervise.Restart(supervise.OnceMore{})))
		if err := wait(t, tree); !errors.Is(err, supervise.ErrGaveUp) || !errors.Is(err, errBoom) {
			t.Errorf("Wait = %v, want ErrGaveUp and the panic", err)
		}
		if s := status(t, tree, "tick"); s.Panics != 2 || s.Cycles != 0 {
			t.Errorf("%+v, want 2 panics and no cycle", s)
		}
	})
}

type restlessLease struct{ *lease }

// Changed returns a channel that is closed already, as a careless implementation might.
func (restlessLease) Changed(string) <-chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}

func TestS8_LeadershipThatAlwaysChangesDoesNotMakeTheTickSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader := restlessLease{newLease(false)}
		start(t, supervise.Every("tick", time.Hour, nothing, supervise.OnlyIfMine(leader)))
		time.Sleep(950 * time.Millisecond)
		synctest.Wait()
		leader.mu.Lock()
		defer leader.mu.Unlock()
		if leader.asked != 10 {
			t.Errorf("asked %d times in 950ms, want 10: at most once in the floor of 100ms", leader.asked)
		}
	})
}

type mutedLease struct{ *lease }

func (mutedLease) Changed(string) <-chan struct{} { return nil }

func TestS8_LeadershipWithoutNewsIsAskedOnceAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader := mutedLease{newLease(false)}
		tree := start(t, supervise.Every("tick", 10*time.Second, nothing, supervise.OnlyIfMine(leader)))
		time.Sleep(time.Second)
		leader.set(true, nil)
		time.Sleep(8 * time.Second)
		if s := status(t, tree, "tick"); s.Cycles != 0 {
			t.Errorf("ran before its interval")
		}
		time.Sleep(2 * time.Second)
		if s := status(t, tree, "tick"); s.Cycles != 1 {
			t.Errorf("%d cycles, want 1", s.Cycles)
		}
	})
}

// ledgerOfJobs stands for a store: rescue is a transition that names the run it saw, so the second of two
// processes that saw the same run changes nothing.
type ledgerOfJobs struct {
	mu      sync.Mutex
	run     map[string]int
	rescues map[string]int
}

func (l *ledgerOfJobs) lost(shard string) (ids []string, runs []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range 10 {
		id := fmt.Sprint(shard, i)
		if l.run[id] < 3 {
			ids, runs = append(ids, id), append(runs, l.run[id])
		}
	}
	return ids, runs
}

func (l *ledgerOfJobs) rescue(id string, run int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run[id] == run {
		l.run[id]++
		l.rescues[id]++
	}
}

// Two processes both believe that the tick is theirs. Both run it, at the same moments, on the same
// store, from the same Service value; every job must be rescued exactly three times, and what
// fails in one process must not be held against the other.
func TestS8_SameTickInTwoProcessesAtOnceIsHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &ledgerOfJobs{run: make(map[string]int), rescues: make(map[string]int)}
		type process struct{}
		var mu sync.Mutex
		active, together := 0, 0
		rescue := supervise.EveryShard("rescue", time.Second, []string{"a", "b"}, func(ctx context.Context, shard string) error {
			mu.Lock()
			active++
			if active == 2 {
				together++
			}
			mu.Unlock()
			ids, runs := store.lost(shard)
			time.Sleep(10 * time.Millisecond) // both have read before either writes
			for i := range ids {
				store.rescue(ids[i], runs[i])
			}
			mu.Lock()
			active--
			mu.Unlock()
			if ctx.Value(process{}) == 1 && shard == "b" {
				return errBoom
			}
			return nil
		}, supervise.OnlyIfMine(newLease(true)))

		trees := make([]*supervise.Supervisor, 2)
		for i := range trees {
			trees[i] = build(t, supervise.Config{Services: []supervise.Service{rescue}})
			if err := trees[i].Start(context.WithValue(t.Context(), process{}, i)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(9500 * time.Millisecond)
		for _, tree := range trees {
			mustStop(t, tree)
		}
		if together == 0 {
			t.Error("the two processes never ran at the same time, so this test shows nothing")
		}
		if len(store.rescues) != 20 {
			t.Errorf("%d jobs rescued, want 20", len(store.rescues))
		}
		for id, n := range store.rescues {
			if n != 3 {
				t.Errorf("job %s rescued %d times, want 3", id, n)
			}
		}
		good, bad := status(t, trees[0], "rescue"), status(t, trees[1], "rescue")
		if good.Errors != 0 || good.Cycles != 10 || good.Shards[1].SkipsLeft != 0 {
			t.Errorf("the healthy process: %+v", good)
		}
		if bad.Errors != 3 || bad.Shards[1].SkipsLeft != 3 {
			t.Errorf("the other process: %+v, want 3 errors and shard b skipped", bad)
		}
	})
}
