package batch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestB2_RejectWhenFullRefusesInsteadOfStartingEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Policy: Duration(time.Minute).RejectWhenFull(), MaxBatch: 2})
		defer mustClose(t, b)
		answers := askAll(b, "k", 1, 2)
		s.idle(t) // full, and not yet due
		refusedBy(t, ask(b, "k", 3), "MaxBatch")
		other := ask(b, "other", 4) // the pace is the key's
		pass(time.Minute - 1)
		s.idle(t)
		refusedBy(t, ask(b, "k", 5), "MaxBatch")
		pass(1)
		calls := s.processing()
		if len(calls) != 2 {
			t.Fatalf("processing %v, want [1 2] and [4]", inputs(calls))
		}
		next := ask(b, "k", 6) // the batch has started: the next one opens, with a minute of its own
		calls[0].succeed()
		calls[1].succeed()
		good(t, append(answers, other)...)
		pass(time.Minute - 1)
		s.idle(t)
		pass(1)
		s.only(t, 6).succeed()
		good(t, next)
	})
}

// A batch of one is full as soon as it opens. With a hard pace it waits for its time all the same.
func TestB2_RejectWhenFullHoldsForBatchesOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Policy: Duration(time.Second).RejectWhenFull(), MaxBatch: 1})
		defer mustClose(t, b)
		a := ask(b, "k", 1)
		refusedBy(t, ask(b, "k", 2), "MaxBatch")
		pass(time.Second - 1)
		s.idle(t)
		pass(1)
		s.only(t, 1).succeed()
		good(t, a)
	})
}

// A place that a caller leaves in a full batch is free for the next one.
func TestB2_RejectWhenFullTakesItemsAgainWhenACallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Policy: Duration(time.Second).RejectWhenFull(), MaxBatch: 2})
		defer mustClose(t, b)
		answers := askAll(b, "k", 1, 2)
		refusedBy(t, ask(b, "k", 3), "MaxBatch")
		answers[1].cancel()
		bad(t, context.Canceled, answers[1])
		four := ask(b, "k", 4)
		pass(time.Second)
		s.only(t, 1, 4).succeed()
		good(t, answers[0], four)
	})
}

// While its place is taken a due batch waits, and refuses what it has no room for: two batches that had piled up would
// start at the same time.
func TestB2_RejectWhenFullKeepsOneBatchWaitingForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Policy: Duration(time.Second).RejectWhenFull(), MaxBatch: 2, Concurrency: 1})
		defer mustClose(t, b)
		first := ask(b, "k", 1)
		pass(time.Second)
		running := s.only(t, 1)
		waiting := askAll(b, "k", 2, 3)
		pass(time.Hour)
		refusedBy(t, ask(b, "k", 4), "MaxBatch")
		running.succeed()
		s.only(t, 2, 3).succeed()
		good(t, append(waiting, first)...)
	})
}

func TestB7_CloseDoesNotWaitForThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(func(_ context.Context, _ string, in []int) ([]int, error) { return tenfold(in), nil },
			Options{Policy: Duration(time.Hour).RejectWhenFull()})
		start := time.Now()
		a := ask(b, "k", 1)
		mustClose(t, b)
		good(t, a)
		if waited := time.Since(start); waited != 0 {
			t.Fatalf("closed after %v", waited)
		}
	})
}

// However many callers come, and however long batches take, those of a key start at least the duration apart and hold
// no more than MaxBatch, and nobody is refused but for a full batch.
func TestB2_RejectWhenFullIsAPaceThatHolds(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			pace := time.Duration(1+r.IntN(20)) * time.Millisecond
			most := 1 + r.IntN(4)
			var mu sync.Mutex
			began, served, refused := make(map[int]time.Time), 0, 0
			b := New(func(_ context.Context, key int, in []time.Duration) ([]int, error) {
				mu.Lock()
				if apart := time.Since(began[key]); apart < pace || len(in) > most {
					t.Errorf("seed %d: %d items %v after those before, want at most %d and at least %v", seed, len(in), apart, most, pace)
				}
				began[key] = time.Now()
				mu.Unlock()
				time.Sleep(in[0]) // virtual: how long the process function takes
				return make([]int, len(in)), nil
			}, Options{
				Policy: Duration(pace).RejectWhenFull(), MaxBatch: most,
				Concurrency: 1 + r.IntN(3), TotalConcurrency: 1 + r.IntN(4),
			})
			var group sync.WaitGroup
			for range 300 {
				time.Sleep(time.Duration(r.IntN(int(pace)/most + 1))) // virtual: callers that come at random
				key, takes := r.IntN(2), time.Duration(r.IntN(int(3*pace)))
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+r.IntN(int(20*pace))))
				group.Go(func() {
					defer cancel()
					_, err := b.Do(ctx, key, takes)
					var full *QueueFullError
					mu.Lock()
					defer mu.Unlock()
					switch {
					case errors.As(err, &full) && full.Limit == "MaxBatch":
						refused++
					case err == nil, errors.Is(err, context.DeadlineExceeded):
						served++
					default:
						t.Errorf("seed %d: %v", seed, err)
					}
				})
			}
			group.Wait()
			mustClose(t, b)
			if served == 0 || refused == 0 {
				t.Errorf("seed %d: %d served and %d refused; the test must see both", seed, served, refused)
			}
		})
	}
}

func TestBadInput_APaceThatCouldNotBeKept(t *testing.T) {
	process := func(_ context.Context, _ string, in []int) ([]int, error) { return in, nil }
	pace := Duration(time.Second).RejectWhenFull()
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{Policy: Size().RejectWhenFull()}, "Options.Policy is Size().RejectWhenFull(); only Duration can refuse when full"},
		{Options{Policy: Immediate().RejectWhenFull()}, "Options.Policy is Immediate().RejectWhenFull(); only Duration can refuse when full"},
		{Options{Policy: Duration(0).RejectWhenFull()}, "Options.Policy is Duration(0s).RejectWhenFull(); the duration must be above 0"},
		{Options{Policy: pace, MaxWaiting: 2}, "Options.MaxWaiting is 2; it must be 1 with Duration(1s).RejectWhenFull()"},
		{Options{Policy: pace, MaxWaiting: -1}, "Options.MaxWaiting is -1; it must be 1 with Duration(1s).RejectWhenFull()"},
		{Options{Policy: pace, MaxWait: time.Millisecond}, "Options.MaxWait is 1ms; it must be at least 1s with Duration(1s).RejectWhenFull()"},
	} {
		err := New(process, c.options).Err()
		if want := fmt.Sprintf("%v: %s", ErrInvalid, c.want); !errors.Is(err, ErrInvalid) || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	for _, o := range []Options{{Policy: pace}, {Policy: pace, MaxWaiting: 1, MaxWait: time.Second}, {Policy: pace, MaxWait: time.Hour}} {
		if err := New(process, o).Err(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
