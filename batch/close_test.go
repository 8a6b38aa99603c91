package batch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// closing calls Close in a goroutine and returns where its result will be.
func closing(ctx context.Context, b *Batcher[string, int, int]) chan error {
	result := make(chan error, 1)
	go func() { result <- b.Close(ctx) }()
	synctest.Wait()
	return result
}

func TestB7_CloseRefusesNewItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{})
		a := ask(b, "k", 1)
		result := closing(t.Context(), b)
		bad(t, ErrClosed, ask(b, "k", 2), ask(b, "new key", 3))
		s.only(t, 1).succeed()
		good(t, a)
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		bad(t, ErrClosed, ask(b, "k", 4))
		if _, err := b.DoMany(t.Context(), "k", []int{5}); !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
		checkEmpty(t, b)
	})
}

func TestB7_CloseFlushesPartialBatchesAtOnce(t *testing.T) {
	for _, policy := range []Policy{Size(), Duration(time.Hour), Balanced(50)} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				b := New(s.process, Options{Policy: policy, MaxWait: time.Hour})
				start := time.Now()
				answers := []*answer{ask(b, "k", 1), ask(b, "k", 2), ask(b, "other", 3)}
				result := closing(t.Context(), b)
				for len(s.processing()) > 0 {
					s.processing()[0].succeed()
				}
				good(t, answers...)
				if err := <-result; err != nil {
					t.Fatal(err)
				}
				if waited := time.Since(start); waited != 0 {
					t.Fatalf("waited %v", waited)
				}
				checkEmpty(t, b)
			})
		})
	}
}

func TestB7_CloseFlushesWithinTheLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Policy: Size(), MaxBatch: 2, Concurrency: 1, TotalConcurrency: 1, MaxWaiting: 5})
		answers := append(askAll(b, "a", 1, 2, 3, 4, 5), askAll(b, "b", 6)...)
		result := closing(t.Context(), b)
		for range 4 {
			if n := len(s.processing()); n != 1 {
				t.Fatalf("%d batches run, want 1", n)
			}
			s.processing()[0].succeed()
		}
		good(t, answers...)
		if err := <-result; err != nil {
			t.Fatal(err)
		}
	})
}

func TestB7_NotAShutdownThatMayNeverEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{MaxBatch: 1, Concurrency: 1})
		answers := askAll(b, "k", 1, 2, 3)
		stuck := s.only(t, 1) // does not listen to its context
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		err := b.Close(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "gave up 2 items that waited and left 1 in processing") {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited != time.Minute {
			t.Fatalf("Close took %v", waited)
		}
		bad(t, ErrClosed, answers[1], answers[2])
		if context.Cause(stuck.ctx) != ErrClosed {
			t.Fatalf("the context of what still runs was not ended: %v", context.Cause(stuck.ctx))
		}
		pending(t, answers[0])
		stuck.succeed()
		good(t, answers[0]) // the truth, even now
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkEmpty(t, b)
	})
}

func TestB7_CloseDoesNotWaitForAnAcquisitionThatDoesNotListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := NewWork(s.work(), Options{MaxBatch: 1, Concurrency: 1})
		answers := askAll(b, "k", 1, 2)
		stuck := s.acquiring()[0]
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.Close(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		bad(t, ErrClosed, answers...)
		stuck.succeed()
		s.idle(t)
		if len(s.released) != 1 {
			t.Fatalf("released %v", s.released)
		}
		checkEmpty(t, b)
	})
}

func TestB7_CloseOfAnIdleBatcherIsDoneAtOnceAndMayBeRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{})
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 2 {
			if err := b.Close(ended); err != nil { // nothing to wait for, so nothing to be late for
				t.Fatal(err)
			}
		}
	})
}

func TestB7_SeveralClosesAllWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{})
		a := ask(b, "k", 1)
		first, second := closing(t.Context(), b), closing(t.Context(), b)
		if len(first)+len(second) != 0 {
			t.Fatal("Close did not wait")
		}
		s.only(t, 1).succeed()
		good(t, a)
		if err := errors.Join(<-first, <-second); err != nil {
			t.Fatal(err)
		}
	})
}
