package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

func TestB8_IdleKeysAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(func(_ context.Context, _ string, in []int) ([]int, error) { return tenfold(in), nil }, Options{})
		defer mustClose(t, b)
		for i := range 3 * mostEmptyMap {
			if _, err := b.Do(t.Context(), fmt.Sprint(i), i); err != nil {
				t.Fatal(err)
			}
		}
		checkEmpty(t, b)
		for _, s := range b.segments {
			if len(s.idleQueues) > mostIdle || len(s.idleRuns) > mostIdle {
				t.Fatalf("kept %d queues and %d runs, at most %d", len(s.idleQueues), len(s.idleRuns), mostIdle)
			}
		}
	})
}

func TestB8_TheMapOfABurstOfKeysIsNotKept(t *testing.T) {
	b := New(func(_ context.Context, _ int, in []int) ([]int, error) { return in, nil }, Options{Policy: Size(), MaxWait: time.Hour})
	s := b.segments[0]
	ctx, cancel := context.WithCancel(t.Context())
	var leave []func()
	for key := 0; len(s.keys) <= mostEmptyMap; key++ {
		if b.segmentOf(key) != s {
			continue
		}
		it, err := b.newItem(ctx, key, key)
		if err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		q, err := s.admit(key, it)
		s.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, func() {
			if answered, err := b.giveUp(ctx, q, it); answered || errors.Is(err, ErrOutcomeUnknown) {
				t.Error("processed", err)
			}
		})
	}
	if s.most != mostEmptyMap+1 {
		t.Fatalf("most %d, want %d", s.most, mostEmptyMap+1)
	}
	cancel()
	for _, one := range leave {
		one()
	}
	if s.most != 0 || len(s.keys) != 0 {
		t.Fatalf("the map that held %d keys is still there, with %d", s.most, len(s.keys))
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestB8_AStaleTimerForARemovedKeyIsHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Policy: Duration(10 * time.Millisecond), MaxBatch: 2})
		defer mustClose(t, b)
		full := askAll(b, "k", 1, 2) // sets the timer, and is served before it rings
		s.only(t, 1, 2).succeed()
		good(t, full...)
		checkEmpty(t, b)
		pass(6 * time.Millisecond)
		again := ask(b, "k", 3) // a new life of the key
		pass(4 * time.Millisecond)
		s.idle(t) // the old timer rang
		pass(6*time.Millisecond - 1)
		s.idle(t)
		pass(1)
		s.only(t, 3).succeed()
		good(t, again)
		pass(time.Hour) // and rings for nobody
		checkEmpty(t, b)
	})
}

func TestB8_APlaceForAnEarlierLifeOfAKeyIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{MaxBatch: 1, TotalConcurrency: 1})
		defer mustClose(t, b)
		running := ask(b, "a", 1)
		waiting := ask(b, "b", 2)
		q := b.segmentOf("b").keys["b"]
		turn, generation := b.turns.pass() // as a finished batch would, which is then held up
		if turn != q {
			t.Fatal("b has no turn")
		}
		waiting.cancel()
		bad(t, context.Canceled, waiting)
		again := ask(b, "b", 3) // the same structure may live again
		if r := q.segment.granted(q, generation); r != nil {
			t.Fatal("a place for an earlier life was used")
		}
		if n := b.turns.free.Load(); n != 0 {
			t.Fatalf("%d places free", n)
		}
		if r := b.passTurn(); r != nil {
			go r.carry()
		}
		for len(s.processing()) > 0 {
			s.processing()[0].succeed()
		}
		good(t, running, again)
		b.turns.free.Add(-1) // the place that this test made up
	})
}

func TestB10_NoShardWaitsForAnother(t *testing.T) {
	b := New(func(_ context.Context, _ int, in []int) ([]int, error) { return tenfold(in), nil }, Options{})
	held := b.segmentOf(0)
	other := 1
	for b.segmentOf(other) == held {
		other++
	}
	held.mu.Lock() // as if an operation on the other key were stuck
	out, err := b.Do(t.Context(), other, 7)
	held.mu.Unlock()
	if out != 70 || err != nil {
		t.Fatal(out, err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestB10_NoGoroutinePerItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{MaxBatch: 1000, Concurrency: 1})
		defer mustClose(t, b)
		first := ask(b, "k", 0)
		in := make([]int, 1000)
		before := runtime.NumGoroutine()
		var err error
		go func() { _, err = b.DoMany(context.Background(), "k", in) }()
		synctest.Wait()
		if more := runtime.NumGoroutine() - before; more > 1 {
			t.Fatalf("%d goroutines for one caller that waits with 1000 items, want its own", more)
		}
		s.only(t, 0).succeed()
		if more := runtime.NumGoroutine() - before; more > 1 {
			t.Fatalf("%d goroutines more while they are processed, want the caller's", more)
		}
		s.processing()[0].succeed()
		good(t, first)
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestB10_NoGoroutinePerCallOfDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{MaxBatch: 1000, Concurrency: 1})
		defer mustClose(t, b)
		first := ask(b, "k", 0)
		s.only(t, 0)
		ctx, cancel := context.WithCancel(context.Background()) // a context that can end must cost no goroutine either
		defer cancel()
		const callers = 100
		var callerErrs [callers]error
		before := runtime.NumGoroutine()
		for i := range callers {
			go func() { _, callerErrs[i] = b.Do(ctx, "k", i) }()
		}
		synctest.Wait()
		if more := runtime.NumGoroutine() - before; more > callers { // what a test before leaves may end meanwhile
			t.Errorf("%d goroutines more while %d callers wait, want theirs and no other", more, callers)
		}
		s.processing()[0].succeed()
		s.processing()[0].succeed()
		good(t, first)
		if err := errors.Join(callerErrs[:]...); err != nil {
			t.Error(err)
		}
	})
}

func TestB10_NoTimerOnTheHotPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		process := func(_ context.Context, _ string, in []int) ([]int, error) { return tenfold(in), nil }
		never := New(process, Options{Policy: Balanced(1)})
		defer mustClose(t, never)
		once := New(process, Options{Policy: Size(), MaxBatch: 2})
		defer mustClose(t, once)
		var set time.Duration
		for i := range 100 {
			for _, b := range []*Batcher[string, int, int]{never, once} {
				if _, err := b.DoMany(t.Context(), "k", []int{i, i}); err != nil {
					t.Fatal(err)
				}
			}
			if never.segmentOf("k").alarm != nil {
				t.Fatal("a policy that never waits has made a timer")
			}
			if i == 0 {
				set = once.segmentOf("k").rings
			}
			pass(time.Millisecond)
			if rings := once.segmentOf("k").rings; rings != set {
				t.Fatalf("batch %d set the timer again, from %v to %v", i, set, rings)
			}
		}
	})
}
