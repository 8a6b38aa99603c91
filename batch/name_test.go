package batch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// shared is one observer for many batchers: each tells a diary of its own.
type shared struct {
	diary // nothing must come here
	named map[string]*diary
}

func (s *shared) Named(name string) Observer {
	d := &diary{}
	s.named[name] = d
	return d
}

func TestB9_AnObserverOfManyBatchersIsToldTheirNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observer := shared{named: make(map[string]*diary)}
		process := func(_ context.Context, _ string, in []int) ([]int, error) { return tenfold(in), nil }
		orders := New(process, Options{Name: "orders", Observer: &observer})
		mails := New(process, Options{Name: "mails", Observer: &observer})
		for i := range 3 {
			good(t, ask(orders, "k", i))
		}
		good(t, ask(mails, "k", 4))
		mustClose(t, orders)
		mustClose(t, mails)
		if len(observer.lines) != 0 {
			t.Errorf("the nameless observer was told %v", observer.lines)
		}
		for name, batches := range map[string]int{"orders": 3, "mails": 1} {
			d := observer.named[name]
			if d == nil || len(d.reports) != batches {
				t.Fatalf("%s: %+v, want %d reports", name, d, batches)
			}
			for _, r := range d.reports {
				if r.Name != name {
					t.Errorf("a report of %s has the name %q", name, r.Name)
				}
			}
		}
		if orders.Name() != "orders" {
			t.Errorf("its name is %q", orders.Name())
		}
	})
}

// tracers is an observer whose batchers are traced under their names.
type tracers struct {
	diary
	spans spans
}

func (tr *tracers) Named(string) Observer { return &tr.spans }

func TestB9_TheObserverOfANameMayTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var observer tracers
		b := New(func(_ context.Context, _ string, in []int) ([]int, error) { return tenfold(in), nil },
			Options{Name: "orders", Observer: &observer})
		if _, err := b.Do(context.WithValue(t.Context(), spanKey{}, "one"), "k", 1); err != nil {
			t.Fatal(err)
		}
		mustClose(t, b)
		if ended := observer.spans.ended; len(ended) != 1 || ended[0].Name != "orders" {
			t.Errorf("ended %+v, want one span of orders", ended)
		}
	})
}

// nobody has no observer for a name.
type nobody struct{ diary }

func (*nobody) Named(string) Observer { return nil }

func TestB9_NoObserverForAName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(func(_ context.Context, _ string, in []int) ([]int, error) { return tenfold(in), nil }, Options{Observer: &nobody{}})
		good(t, ask(b, "k", 1))
		mustClose(t, b)
	})
}

// Every error that the batcher makes itself carries its name; an error of the user's function is passed on as it is.
func TestB9_ErrorsCarryTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		work := s.work()
		work.Weigh = func(in int) int { return in }
		b := NewWork(work, Options{
			Name: "orders", MaxBatch: 1, Concurrency: 1, MaxWaiting: 1, TotalItems: 4, TotalBytes: 1000, AcquireTimeout: time.Hour,
		})
		one, two := ask(b, "k", 1), ask(b, "k", 2)
		told := func(want error, text string, a *answer) {
			t.Helper()
			bad(t, want, a)
			if !strings.HasPrefix(a.err.Error(), "orders: batch: ") || !strings.Contains(a.err.Error(), text) {
				t.Errorf("%v, want it to begin with the name and to contain %q", a.err, text)
			}
		}
		told(ErrQueueFull, "MaxWaiting", ask(b, "k", 3))
		told(ErrQueueFull, "TotalBytes", ask(b, "other", 5000))
		told(ErrInvalid, "Work.Weigh returned -1", ask(b, "other", -1))
		s.acquiring()[0].succeed()
		s.only(t, 1).end(func() ([]int, error) { return nil, nil })
		told(ErrWrongOutputs, "0 for 1", one)
		s.acquiring()[0].succeed()
		s.only(t, 2).panics("oops")
		told(ErrPanic, "oops", two)

		three := ask(b, "k", 3)
		s.acquiring()[0].succeed()
		s.only(t, 3).fail(errBroken)
		bad(t, errBroken, three)
		if three.err != errBroken {
			t.Errorf("the user's error became %v", three.err)
		}

		four := ask(b, "k", 4)
		slow := s.acquiring()[0]
		pass(time.Hour)
		slow.succeed()
		told(context.DeadlineExceeded, "AcquireTimeout", four)

		five, six := ask(b, "k", 5), ask(b, "k", 6)
		s.acquiring()[0].succeed()
		five.cancel()
		told(ErrOutcomeUnknown, "context canceled", five)
		hasty, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.Close(hasty); err == nil || !strings.HasPrefix(err.Error(), "orders: batch: close gave up 1 items") {
			t.Errorf("close: %v", err)
		}
		told(ErrClosed, "closed", six)
		told(ErrClosed, "closed", ask(b, "k", 7))
		s.only(t, 5).succeed()
	})
}

func TestBadInput_Names(t *testing.T) {
	process := func(_ context.Context, _ string, in []int) ([]int, error) { return in, nil }
	for _, name := range []string{strings.Repeat("x", 129), "two\nlines", "\xff", "bell\a"} {
		err := New(process, Options{Name: name}).Err()
		if !errors.Is(err, ErrInvalid) || !strings.HasPrefix(err.Error(), "batch: invalid: Options.Name is ") {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "orders", strings.Repeat("x", 128), "Aufträge, eilig"} {
		if err := New(process, Options{Name: name}).Err(); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	err := New(process, Options{Name: "orders", MaxBatch: -1, Concurrency: -1}).Err()
	if got := strings.Split(err.Error(), "\n"); !slices.Equal(got, []string{
		"orders: batch: invalid: Options.MaxBatch is -1; it must be from 1 to 1048576",
		"batch: invalid: Options.Concurrency is -1; it must be from 1 to 1048576",
	}) {
		t.Errorf("faults %q", got)
	}
}
