package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

// A standby that is promoted without the last commits has not seen the newest
// workers, and its sequences stand before the numbers that they were given. The
// next worker gets another one all the same: the two must not renew each
// other's lease, claim in each other's name or give each other's jobs back.
func TestP2_ALostWorkersNumberIsNotGivenToAnother(t *testing.T) {
	s := openInternal(t)
	before := hire(t, s)
	put := func(text string, args ...any) {
		t.Helper()
		if _, err := s.pg.Work.Exec(t.Context(), s.pg.SQL(text), args...); err != nil {
			t.Fatal(err)
		}
	}
	put("DELETE FROM pawl.worker WHERE id = $1", before.worker)
	put("SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false) FROM pg_sequences WHERE schemaname = $1", s.options.Schema)
	after := hire(t, s)
	if before.worker == after.worker {
		t.Fatalf("number %d was given out twice", after.worker)
	}
	after.enqueue(many(2)...)
	jobs := after.claim(2)
	if len(jobs) != 2 {
		t.Fatalf("%d jobs were claimed, want 2", len(jobs))
	}
	if _, err := s.Beat(t.Context(), store.Beat{Worker: before.worker}); !errors.Is(err, job.ErrWorkerLost) {
		t.Errorf("the worker that was lost with its commit beats: %v, want ErrWorkerLost", err)
	}
	if _, err := s.ReportRuns(t.Context(), before.worker, nil); !errors.Is(err, job.ErrWorkerLost) {
		t.Errorf("it reports what it holds: %v, want ErrWorkerLost", err)
	}
	ends := []job.End{{ID: jobs[0].ID, Run: jobs[0].Run, To: job.Done}}
	verdicts, err := s.Finish(t.Context(), before.worker, ends)
	if err != nil || verdicts[0] != job.Stale {
		t.Errorf("it ends the other's run: %v, %v, want Stale", verdicts, err)
	}
	after.finish(jobs)
}

// Numbers ascend, also when the clock is set back: places among workers follow
// the order in which they came.
func TestJ32_WorkerNumbersAscendWhenTheClockIsSetBack(t *testing.T) {
	s := openInternal(t)
	last := job.WorkerID(0)
	for _, step := range []int{0, 10, -10, -30, 0} {
		s.SetClockOffset(time.Duration(step) * time.Minute)
		w := hire(t, s).worker
		if w <= last {
			t.Errorf("with the clock set %d minutes off a worker is number %d, after %d", step, w, last)
		}
		if w >= 1<<53 {
			t.Errorf("number %d is beyond what JSON keeps exact", w)
		}
		last = w
	}
}
