package commit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var (
	errClosed  = errors.New("closed")
	errUnknown = errors.New("unknown")
	errTired   = errors.New("tired")
)

// someCall is a call of the tests.
type someCall struct {
	Call
	id, rows int
}

func (c *someCall) Rows() int { return c.rows }

func newCall(id, rows int) *someCall { return &someCall{Call: NewCall(), id: id, rows: rows} }

func idsOf(batch []*someCall) (ids []int) {
	for _, i := range batch {
		ids = append(ids, i.id)
	}
	return ids
}

// bench is a committer whose batches last until the test lets them go. What is
// called in the test's own goroutine waits for everybody else to come to rest.
type bench struct {
	*Committer[*someCall]
	t       *testing.T
	begin   chan error    // gives Begin its result; without it there is no Begin
	proceed chan struct{} // lets a Commit go on
	batches [][]int
	ends    int
}

func startBench(t *testing.T, o Options[*someCall], begins bool) *bench {
	b := &bench{t: t, proceed: make(chan struct{})}
	if begins {
		b.begin = make(chan error)
		o.Begin = func() error { return <-b.begin }
	}
	o.Closed = errClosed
	o.End = func() { b.ends++ }
	o.Commit = func(batch []*someCall) {
		b.batches = append(b.batches, idsOf(batch))
		<-b.proceed
		for _, i := range batch {
			i.Answer(nil)
		}
	}
	b.Committer = Start(o)
	return b
}

// calls starts calls in order, with their ids, and returns where their answers will be.
func (b *bench) calls(ctx context.Context, rows int, ids ...int) (answers []chan error) {
	for _, id := range ids {
		answer := make(chan error, 1)
		go func() { answer <- b.Do(ctx, newCall(id, rows)) }()
		synctest.Wait()
		answers = append(answers, answer)
	}
	return answers
}

func (b *bench) wants(answers []chan error, want error) {
	b.t.Helper()
	for i, a := range answers {
		if err := <-a; !errors.Is(err, want) {
			b.t.Errorf("call %d is answered %v, want %v", i, err, want)
		}
	}
}

// open checks that nobody has been answered.
func (b *bench) open(answers []chan error) {
	b.t.Helper()
	synctest.Wait()
	for i, a := range answers {
		if len(a) != 0 {
			b.t.Errorf("call %d is answered %v, want that it waits", i, <-a)
		}
	}
}

func (b *bench) wantBatches(want ...[]int) {
	b.t.Helper()
	synctest.Wait()
	if fmt.Sprint(b.batches) != fmt.Sprint(want) {
		b.t.Errorf("batches %v, want %v", b.batches, want)
	}
}

func TestJ2_ALoneCallIsCommittedAtOnceAndOthersAreTheNextBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBench(t, Options[*someCall]{MaxRows: 100, Yield: UntilAll}, false)
		began := time.Now()
		first := b.calls(t.Context(), 1, 1)
		b.wantBatches([]int{1})
		others := b.calls(t.Context(), 1, 2, 3, 4)
		b.wantBatches([]int{1})
		b.proceed <- struct{}{}
		b.wants(first, nil)
		b.wantBatches([]int{1}, []int{2, 3, 4})
		b.proceed <- struct{}{}
		b.wants(others, nil)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("they waited for %v of virtual time: there is a timer", waited)
		}
		b.Close()
	})
}

func TestJ2_ABatchIsBoundedInRowsUnlessItIsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBench(t, Options[*someCall]{MaxRows: 10}, true)
		answers := slices.Concat(b.calls(t.Context(), 5, 1, 2), b.calls(t.Context(), 1, 3), b.calls(t.Context(), 11, 4), b.calls(t.Context(), 0, 5), b.calls(t.Context(), 10, 6))
		for range 4 {
			b.begin <- nil
			b.proceed <- struct{}{}
		}
		b.wants(answers, nil)
		// 4 is more than a batch, and 5 does not fit beside it: it has no rows, but there is no room.
		b.wantBatches([]int{1, 2}, []int{3}, []int{4}, []int{5, 6})
		b.Close()
	})
}

func TestJ2_WhatArrivesWhileItBeginsIsInTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBench(t, Options[*someCall]{MaxRows: 10}, true)
		answers := b.calls(t.Context(), 1, 1, 2, 3)
		b.wantBatches()
		b.begin <- nil
		b.wantBatches([]int{1, 2, 3})
		b.proceed <- struct{}{}
		b.wants(answers, nil)
		b.Close()
	})
}

