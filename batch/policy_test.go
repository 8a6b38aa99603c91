package batch

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestB2_ImmediateStartsAtOnceBelowTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Concurrency: 2})
		defer mustClose(t, b)
		answers := askAll(b, "k", 1, 2)
		calls := s.processing()
		if len(calls) != 2 {
			t.Fatalf("processing %v, want [1] and [2]", inputs(calls))
		}
		calls[0].succeed()
		calls[1].succeed()
		good(t, answers...)
	})
}

func TestB2_ImmediateStaysOpenWhileItAcquires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := NewWork(s.work(), Options{MaxBatch: 3})
		defer mustClose(t, b)
		answers := askAll(b, "k", 1, 2, 3)
		if n := len(s.acquiring()); n != 1 {
			t.Fatalf("%d batches acquire, want all items in one", n)
		}
		answers = append(answers, ask(b, "k", 4)) // the first is full: a second one starts
		acquiring := s.acquiring()
		if len(acquiring) != 2 {
			t.Fatalf("%d batches acquire, want 2", len(acquiring))
		}
		acquiring[0].succeed()
		s.only(t, 1, 2, 3).succeed()
		acquiring[1].succeed()
		s.only(t, 4).succeed()
		good(t, answers...)
	})
}

func TestB2_ImmediateAtTheLimitStartsTheNextOnFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Concurrency: 1, MaxBatch: 2})
		defer mustClose(t, b)
		answers := askAll(b, "k", 1, 2, 3, 4)
		s.only(t, 1).succeed()
		s.only(t, 2, 3).succeed()
		s.only(t, 4).succeed()
		good(t, answers...)
	})
}

func TestB2_SizeProcessesWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Policy: Size(), MaxBatch: 3})
		defer mustClose(t, b)
		answers := askAll(b, "k", 1, 2)
		s.idle(t)
		answers = append(answers, ask(b, "k", 3))
		s.only(t, 1, 2, 3).succeed()
		good(t, answers...)
	})
}

func TestB2_NotASizeBatchThatWaitsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Policy: Size()}) // MaxWait is 1 s unless set
		defer mustClose(t, b)
		first := ask(b, "k", 1)
		pass(600 * time.Millisecond)
		second := ask(b, "k", 2)
		pass(400*time.Millisecond - 1)
		s.idle(t)
		pass(1)
		s.only(t, 1, 2).succeed()
		good(t, first, second)
	})
}

func TestB2_DurationProcessesWhenTheTimerFires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Policy: Duration(5 * time.Second)}) // longer than the MaxWait of other policies
		defer mustClose(t, b)
		first := ask(b, "k", 1)
		pass(3 * time.Second)
		second := ask(b, "k", 2)
		pass(2*time.Second - 1)
		s.idle(t)
		pass(1)
		s.only(t, 1, 2).succeed()
		good(t, first, second)

		third := ask(b, "k", 3) // the next batch has its own timer
		pass(5*time.Second - 1)
		s.idle(t)
		pass(1)
		s.only(t, 3).succeed()
		good(t, third)
	})
}

func TestB2_DurationProcessesWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Policy: Duration(time.Hour), MaxBatch: 2})
		defer mustClose(t, b)
		answers := askAll(b, "k", 1, 2)
		s.only(t, 1, 2).succeed()
		good(t, answers...)
	})
}

func TestB2_NotDurationWithAMaxSizeOfOneWaitingForItsTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Policy: Duration(time.Hour), MaxBatch: 1})
		defer mustClose(t, b)
		start := time.Now()
		a := ask(b, "k", 1)
		s.only(t, 1).succeed()
		good(t, a)
		if waited := time.Since(start); waited != 0 {
			t.Fatalf("waited %v", waited)
		}
	})
}

func TestB2_BalancedStartsAtOnceWhenNothingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Policy: Balanced(3)})
		defer mustClose(t, b)
		a := ask(b, "k", 1)
		other := ask(b, "other key", 2) // what runs for another key does not count
		calls := s.processing()
		if len(calls) != 2 {
			t.Fatalf("processing %v, want [1] and [2]", inputs(calls))
		}
		calls[0].succeed()
		calls[1].succeed()
		good(t, a, other)
	})
}

func TestB2_BalancedStartsAtTheHintWhenSomethingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Policy: Balanced(3)})
		defer mustClose(t, b)
		first := ask(b, "k", 1)
		one := s.only(t, 1)
		answers := askAll(b, "k", 2, 3)
		s.only(t, 1)
		answers = append(answers, ask(b, "k", 4))
		calls := s.processing()
		if len(calls) != 2 || len(calls[1].in) != 3 {
			t.Fatalf("processing %v, want [1] and [2 3 4]", inputs(calls))
		}
		calls[1].succeed()
		good(t, answers...)
		pending(t, first)
		one.succeed()
		good(t, first)
	})
}

func TestB2_BalancedTakesTheNextReadyBatchOnFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		b := New(s.process, Options{Policy: Balanced(2), Concurrency: 2, MaxBatch: 2})
		defer mustClose(t, b)
		answers := askAll(b, "k", 1, 2, 3, 4, 5, 6) // [1] and [2 3] run, [4 5] is ready, [6] is not
		calls := s.processing()
		if len(calls) != 2 {
			t.Fatalf("processing %v, want two", inputs(calls))
		}
		calls[0].succeed() // takes the ready one
		calls[1].succeed() // [6] is below the hint and something runs: it waits
		s.only(t, 4, 5).succeed()
		s.only(t, 6).succeed() // nothing runs any more: it starts
		good(t, answers...)
	})
}

func TestB2_EveryPolicyTakesMaxWait(t *testing.T) {
	for _, policy := range []Policy{Size(), Duration(time.Hour), Balanced(50)} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				b := New(s.process, Options{Policy: policy, MaxBatch: 50, MaxWait: 20 * time.Millisecond})
				defer mustClose(t, b)
				if policy.kind == balanced { // something must run for a batch to wait at all
					first := ask(b, "k", 0)
					defer good(t, first)
					defer s.only(t, 0).succeed()
				}
				busy := len(s.processing())
				a := ask(b, "k", 1)
				pass(20*time.Millisecond - 1)
				if n := len(s.processing()); n != busy {
					t.Fatalf("%d batches run before MaxWait, want %d", n, busy)
				}
				pass(1)
				calls := s.processing()
				if len(calls) != busy+1 {
					t.Fatalf("%d batches run at MaxWait, want %d", len(calls), busy+1)
				}
				calls[busy].succeed()
				good(t, a)
			})
		})
	}
}

// Immediate never lets a batch be less than ready, so MaxWait changes nothing and costs nothing.
func TestB2_MaxWaitDoesNotLiftTheLimits(t *testing.T) {
	for _, policy := range []Policy{Immediate(), Size(), Balanced(2)} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				b := New(s.process, Options{Policy: policy, MaxBatch: 2, Concurrency: 1, MaxWait: time.Millisecond})
				defer mustClose(t, b)
				first := ask(b, "k", 1)
				pass(time.Millisecond)
				running := s.only(t, 1)
				second := ask(b, "k", 2)
				pass(time.Hour)
				s.only(t, 1)
				running.succeed()
				s.only(t, 2).succeed()
				good(t, first, second)
			})
		})
	}
}
