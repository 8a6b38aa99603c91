package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

var errBroken = errors.New("broken")

// three asks for 1, 2 and 3 in one batch and ends it.
func three(t *testing.T, end func(c *call)) []*answer {
	t.Helper()
	s := newStage(t)
	b := New(s.process, Options{Policy: Size(), MaxBatch: 3})
	answers := askAll(b, "k", 1, 2, 3)
	end(s.only(t, 1, 2, 3))
	next := askAll(b, "k", 4, 5, 6) // whatever happened, the next batch is as good as ever
	s.only(t, 4, 5, 6).succeed()
	good(t, next...)
	mustClose(t, b)
	return answers
}

func TestB5_AnErrorIsTheAnswerOfEachItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad(t, errBroken, three(t, func(c *call) { c.fail(errBroken) })...)
	})
}

func TestB5_PerItemErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := three(t, func(c *call) {
			c.end(func() ([]int, error) { return []int{10, 0, 30}, Errors{nil, errBroken, nil} })
		})
		good(t, answers[0], answers[2])
		bad(t, errBroken, answers[1])
	})
}

func TestB5_PerItemErrorsWithoutAnyErrorAreSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good(t, three(t, func(c *call) { c.end(func() ([]int, error) { return tenfold(c.in), make(Errors, 3) }) })...)
		good(t, three(t, func(c *call) { c.end(func() ([]int, error) { return tenfold(c.in), Errors(nil) }) })...)
	})
}

func TestB5_AWrongNumberOfOutputsIsErrWrongOutputsForEach(t *testing.T) {
	for _, outs := range [][]int{nil, {10, 20}, {10, 20, 30, 40}} {
		t.Run(fmt.Sprint(len(outs)), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answers := three(t, func(c *call) { c.end(func() ([]int, error) { return outs, nil }) })
				bad(t, ErrWrongOutputs, answers...)
				if want := fmt.Sprintf("%d for 3 inputs", len(outs)); !strings.Contains(answers[0].err.Error(), want) {
					t.Fatalf("%v does not say %q", answers[0].err, want)
				}
			})
		})
	}
}

func TestB5_AWrongNumberOfErrorsIsErrWrongOutputsForEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad(t, ErrWrongOutputs, three(t, func(c *call) {
			c.end(func() ([]int, error) { return tenfold(c.in), Errors{errBroken} })
		})...)
	})
}

func TestB5_ItemsKeepTheirOwnErrorsWhenOutputsAreMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := three(t, func(c *call) {
			c.end(func() ([]int, error) { return nil, Errors{nil, errBroken, nil} })
		})
		bad(t, errBroken, answers[1])
		bad(t, ErrWrongOutputs, answers[0], answers[2])
	})
}

func TestB5_APanicIsErrPanicForItsBatchOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{MaxBatch: 1, Concurrency: 3})
		defer mustClose(t, b)
		answers := askAll(b, "k", 1, 2, 3)
		calls := s.processing()
		calls[1].panics(errBroken)
		dead := calls[1].in[0] - 1
		bad(t, ErrPanic, answers[dead])
		bad(t, errBroken, answers[dead]) // the value too, because it was an error
		var p *PanicError
		if !errors.As(answers[dead].err, &p) || !strings.Contains(string(p.Stack), "stage_test.go") {
			t.Fatalf("%v has no stack that leads to the panic", answers[dead].err)
		}
		for _, c := range s.processing() {
			c.succeed()
		}
		good(t, slices.Delete(answers, dead, dead+1)...)
	})
}

func TestB5_AGoroutineThatExitsIsErrPanicForItsBatchOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := NewWork(s.work(), Options{MaxBatch: 1, Concurrency: 1})
		defer mustClose(t, b)
		answers := askAll(b, "k", 1, 2, 3)
		s.acquiring()[0].succeed()
		s.only(t, 1).exits() // as testing.T.FailNow does
		bad(t, ErrPanic, answers[0])
		s.acquiring()[0].exits()
		bad(t, ErrPanic, answers[1])
		s.acquiring()[0].succeed()
		s.only(t, 3).succeed()
		good(t, answers[2])
		if len(s.released) != 2 {
			t.Fatalf("released %v, want both resources", s.released)
		}
	})
}

func TestB5_BisectingIsolatesAPoisonItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls [][]int
		b := New(func(_ context.Context, _ string, in []int) ([]int, error) {
			calls = append(calls, slices.Clone(in))
			if slices.Contains(in, 3) {
				return nil, errBroken
			}
			return tenfold(in), nil
		}, Options{Policy: Size(), MaxBatch: 4, Bisect: AnyError})
		defer mustClose(t, b)
		answers := askAll(b, "k", 1, 2, 3, 4)
		bad(t, errBroken, answers[2])
		good(t, answers[0], answers[1], answers[3])
		want := "[[1 2 3 4] [1 2] [3 4] [3] [4]]"
		if got := fmt.Sprint(calls); got != want {
			t.Fatalf("calls %v, want %v", got, want)
		}
	})
}

func TestB5_BisectingIsAskedAndCanBeRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		b := New(func(_ context.Context, key string, in []int) ([]int, error) {
			calls++
			if key == "miscount" {
				return nil, nil
			}
			return nil, errBroken
		}, Options{Policy: Size(), MaxBatch: 4, Bisect: func(err error) bool { return !errors.Is(err, errBroken) }})
		defer mustClose(t, b)
		bad(t, errBroken, askAll(b, "k", 1, 2, 3, 4)...)
		if calls != 1 {
			t.Fatalf("%d calls for an error that Bisect refused, want 1", calls)
		}
		bad(t, ErrWrongOutputs, askAll(b, "miscount", 1, 2, 3, 4)...)
		if calls != 2 {
			t.Fatalf("%d calls: a call that did its work was repeated", calls)
		}
	})
}

// Any set of poison items, failing or panicking: each gets its own error, all others their output, in at most 2n-1 calls.
func TestB5_BisectingIsolatesAnySetOfPoisonItems(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(rt, "items")
		poison := rapid.SliceOfN(rapid.SampledFrom([]string{"", "", "", "error", "panic", "own error"}), n, n).Draw(rt, "poison")
		in := make([]int, n)
		for i := range in {
			in[i] = i
		}
		calls := 0
		b := New(func(_ context.Context, _ string, in []int) ([]int, error) {
			calls++
			errs := make(Errors, len(in))
			for i, n := range in {
				switch poison[n] {
				case "error":
					return nil, fmt.Errorf("a batch with %d", n)
				case "panic":
					panic(fmt.Sprintf("a batch with %d", n))
				case "own error":
					errs[i] = fmt.Errorf("only %d", n)
				}
			}
			return tenfold(in), errs
		}, Options{Policy: Size(), MaxBatch: n, Bisect: AnyError})
		outs, err := b.DoMany(context.Background(), "k", in)
		if closeErr := b.Close(context.Background()); closeErr != nil {
			rt.Fatal(closeErr)
		}
		errs, _ := err.(Errors)
		for i, kind := range poison {
			var got error
			if errs != nil {
				got = errs[i]
			}
			switch {
			case kind == "" && (got != nil || outs[i] != 10*i):
				rt.Fatalf("item %d: %d, %v", i, outs[i], got)
			case kind != "" && (got == nil || !strings.HasSuffix(got.Error(), fmt.Sprint(i)) || errors.Is(got, ErrPanic) != (kind == "panic")):
				rt.Fatalf("item %d, %s: %v", i, kind, got)
			}
		}
		if calls > 2*n-1 {
			rt.Fatalf("%d calls for %d items", calls, n)
		}
	})
}

func TestB5_ErrorsReadsWell(t *testing.T) {
	err := Errors{nil, errBroken, nil, ErrPanic, errBroken, errBroken}
	want := "batch: 4 of 6 items failed; item 1: broken; item 3: batch: panic; item 4: broken; ..."
	if err.Error() != want {
		t.Fatalf("%q, want %q", err.Error(), want)
	}
	if !errors.Is(err, ErrPanic) || errors.Is(err, ErrClosed) {
		t.Fatal("errors.Is does not find what is there, or finds what is not")
	}
}