func TestJ2_AFailedBeginIsTheAnswerOfItsBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBench(t, Options[*someCall]{MaxRows: 2}, true)
		answers := b.calls(t.Context(), 1, 1, 2, 3)
		locked := errors.New("locked")
		b.begin <- locked
		b.wants(answers[:2], locked)
		b.begin <- nil
		b.proceed <- struct{}{}
		b.wants(answers[2:], nil)
		b.wantBatches([]int{3})
		b.Close()
		if b.ends != 2 {
			t.Errorf("End was called %d times, want after each of 2 Begins", b.ends)
		}
	})
}

func TestJ2_ACallerThatGivesUpBeforeItWasTakenDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBench(t, Options[*someCall]{MaxRows: 10}, true)
		ctx, cancel := context.WithCancelCause(t.Context())
		tired := b.calls(ctx, 1, 1)
		patient := b.calls(t.Context(), 1, 2)
		tired = append(tired, b.calls(ctx, 1, 3, 4, 5)...)
		cancel(errTired)
		b.wants(tired, errTired)
		b.wants(b.calls(ctx, 1, 6), errTired) // it has ended before
		b.begin <- nil
		b.wantBatches([]int{2})
		b.proceed <- struct{}{}
		b.wants(patient, nil)

		// All of them: there is nothing to commit, but what was begun ends.
		ctx, cancel = context.WithCancelCause(t.Context())
		tired = b.calls(ctx, 1, 7, 8)
		cancel(errTired)
		b.wants(tired, errTired)
		b.begin <- nil
		b.wantBatches([]int{2})
		b.Close()
		if b.ends != 2 {
			t.Errorf("End was called %d times, want after each of 2 Begins", b.ends)
		}
	})
}

func TestJ2_ACallerThatGivesUpLater(t *testing.T) {
	for _, told := range []bool{true, false} {
		t.Run(fmt.Sprintf("is told that the outcome is unknown: %v", told), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := Options[*someCall]{MaxRows: 10}
				if told {
					o.Unknown = func(cause error) error { return fmt.Errorf("%w: %w", errUnknown, cause) }
				}
				b := startBench(t, o, false)
				ctx, cancel := context.WithCancelCause(t.Context())
				i := newCall(1, 1)
				answer := make(chan error, 1)
				go func() { answer <- b.Do(ctx, i) }()
				b.wantBatches([]int{1})
				cancel(errTired)
				synctest.Wait()
				if !i.Gone() {
					t.Error("Commit cannot see that the caller is gone")
				}
				if told {
					if err := <-answer; !errors.Is(err, errUnknown) || !errors.Is(err, errTired) {
						t.Errorf("answered %v, want that the outcome is unknown, and why", err)
					}
					if i.Answered() {
						t.Error("the call passes for answered: it would be used again while it runs")
					}
				} else {
					b.open([]chan error{answer})
				}
				b.proceed <- struct{}{}
				if !told {
					b.wants([]chan error{answer}, nil)
					if !i.Answered() {
						t.Error("the call does not pass for answered")
					}
				}
				b.Close()
			})
		})
	}
}

func TestJ2_CloseAnswersThoseWhoWaitAndRefusesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBench(t, Options[*someCall]{MaxRows: 2}, false)
		answers := b.calls(t.Context(), 1, 1, 2, 3, 4)
		closed := make(chan error, 1)
		go func() { b.Close(); closed <- nil }()
		synctest.Wait()
		b.wants(b.calls(t.Context(), 1, 5), errClosed)
		for range 3 {
			b.open([]chan error{closed})
			b.proceed <- struct{}{}
		}
		b.wants(answers, nil)
		<-closed
		b.wants(b.calls(t.Context(), 1, 6), errClosed)
		b.wantBatches([]int{1}, []int{2, 3}, []int{4})
		b.Close() // again
	})
}

// Who finds nobody else there, and cannot give up, commits in its own goroutine; what
// arrives meanwhile is committed as ever, and so is who could give up.
func TestJ34_ACallerThatFindsNobodyCommitsItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proceed := make(chan struct{})
		var by []string
		m := Start(Options[*someCall]{MaxRows: 10, Closed: errClosed, Commit: func(batch []*someCall) {
			stack := string(debug.Stack())
			by = append(by, fmt.Sprintf("%v by its caller: %v", idsOf(batch), strings.Contains(stack, "itself")))
			<-proceed
			for _, c := range batch {
				c.Answer(nil)
			}
		}})
		var wg sync.WaitGroup
		for id := range 3 {
			wg.Go(func() {
				if err := m.Do(context.Background(), newCall(id, 1)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		proceed <- struct{}{}
		proceed <- struct{}{}
		wg.Wait()
		go func() { proceed <- struct{}{} }()
		if err := m.Do(t.Context(), newCall(3, 1)); err != nil {
			t.Error(err)
		}
		if got, want := fmt.Sprint(by), "[[0] by its caller: true [1 2] by its caller: false [3] by its caller: false]"; got != want {
			t.Errorf("committed %s, want %s", got, want)
		}
		m.Close()
	})
}

// A panic in such a commit ends the caller's work and nobody else's.
func TestP8_ACommitThatPanicsInItsCaller(t *testing.T) {
	panics := true
	m := Start(Options[*someCall]{MaxRows: 10, Commit: func(batch []*someCall) {
		if panics {
			panics = false
			panic("no luck")
		}
		for _, c := range batch {
			c.Answer(nil)
		}
	}})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach its caller")
			}
		}()
		_ = m.Do(context.Background(), newCall(1, 1))
	}()
	if err := m.Do(t.Context(), newCall(2, 1)); err != nil {
		t.Error(err)
	}
	m.Close()
}

