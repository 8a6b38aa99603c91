package batch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

func refusedBy(t *testing.T, a *answer, limit string) {
	t.Helper()
	bad(t, ErrQueueFull, a)
	var full *QueueFullError
	if !errors.As(a.err, &full) || full.Limit != limit || !strings.Contains(a.err.Error(), "Options."+limit+" is ") {
		t.Fatalf("%v, want the limit %s", a.err, limit)
	}
}

func TestB3_MaxBatchIsNeverExceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{MaxBatch: 2, Concurrency: 1})
		defer mustClose(t, b)
		answers := askAll(b, "k", 1, 2, 3, 4, 5)
		s.only(t, 1).succeed()
		s.only(t, 2, 3).succeed()
		s.only(t, 4, 5).succeed()
		good(t, answers...)
	})
}

func TestB3_ConcurrencyPerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{MaxBatch: 1, Concurrency: 2})
		defer mustClose(t, b)
		answers := askAll(b, "k", 1, 2, 3)
		if n := len(s.processing()); n != 2 {
			t.Fatalf("%d batches run, want 2", n)
		}
		answers = append(answers, ask(b, "other", 4))
		if n := len(s.processing()); n != 3 {
			t.Fatalf("%d batches run, want 2 of one key and 1 of the other", n)
		}
		for len(s.processing()) > 0 {
			s.processing()[0].succeed()
		}
		good(t, answers...)
	})
}

func TestB3_WaitingBatchesPerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{MaxBatch: 2, Concurrency: 1, MaxWaiting: 2})
		defer mustClose(t, b)
		answers := askAll(b, "k", 1, 2, 3, 4, 5)
		refusedBy(t, ask(b, "k", 6), "MaxWaiting")
		other := ask(b, "other", 7) // the limit is the key's
		if stats := b.Stats(); stats.Items != 6 {
			t.Fatalf("%+v: the refused item is still counted", stats)
		}
		for len(s.processing()) > 0 {
			s.processing()[0].succeed()
		}
		good(t, append(answers, other)...)
	})
}

func TestB3_WaitingBatchesAreTwiceTheConcurrencyUnlessSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{MaxBatch: 1, Concurrency: 3})
		defer mustClose(t, b)
		answers := askAll(b, "k", 1, 2, 3, 4, 5, 6, 7, 8, 9)
		pending(t, answers...)
		refusedBy(t, ask(b, "k", 10), "MaxWaiting")
		for len(s.processing()) > 0 {
			s.processing()[0].succeed()
		}
		good(t, answers...)
	})
}

func TestB3_TotalConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{TotalConcurrency: 2})
		defer mustClose(t, b)
		answers := []*answer{ask(b, "a", 1), ask(b, "b", 2), ask(b, "c", 3)}
		if n := len(s.processing()); n != 2 {
			t.Fatalf("%d batches run, want 2", n)
		}
		s.processing()[0].succeed()
		if n := len(s.processing()); n != 2 {
			t.Fatalf("%d batches run after one finished, want 2", n)
		}
		s.processing()[0].succeed()
		s.processing()[0].succeed()
		good(t, answers...)
	})
}

func TestB3_FairOrderBetweenKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{MaxBatch: 1, TotalConcurrency: 1})
		defer mustClose(t, b)
		// A busy key has four batches waiting before the others come with one or two each.
		answers := askAll(b, "busy", 1, 2, 3, 4, 5)
		answers = append(answers, askAll(b, "x", 10, 11)...)
		answers = append(answers, ask(b, "y", 20))
		var order []int
		for {
			calls := s.processing()
			if len(calls) == 0 {
				break
			}
			order = append(order, calls[0].in...)
			calls[0].succeed()
		}
		if want := []int{1, 2, 10, 20, 3, 11, 4, 5}; !slices.Equal(order, want) {
			t.Fatalf("order %v, want %v", order, want)
		}
		good(t, answers...)
	})
}

func TestB3_TotalItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{TotalItems: 2})
		defer mustClose(t, b)
		one, two := ask(b, "a", 1), ask(b, "b", 2)
		refusedBy(t, ask(b, "c", 3), "TotalItems")
		s.processing()[0].succeed()
		four := ask(b, "c", 4) // the place is free as soon as the answer is there
		s.processing()[0].succeed()
		s.processing()[0].succeed()
		good(t, one, two, four)
	})
}

func TestB3_TotalBytesByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		work := Work[string, struct{}, int, int]{
			Process: func(ctx context.Context, key string, _ struct{}, in []int) ([]int, error) {
				return s.process(ctx, key, in)
			},
			Weigh: func(in int) int { return in },
		}
		b := NewWork(work, Options{TotalBytes: 100})
		defer mustClose(t, b)
		heavy := ask(b, "a", 90)
		refusedBy(t, ask(b, "b", 11), "TotalBytes")
		light := ask(b, "b", 10)
		if stats := b.Stats(); stats.Bytes != 100 || stats.Items != 2 {
			t.Fatalf("%+v", stats)
		}
		s.processing()[0].succeed()
		s.processing()[0].succeed()
		good(t, heavy, light)
		refusedBy(t, ask(b, "c", 101), "TotalBytes") // more than there will ever be
		bad(t, ErrInvalid, ask(b, "c", -1))
	})
}

func TestB3_AnAnsweredCallerFindsItsPlaceFree(t *testing.T) {
	b := New(func(_ context.Context, _ string, in []int) ([]int, error) { return in, nil },
		Options{MaxBatch: 1, Concurrency: 1, MaxWaiting: 1, TotalConcurrency: 1, TotalItems: 1})
	for i := range 2000 {
		if _, err := b.Do(t.Context(), "k", i); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
