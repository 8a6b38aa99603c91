package sqlite

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/jobs"
)

// gather starts calls while the write lock is held and lets them go at once.
func gather(t *testing.T, s *Store, n int, call func(i int)) {
	t.Helper()
	if err := s.lock.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { call(i) })
	}
	synctest.Wait() // all of them wait for the lock
	s.lock.Release()
	wg.Wait()
}

func TestJ2_CallsOfManyGoroutinesShareACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Memory())
		commits := 0
		s.writer.conn.Raw.CommitHook(func() bool { commits++; return true })
		gather(t, s, 100, func(int) {
			if _, err := s.Enqueue(t.Context(), drafts(1)); err != nil {
				t.Error(err)
			}
		})
		if commits != 1 {
			t.Errorf("100 enqueues that waited together took %d commits, want 1", commits)
		}
		if n := s.mustCount(t); n != 100 {
			t.Errorf("%d jobs, want 100", n)
		}
	})
}

func TestJ2_RowsOfOneCommitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Memory())
		commits := 0
		s.writer.conn.Raw.CommitHook(func() bool { commits++; return true })
		gather(t, s, 3, func(int) {
			if _, err := s.Enqueue(t.Context(), drafts(maxRows-1)); err != nil {
				t.Error(err)
			}
		})
		if commits != 3 {
			t.Errorf("3 large enqueues took %d commits, want one each", commits)
		}
	})
}

func TestP8_ACallsErrorIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Memory())
		broken := errors.New("broken")
		gather(t, s, 30, func(i int) {
			err := s.write(t.Context(), 1, func(tr *jobs.Transition) error {
				if _, err := tr.Enqueue(drafts(1)); err != nil {
					return err
				}
				switch i {
				case 7:
					return broken
				case 13:
					panic("thirteen")
				}
				return nil
			})
			switch i {
			case 7:
				wantErr(t, "the broken call", err, broken)
			case 13:
				if err == nil || !strings.Contains(err.Error(), "thirteen") {
					t.Errorf("the call that panics: %v, want its panic", err)
				}
			default:
				if err != nil {
					t.Errorf("call %d: %v: the error is another's", i, err)
				}
			}
		})
		if n := s.mustCount(t); n != 28 {
			t.Errorf("%d jobs, want those of the 28 calls that are well", n)
		}
	})
}

// A refusal changes nothing, so the batch around it commits in one go.
func TestP8_ARefusedCallDoesNotSplitTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Memory())
		commits := 0
		s.writer.conn.Raw.CommitHook(func() bool { commits++; return true })
		gather(t, s, 10, func(i int) {
			if i == 3 {
				_, err := s.Claim(t.Context(), claimOf(99, 1, 1))
				wantErr(t, "claim of nobody", err, job.ErrWorkerLost)
				return
			}
			if _, err := s.Enqueue(t.Context(), drafts(1)); err != nil {
				t.Error(err)
			}
		})
		if commits != 1 {
			t.Errorf("%d commits, want 1", commits)
		}
	})
}

func TestJ2_ACallerThatGivesUpWhileItWaitsIsNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Memory())
		if err := s.lock.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		tired := errors.New("tired of waiting")
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := s.Enqueue(ctx, drafts(1))
			wantErr(t, "the caller that gave up", err, tired)
		})
		wg.Go(func() {
			if _, err := s.Enqueue(t.Context(), drafts(1)); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		cancel(tired)
		synctest.Wait()
		s.lock.Release()
		wg.Wait()
		if n := s.mustCount(t); n != 1 {
			t.Errorf("%d jobs, want only that of the caller who stayed", n)
		}
	})
}

// Once a call runs, its answer comes: a context that ends then does not make
// the outcome unknown.
func TestP1_ACallThatRunsIsAnswered(t *testing.T) {
	s := open(t, Memory())
	ctx, cancel := context.WithCancel(t.Context())
	err := s.write(ctx, 1, func(tr *jobs.Transition) error {
		cancel()
		_, err := tr.Enqueue(drafts(1))
		return err
	})
	if err != nil {
		t.Errorf("%v, want the answer of the commit", err)
	}
	if n := s.mustCount(t); n != 1 {
		t.Errorf("%d jobs, want 1", n)
	}
}

func TestP1_NilMeansFlushed(t *testing.T) {
	d, name := newDisk(t)
	o := newFile(t).(opener)
	o.vfs = name
	s := open(t, o)
	for range 3 {
		before := d.flushes.Load()
		s.mustEnqueue(t, draft())
		if d.flushes.Load() == before {
			t.Error("enqueue returned nil without a flush of the log")
		}
	}
}

func TestP1_TheWeakerOptionDoesNotFlush(t *testing.T) {
	d, name := newDisk(t)
	o := newFile(t, Options{Synchronous: LoseLastOnPowerCut}).(opener)
	o.vfs = name
	s := open(t, o)
	before := d.flushes.Load()
	s.mustEnqueue(t, draft())
	if got := d.flushes.Load(); got != before {
		t.Errorf("%d flushes, want none", got-before)
	}
}

func TestJ6_AnEmptyClaimWritesNothing(t *testing.T) {
	d, name := newDisk(t)
	o := newFile(t).(opener)
	o.vfs = name
	s := open(t, o)
	w := s.mustRegister(t)
	later := draft()
	later.In = 1e12
	s.mustEnqueue(t, later)
	size := func() int64 {
		info, err := os.Stat(s.file.Name + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	flushes, before := d.flushes.Load(), size()
	for seq := range int64(5) {
		if got := s.mustClaim(t, claimOf(w, seq+1, 10)); len(got.Jobs) != 0 || got.Next <= 0 {
			t.Errorf("claimed %d jobs, next in %v, want none and a time", len(got.Jobs), got.Next)
		}
	}
	if d.flushes.Load() != flushes || size() != before {
		t.Errorf("5 empty claims flushed %d times and wrote %d bytes, want nothing", d.flushes.Load()-flushes, size()-before)
	}
}

func TestClose_AnswersThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Memory())
		if err := s.lock.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := s.Enqueue(context.Background(), drafts(1)); err != nil {
					t.Errorf("a call under way: %v", err)
				}
			})
		}
		synctest.Wait()
		wg.Go(func() { s.Close() })
		synctest.Wait()
		_, err := s.Enqueue(t.Context(), drafts(1))
		wantErr(t, "enqueue while it closes", err, store.ErrClosed)
		s.lock.Release()
		wg.Wait()
	})
}
