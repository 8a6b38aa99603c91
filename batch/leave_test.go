package batch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestB6_ACallerThatLeavesFreesItsPlaceAndIsNotProcessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{MaxBatch: 2, Concurrency: 1, MaxWaiting: 2})
		defer mustClose(t, b)
		running := ask(b, "k", 1)
		waiting := askAll(b, "k", 2, 3, 4, 5)
		refusedBy(t, ask(b, "k", 6), "MaxWaiting")
		waiting[0].cancel()
		bad(t, context.Canceled, waiting[0])
		if errors.Is(waiting[0].err, ErrOutcomeUnknown) {
			t.Fatal("an item that was not processed is said to be unknown")
		}
		late := ask(b, "k", 7) // takes the place, behind all others
		refusedBy(t, ask(b, "k", 8), "MaxWaiting")
		s.only(t, 1).succeed()
		s.only(t, 3, 4).succeed()
		s.only(t, 5, 7).succeed()
		good(t, running, waiting[1], waiting[2], waiting[3], late)
	})
}

func TestB6_ACallerMayLeaveABatchThatAcquires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := NewWork(s.work(), Options{MaxBatch: 2, Concurrency: 1})
		defer mustClose(t, b)
		answers := askAll(b, "k", 1, 2, 3)
		answers[0].cancel()
		bad(t, context.Canceled, answers[0])
		s.acquiring()[0].succeed()
		s.only(t, 2, 3).succeed() // the freed place went to the one that waited
		good(t, answers[1], answers[2])
	})
}

func TestB6_ACallerThatLeavesDuringProcessingDoesNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Policy: Size(), MaxBatch: 2})
		defer mustClose(t, b)
		answers := askAll(b, "k", 1, 2)
		c := s.only(t, 1, 2)
		answers[0].cancel()
		bad(t, ErrOutcomeUnknown, answers[0]) // at once, while process still runs
		bad(t, context.Canceled, answers[0])
		if c.ctx.Err() != nil {
			t.Fatal("one caller that left ended the context of the others")
		}
		if stats := b.Stats(); stats.Items != 2 {
			t.Fatalf("%+v: an item in processing still counts", stats)
		}
		c.succeed()
		good(t, answers[1])
		checkEmpty(t, b)
	})
}

func TestB6_ADeadlineIsAReasonToLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Policy: Size()})
		defer mustClose(t, b)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := b.Do(ctx, "k", 1)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 30*time.Millisecond {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		checkEmpty(t, b)
		pass(time.Hour)
		s.idle(t)
	})
}

func TestB6_AContextThatHasEndedIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{})
		defer mustClose(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.Do(ctx, "k", 1); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := b.DoMany(ctx, "k", []int{1, 2}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		s.idle(t)
	})
}

func TestB6_DoManyLeavesWithAllThatIsNotProcessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{MaxBatch: 2, Concurrency: 1})
		defer mustClose(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		var err error
		go func() { _, err = b.DoMany(ctx, "k", []int{1, 2, 3}) }()
		c := s.only(t, 1, 2)
		cancel()
		synctest.Wait()
		errs, _ := err.(Errors)
		if len(errs) != 3 || !errors.Is(errs[0], ErrOutcomeUnknown) || !errors.Is(errs[1], ErrOutcomeUnknown) || errors.Is(errs[2], ErrOutcomeUnknown) {
			t.Fatalf("%v, want the first two unknown and the third not processed", err)
		}
		c.succeed()
		s.idle(t)
		checkEmpty(t, b)
	})
}

func TestB6_TheTimerFollowsTheFirstItemThatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Policy: Duration(10 * time.Millisecond)})
		defer mustClose(t, b)
		first := ask(b, "k", 1)
		pass(4 * time.Millisecond)
		second := ask(b, "k", 2)
		first.cancel()
		bad(t, context.Canceled, first)
		pass(10*time.Millisecond - 1)
		s.idle(t)
		pass(1)
		s.only(t, 2).succeed()
		good(t, second)
	})
}

func TestB6_AKeyInLineWhoseCallersLeaveIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{MaxBatch: 1, TotalConcurrency: 1})
		defer mustClose(t, b)
		running := ask(b, "a", 1)
		gone, next := ask(b, "b", 2), ask(b, "c", 3)
		gone.cancel()
		bad(t, context.Canceled, gone)
		if stats := b.Stats(); stats.Keys != 2 {
			t.Fatalf("%+v: the key that nobody waits for is still there", stats)
		}
		s.only(t, 1).succeed()
		s.only(t, 3).succeed()
		good(t, running, next)
	})
}
