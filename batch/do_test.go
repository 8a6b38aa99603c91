package batch

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

func TestB1_OneOutputPerInputInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Policy: Size(), MaxBatch: 3})
		defer mustClose(t, b)
		answers := askAll(b, "k", 7, 5, 9)
		s.only(t, 7, 5, 9).succeed()
		good(t, answers...)
	})
}

func TestB1_KeysAreNeverMixed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Policy: Size(), MaxBatch: 2})
		defer mustClose(t, b)
		one := ask(b, "a", 1)
		other := ask(b, "b", 2)
		s.idle(t)
		one2 := ask(b, "a", 3)
		s.only(t, 1, 3).succeed()
		good(t, one, one2)
		pending(t, other)
		last := ask(b, "b", 4)
		s.only(t, 2, 4).succeed()
		good(t, other, last)
	})
}

func TestB1_DoManyAnswersEachInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{MaxBatch: 3, Concurrency: 2})
		defer mustClose(t, b)
		var outs []int
		var err error
		go func() { outs, err = b.DoMany(context.Background(), "k", []int{1, 2, 3, 4, 5}) }()
		calls := s.processing()
		slices.SortFunc(calls, func(x, y *call) int { return x.in[0] - y.in[0] })
		if len(calls) != 2 || !slices.Equal(calls[0].in, []int{1, 2, 3}) || !slices.Equal(calls[1].in, []int{4, 5}) {
			t.Fatalf("processing %v, want [1 2 3] and [4 5]", inputs(calls))
		}
		calls[1].succeed()
		broken := errors.New("broken")
		calls[0].end(func() ([]int, error) { return []int{10, 0, 30}, Errors{nil, broken, nil} })
		var errs Errors
		if !errors.As(err, &errs) || !slices.Equal(errs, Errors{nil, broken, nil, nil, nil}) {
			t.Fatalf("errors %v, want only item 1 broken", err)
		}
		if !slices.Equal(outs, []int{10, 0, 30, 40, 50}) {
			t.Fatalf("outputs %v", outs)
		}
	})
}

func TestB1_DoManyThatSucceedsHasNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(func(_ context.Context, _ string, in []int) ([]int, error) { return tenfold(in), nil }, Options{})
		defer mustClose(t, b)
		outs, err := b.DoMany(t.Context(), "k", []int{3, 1, 2})
		if err != nil || !slices.Equal(outs, []int{30, 10, 20}) {
			t.Fatal(outs, err)
		}
		if outs, err = b.DoMany(t.Context(), "k", nil); err != nil || len(outs) != 0 {
			t.Fatal(outs, err)
		}
	})
}

func TestB1_DoManyRefusesWhatDoesNotFitAndHandlesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{MaxBatch: 2, Concurrency: 1, MaxWaiting: 1})
		defer mustClose(t, b)
		var outs []int
		var err error
		go func() { outs, err = b.DoMany(context.Background(), "k", []int{1, 2, 3, 4, 5, 6}) }()
		s.only(t, 1, 2).succeed()
		s.only(t, 3, 4).succeed()
		var errs Errors
		if !errors.As(err, &errs) || errs[3] != nil || !errors.Is(errs[4], ErrQueueFull) || !errors.Is(errs[5], ErrQueueFull) {
			t.Fatalf("%v, want the last two refused", err)
		}
		if !slices.Equal(outs, []int{10, 20, 30, 40, 0, 0}) {
			t.Fatalf("outputs %v", outs)
		}
	})
}

// Weigh runs in the caller's goroutine, so its panic is the caller's. A server that recovers there must not lose capacity.
func TestB3_APanicOfWeighLeaksNoCapacity(t *testing.T) {
	calls := map[string]func(b *Batcher[string, int, int]){
		"Do":     func(b *Batcher[string, int, int]) { _, _ = b.Do(context.Background(), "k", -1) },
		"DoMany": func(b *Batcher[string, int, int]) { _, _ = b.DoMany(context.Background(), "k", []int{1, 2, -1}) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				work := newStage(t).work()
				work.Weigh = func(in int) int {
					if in < 0 {
						panic("weightless")
					}
					return in
				}
				b := NewWork(work, Options{TotalItems: 3, TotalBytes: 6})
				defer mustClose(t, b)
				func() {
					defer func() {
						if recover() == nil {
							t.Error("the panic of Weigh did not reach its caller")
						}
					}()
					call(b)
				}()
				if stats := b.Stats(); stats != (Stats{}) {
					t.Errorf("%+v is held by items that nobody handed in", stats)
				}
			})
		})
	}
}