func TestJ2_ACallHasOneAnswer(t *testing.T) {
	i := newCall(1, 1)
	i.Answer(errTired)
	defer func() {
		if recover() == nil {
			t.Error("a second answer passed")
		}
		if err := i.Wait(); err != nil && !errors.Is(err, errTired) {
			t.Error(err)
		}
	}()
	i.Answer(errTired)
}

// Those who were just answered are waited for, a lone caller is not.
func TestJ2_YieldRules(t *testing.T) {
	for _, c := range []struct {
		interval  Interval
		all, half bool
	}{
		{Interval{Answered: 1}, false, true},
		{Interval{Answered: 0, First: 1, Waiting: 1}, false, false},
		{Interval{Answered: 8, First: 8, Waiting: 8}, true, false},
		{Interval{Answered: 8, First: 8, Waiting: 15, Round: 1}, true, false},
		{Interval{Answered: 8, First: 8, Waiting: 16, Round: 1}, false, false},
		{Interval{Answered: 8, First: 0, Waiting: 3, Round: 2}, true, true},
		{Interval{Answered: 8, First: 0, Waiting: 4, Round: 2}, true, false},
		{Interval{Answered: 8, First: 0, Waiting: 3, Round: 3}, true, false},
		{Interval{Answered: 8, First: 0, Waiting: 3, Round: 7}, true, false},
		{Interval{Answered: 8, First: 0, Waiting: 3, Round: 8}, false, false},
	} {
		if got := UntilAll(c.interval); got != c.all {
			t.Errorf("UntilAll(%+v) is %v", c.interval, got)
		}
		if got := UntilHalf(c.interval); got != c.half {
			t.Errorf("UntilHalf(%+v) is %v", c.interval, got)
		}
	}
}

// Many goroutines in real time, for the race detector: a call is run once or not
// at all, its caller knows which, and calls are used again when they were answered.
func TestJ2_EveryCallIsRunOnceOrNeverAndItsCallerKnows(t *testing.T) {
	const callers, each, most = 16, 300, 7
	var runs [callers * each]atomic.Int32
	m := Start(Options[*someCall]{
		MaxRows: most, Yield: UntilHalf, Closed: errClosed, Reuse: true,
		Commit: func(batch []*someCall) {
			rows := 0
			for _, i := range batch {
				rows += i.rows
				runs[i.id].Add(1)
			}
			if rows > most && len(batch) > 1 {
				t.Errorf("%d rows in a batch of %d calls", rows, len(batch))
			}
			for _, i := range batch {
				i.Answer(nil)
			}
		},
	})
	var calls sync.Pool
	calls.New = func() any { return newCall(0, 0) }
	var wg sync.WaitGroup
	for n := range callers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(n)))
			for k := range each {
				ctx, cancel := context.WithCancelCause(t.Context())
				if random.IntN(3) == 0 {
					go cancel(errTired)
				}
				i := calls.Get().(*someCall)
				id := n*each + k
				i.id, i.rows = id, random.IntN(most+3)
				err := m.Do(ctx, i)
				if i.Answered() {
					calls.Put(i)
				}
				cancel(nil)
				if got := runs[id].Load(); err == nil && got != 1 || err != nil && (got != 0 || !errors.Is(err, errTired)) {
					t.Errorf("call %d was run %d times and answered %v", id, got, err)
				}
			}
		})
	}
	wg.Wait()
	m.Close()
	for id := range runs {
		if n := runs[id].Load(); n > 1 {
			t.Errorf("call %d was run %d times", id, n)
		}
	}
}

func BenchmarkDo(b *testing.B) {
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("%d callers", callers), func(b *testing.B) {
			m := Start(Options[*someCall]{MaxRows: 5000, Yield: UntilHalf, Reuse: true, Commit: func(batch []*someCall) {
				for _, i := range batch {
					i.Answer(nil)
				}
			}})
			defer m.Close()
			b.ReportAllocs()
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for i := newCall(0, 1); left.Add(-1) >= 0; {
						if err := m.Do(context.Background(), i); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}
