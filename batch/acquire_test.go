package batch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestB4_TheResourceIsAcquiredBeforeAndReleasedBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := NewWork(s.work(), Options{})
		defer mustClose(t, b)
		a := ask(b, "k", 1)
		s.idle(t)
		acquire := s.acquiring()[0]
		acquire.succeed()
		if acquire.ctx.Err() != nil { // a transaction of database/sql lives by the context it was begun with
			t.Fatal("the context of the acquisition ended before the batch did")
		}
		s.only(t, 1).succeed()
		good(t, a)
		if !slices.Equal(s.released, []string{"resource of k"}) {
			t.Fatalf("released %v", s.released)
		}
		if acquire.ctx.Err() == nil {
			t.Fatal("the context of the acquisition outlives the batch")
		}
	})
}

func TestB4_AFailedAcquisitionFailsOnlyItsBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := NewWork(s.work(), Options{MaxBatch: 2, Concurrency: 2})
		defer mustClose(t, b)
		first := askAll(b, "k", 1, 2)
		second := askAll(b, "k", 3, 4)
		third := askAll(b, "k", 5, 6) // waits: both places are taken
		acquiring := s.acquiring()
		if len(acquiring) != 2 {
			t.Fatalf("%d batches acquire, want 2", len(acquiring))
		}
		broken := errors.New("no connection")
		acquiring[1].fail(broken) // the later batch is decided first
		bad(t, broken, second...)
		pending(t, first...)
		pending(t, third...)
		if len(s.acquiring()) != 2 {
			t.Fatal("the place of the failed batch was not used again")
		}
		acquiring[0].succeed()
		s.only(t, 1, 2).succeed()
		good(t, first...)
		s.acquiring()[0].succeed()
		s.only(t, 5, 6).succeed()
		good(t, third...)
		if len(s.released) != 2 {
			t.Fatalf("released %v, want two", s.released)
		}
	})
}

func TestB4_AFailedAcquisitionDoesNotTakeWaitingItemsAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := NewWork(s.work(), Options{MaxBatch: 2, Concurrency: 1})
		defer mustClose(t, b)
		batch := askAll(b, "k", 1, 2)
		waiting := ask(b, "k", 3)
		batch[0].cancel() // leaves a hole that begin would fill
		bad(t, context.Canceled, batch[0])
		broken := errors.New("no connection")
		s.acquiring()[0].fail(broken)
		bad(t, broken, batch[1])
		pending(t, waiting)
		s.acquiring()[0].succeed()
		s.only(t, 3).succeed()
		good(t, waiting)
	})
}

func TestB4_CapacityDoesNotLeakWhenBatchesBecomeReadyOutOfOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := NewWork(s.work(), Options{MaxBatch: 1, Concurrency: 3, TotalConcurrency: 3})
		defer mustClose(t, b)
		broken := errors.New("no connection")
		for round := range 20 {
			answers := askAll(b, "k", 3*round, 3*round+1, 3*round+2)
			acquiring := s.acquiring()
			if len(acquiring) != 3 {
				t.Fatalf("round %d: %d batches acquire, want 3", round, len(acquiring))
			}
			acquiring[2].succeed()
			acquiring[1].fail(broken)
			s.only(t, 3*round+2).succeed()
			acquiring[0].panics("locked out")
			good(t, answers[2])
			bad(t, broken, answers[1])
			bad(t, ErrPanic, answers[0])
			checkEmpty(t, b)
		}
		if len(s.released) != 20 {
			t.Fatalf("released %d times, want 20", len(s.released))
		}
	})
}

func TestB4_AcquisitionHasATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released := 0
		late := false
		work := Work[string, int, int, int]{
			Process: func(context.Context, string, int, []int) ([]int, error) { t.Error("processed"); return nil, nil },
			Acquire: func(ctx context.Context, _ string) (int, error) {
				<-ctx.Done()
				if late {
					return 1, nil
				}
				return 0, ctx.Err()
			},
			Release: func(string, int) { released++ },
		}
		b := NewWork(work, Options{AcquireTimeout: time.Second})
		defer mustClose(t, b)
		a := ask(b, "k", 1)
		pass(time.Second - 1)
		pending(t, a)
		pass(1)
		bad(t, context.DeadlineExceeded, a)

		late = true // a resource that comes after its time is given back
		a = ask(b, "k", 2)
		pass(time.Second)
		bad(t, context.DeadlineExceeded, a)
		if released != 1 {
			t.Fatalf("released %d times, want once", released)
		}
	})
}

func TestB4_TheTimeoutIsOverWhenTheResourceIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := NewWork(s.work(), Options{AcquireTimeout: time.Second})
		defer mustClose(t, b)
		a := ask(b, "k", 1)
		acquire := s.acquiring()[0]
		acquire.succeed()
		pass(time.Hour)
		if acquire.ctx.Err() != nil {
			t.Fatal("the timeout of the acquisition ended its context while the batch was processed")
		}
		s.only(t, 1).succeed()
		good(t, a)
	})
}

func TestB4_AResourceNobodyWantsAnyMoreIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := NewWork(s.work(), Options{})
		defer mustClose(t, b)
		a := ask(b, "k", 1)
		a.cancel()
		bad(t, context.Canceled, a)
		s.acquiring()[0].succeed()
		s.idle(t)
		if len(s.released) != 1 {
			t.Fatalf("released %v", s.released)
		}
		checkEmpty(t, b)
	})
}

func TestB4_APanicOfReleaseIsThePanicOfItsBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := Work[string, int, int, int]{
			Process: func(_ context.Context, _ string, _ int, in []int) ([]int, error) { return tenfold(in), nil },
			Acquire: func(context.Context, string) (int, error) { return 0, nil },
			Release: func(key string, _ int) {
				if key == "bad" {
					panic("lost")
				}
			},
		}
		b := NewWork(work, Options{})
		defer mustClose(t, b)
		bad(t, ErrPanic, ask(b, "bad", 1))
		good(t, ask(b, "k", 2))
	})
}