func TestB1_AKeyThatDoesNotEqualItselfIsRefused(t *testing.T) {
	b := New(func(_ context.Context, _ float64, in []int) ([]int, error) { return in, nil }, Options{})
	if _, err := b.Do(t.Context(), math.NaN(), 1); !errors.Is(err, ErrInvalid) {
		t.Fatalf("%v, want ErrInvalid", err)
	}
	if stats := b.Stats(); stats != (Stats{}) {
		t.Fatalf("left behind: %+v", stats)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Many goroutines, real scheduling: every caller gets the answer to its own question.
func TestB1_EveryCallerGetsItsOwnAnswer(t *testing.T) {
	for _, policy := range []Policy{Immediate(), Balanced(4)} {
		t.Run(policy.String(), func(t *testing.T) {
			b := New(func(_ context.Context, _ int, in []int) ([]int, error) { return tenfold(in), nil },
				Options{Policy: policy, MaxBatch: 8, Concurrency: 2, MaxWaiting: 64, TotalConcurrency: 3})
			var group sync.WaitGroup
			for worker := range 64 {
				group.Go(func() {
					for i := range 200 {
						ctx, cancel := context.WithCancel(t.Context())
						if (worker+i)%7 == 0 {
							go cancel()
						}
						n := worker*1000 + i
						out, err := b.Do(ctx, n%5, n)
						cancel()
						if err == nil && out != 10*n || err != nil && !errors.Is(err, context.Canceled) {
							t.Errorf("item %d: %d, %v", n, out, err)
						}
					}
				})
			}
			group.Wait()
			if err := b.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if stats := b.Stats(); stats != (Stats{}) {
				t.Fatalf("left behind: %+v", stats)
			}
		})
	}
}

func TestBadInput_AllFaultsAtOnceWithFieldAndBound(t *testing.T) {
	b := New[string, int, int](nil, Options{
		Policy: Policy{kind: 9}, MaxWait: -1, MaxBatch: -1, Concurrency: -2, TotalConcurrency: -3, TotalItems: -4, TotalBytes: 5, AcquireTimeout: -6,
	})
	err := b.Err()
	for _, want := range []string{
		"process function is nil", "MaxBatch is -1; it must be from 1 to", "Concurrency is -2; it must be from 1 to",
		"TotalConcurrency is -3; it must be from 1 to", "TotalItems is -4; it must be from 1 to", "TotalBytes is 5 but there is no Work.Weigh",
		"MaxWait is -1ns; it must be above 0", "AcquireTimeout is -6ns; it must be above 0",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %q", err, want)
		}
	}
	if _, doErr := b.Do(t.Context(), "k", 1); !errors.Is(doErr, ErrInvalid) || doErr.Error() != err.Error() {
		t.Errorf("Do: %v", doErr)
	}
	if _, manyErr := b.DoMany(t.Context(), "k", []int{1}); !errors.Is(manyErr, ErrInvalid) {
		t.Errorf("DoMany: %v", manyErr)
	}
	if closeErr := b.Close(t.Context()); !errors.Is(closeErr, ErrInvalid) {
		t.Errorf("Close: %v", closeErr)
	}
}

func TestBadInput_EachFaultAlone(t *testing.T) {
	process := func(_ context.Context, _ string, in []int) ([]int, error) { return in, nil }
	for want, options := range map[string]Options{
		"Policy is Policy(9); it must come from":                                     {Policy: Policy{kind: 9}},
		"Policy is Duration(0s); the duration must be above 0":                       {Policy: Duration(0)},
		"Policy is Duration(-1ns); the duration must be above":                       {Policy: Duration(-1)},
		"Policy is Balanced(0); the hint must be from 1 to":                          {Policy: Balanced(0)},
		"Policy is Balanced(101); the hint must be from 1 to MaxBatch, which is 100": {Policy: Balanced(101)},
		"MaxWaiting is -1; it must be from 1 to":                                     {MaxWaiting: -1},
		"MaxBatch is 1048577; it must be from 1 to 1048576":                          {MaxBatch: mostCount + 1},
	} {
		err := New(process, options).Err()
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v\nis not only %q", err, want)
		}
	}
	work := Work[string, int, int, int]{Release: func(string, int) {}}
	err := NewWork(work, Options{}).Err()
	for _, want := range []string{"Work.Process is nil", "Work.Release is set but Work.Acquire is nil"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %q", err, want)
		}
	}
}

func TestBadInput_ZeroOptionsAreTheDefaults(t *testing.T) {
	b := New(func(_ context.Context, _ string, in []int) ([]int, error) { return in, nil }, Options{})
	if err := b.Err(); err != nil {
		t.Fatal(err)
	}
	o := b.options
	if o.MaxBatch != 100 || o.Concurrency != 10 || o.MaxWaiting != 20 || o.Policy != Immediate() {
		t.Fatalf("%+v", o)
	}
}
