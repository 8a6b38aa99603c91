package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage stands in for a process function and an acquisition: every call waits until the test says how it ends.
type stage struct {
	mu        sync.Mutex
	processes []*call // that wait
	acquires  []*call // that wait
	released  []string
}

// newStage makes a stage that ends all its calls if the test fails, so that the failure is what one gets to read.
func newStage(t *testing.T) *stage {
	s := &stage{}
	t.Cleanup(func() {
		for t.Failed() {
			calls := append(s.acquiring(), s.processing()...)
			if len(calls) == 0 {
				return
			}
			calls[0].fail(errBroken)
		}
	})
	return s
}

// call is one call of a user's function that waits for the test.
type call struct {
	key    string
	in     []int
	ctx    context.Context
	ending chan func() ([]int, error)
}

func (s *stage) wait(ctx context.Context, key string, in []int, list *[]*call) ([]int, error) {
	c := &call{key: key, in: slices.Clone(in), ctx: ctx, ending: make(chan func() ([]int, error))}
	s.mu.Lock()
	*list = append(*list, c)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		*list = slices.DeleteFunc(*list, func(other *call) bool { return other == c })
		s.mu.Unlock()
	}()
	return (<-c.ending)()
}

func (s *stage) process(ctx context.Context, key string, in []int) ([]int, error) {
	return s.wait(ctx, key, in, &s.processes)
}

func (s *stage) work() Work[string, string, int, int] {
	return Work[string, string, int, int]{
		Process: func(ctx context.Context, key, _ string, in []int) ([]int, error) { return s.process(ctx, key, in) },
		Acquire: func(ctx context.Context, key string) (string, error) {
			_, err := s.wait(ctx, key, nil, &s.acquires)
			return "resource of " + key, err
		},
		Release: func(_ string, resource string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.released = append(s.released, resource)
		},
	}
}

// processing returns the calls of process that wait, when all goroutines have come to rest.
func (s *stage) processing() []*call { return s.resting(&s.processes) }
func (s *stage) acquiring() []*call  { return s.resting(&s.acquires) }

func (s *stage) resting(list *[]*call) []*call {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(*list)
}

// only returns the single call of process that waits, and fails if its inputs are others.
func (s *stage) only(t *testing.T, in ...int) *call {
	t.Helper()
	calls := s.processing()
	if len(calls) != 1 || !slices.Equal(calls[0].in, in) {
		t.Fatalf("processing %v, want one batch %v", inputs(calls), in)
	}
	return calls[0]
}

// idle fails if a batch is in processing.
func (s *stage) idle(t *testing.T) {
	t.Helper()
	if calls := s.processing(); len(calls) != 0 {
		t.Fatalf("processing %v, want nothing", inputs(calls))
	}
}

func inputs(calls []*call) (all [][]int) {
	for _, c := range calls {
		all = append(all, c.in)
	}
	return all
}

func (c *call) end(with func() ([]int, error)) { c.ending <- with; synctest.Wait() }
func (c *call) succeed()                       { c.end(func() ([]int, error) { return tenfold(c.in), nil }) }
func (c *call) fail(err error)                 { c.end(func() ([]int, error) { return nil, err }) }
func (c *call) panics(value any)               { c.end(func() ([]int, error) { panic(value) }) }
func (c *call) exits()                         { c.end(func() ([]int, error) { runtime.Goexit(); return nil, nil }) }

func tenfold(in []int) []int {
	outs := make([]int, len(in))
	for i := range in {
		outs[i] = 10 * in[i]
	}
	return outs
}

// answer is what a call of Do will return.
type answer struct {
	in     int
	cancel context.CancelFunc
	done   chan struct{}
	out    int
	err    error
}

// ask calls Do in a goroutine and returns when it has come to rest.
func ask(b *Batcher[string, int, int], key string, in int) *answer {
	ctx, cancel := context.WithCancel(context.Background())
	a := &answer{in: in, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		defer cancel()
		a.out, a.err = b.Do(ctx, key, in)
	}()
	synctest.Wait()
	return a
}

func askAll(b *Batcher[string, int, int], key string, in ...int) (answers []*answer) {
	for _, n := range in {
		answers = append(answers, ask(b, key, n))
	}
	return answers
}

func (a *answer) here() bool {
	synctest.Wait()
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// good fails unless every answer is there and right.
func good(t *testing.T, answers ...*answer) {
	t.Helper()
	for _, a := range answers {
		switch {
		case !a.here():
			t.Fatalf("item %d has no answer", a.in)
		case a.err != nil || a.out != 10*a.in:
			t.Fatalf("item %d: %d, %v; want %d", a.in, a.out, a.err, 10*a.in)
		}
	}
}

// bad fails unless every answer is there and is the error.
func bad(t *testing.T, want error, answers ...*answer) {
	t.Helper()
	for _, a := range answers {
		switch {
		case !a.here():
			t.Fatalf("item %d has no answer", a.in)
		case !errors.Is(a.err, want):
			t.Fatalf("item %d: %d, %v; want the error %v", a.in, a.out, a.err, want)
		}
	}
}

func pending(t *testing.T, answers ...*answer) {
	t.Helper()
	for _, a := range answers {
		if a.here() {
			t.Fatalf("item %d is answered with %d, %v; want it to wait", a.in, a.out, a.err)
		}
	}
}

// pass lets virtual time go by.
func pass(d time.Duration) { time.Sleep(d); synctest.Wait() }

// mustClose ends a test's batcher and proves that it holds nothing any more.
func mustClose[K comparable, In, Out any](t *testing.T, b *Batcher[K, In, Out]) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if t.Failed() { // do not wait for what the test did not finish
		cancel()
	}
	if err := b.Close(ctx); err != nil {
		t.Fatal(err)
	}
	checkEmpty(t, b)
}

// checkEmpty fails if any capacity or state is left behind.
func checkEmpty[K comparable, In, Out any](t testing.TB, b *Batcher[K, In, Out]) {
	t.Helper()
	if err := leftBehind(b); err != nil {
		t.Fatal(err)
	}
}

func leftBehind[K comparable, In, Out any](b *Batcher[K, In, Out]) error {
	synctest.Wait()
	if stats := b.Stats(); stats != (Stats{}) {
		return fmt.Errorf("left behind: %+v", stats)
	}
	if free := b.turns.free.Load(); free != int64(b.options.TotalConcurrency) {
		return fmt.Errorf("%d of %d places are free", free, b.options.TotalConcurrency)
	}
	if b.turns.waiting.Load() != 0 || b.turns.head != nil || b.turns.tail != nil {
		return fmt.Errorf("a key stands in line for a place")
	}
	for _, s := range b.segments {
		if len(s.deadlines) != 0 || s.hovering != 0 || len(s.handed) != 0 {
			return fmt.Errorf("a segment has %d deadlines, %d goroutines hovering and %d batches handed", len(s.deadlines), s.hovering, len(s.handed))
		}
	}
	return nil
}
