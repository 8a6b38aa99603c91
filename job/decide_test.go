package job_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
)

var policy = job.Policy{
	Backoff: func(f job.FailedAttempt) time.Duration { return time.Duration(f.Attempt) * time.Minute },
	Keep:    job.Keep{}.WithDefaults(),
}

func decide(kind job.OutcomeKind, used, attempts int) job.End {
	r := job.Run{ID: job.NewID(), Run: 7, Used: used, MaxAttempts: attempts}
	return job.Decide(r, job.Outcome{Kind: kind, Message: "no luck", Delay: time.Hour, Result: []byte("r")}, policy)
}

func TestJ7_OutcomesBecomeMoves(t *testing.T) {
	for _, c := range []struct {
		name           string
		kind           job.OutcomeKind
		used, attempts int
		to             job.State
		delay          time.Duration
		burn, fails    bool
	}{
		{"success", job.Succeeded, 0, 5, job.Done, 0, false, false},
		{"first failure", job.Failed, 0, 5, job.Waiting, time.Minute, true, true},
		{"third failure", job.Failed, 2, 5, job.Waiting, 3 * time.Minute, true, true},
		{"last failure", job.Failed, 4, 5, job.Dead, 0, true, true},
		{"only attempt", job.Failed, 0, 1, job.Dead, 0, true, true},
		{"gave up with attempts left", job.GaveUp, 0, 5, job.Dead, 0, true, true},
		{"given back", job.Released, 4, 5, job.Waiting, 0, false, false},
		{"asked to cancel", job.CancelSeen, 0, 5, job.Cancelled, 0, false, false},
		{"out of time", job.OutOfTime, 0, 5, job.Dead, 0, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := decide(c.kind, c.used, c.attempts)
			if e.To != c.to || e.Delay != c.delay || e.Burn != c.burn || (e.Failure != nil) != c.fails || e.Run != 7 {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func TestJ9_SnoozeBurnsNoAttempt(t *testing.T) {
	e := decide(job.Snoozed, 4, 5) // even with no attempt to spare
	if e.To != job.Waiting || e.Delay != time.Hour || e.Burn || !e.Snooze || e.Failure != nil || e.Reason != "no luck" {
		t.Errorf("got %+v", e)
	}
}

// Waiting for a store costs no attempt, ten times with growing waits; then the
// error counts like any other.
func TestJ32_StoreFailuresBurnNoAttemptForAWhile(t *testing.T) {
	j := job.Job{ID: job.NewID(), MaxAttempts: 2}
	waited := time.Duration(0)
	free := 0
	for j.Run = 1; ; j.Run++ {
		r := job.Run{ID: j.ID, Run: j.Run, Used: j.Used, MaxAttempts: j.MaxAttempts, StoreFailures: j.StoreFailures()}
		e := job.Decide(r, job.Outcome{Kind: job.StoreFailed, Message: "locked"}, policy)
		j.Failures = job.StoredFailures(job.AppendFailure(j.Failures.Stored(), time.Time{}, e.Failure))
		if f, some := j.Failures.Last(); !some || f.Message != "locked" || f.Store == e.Burn || e.Snooze {
			t.Fatalf("run %d: %+v", j.Run, e)
		}
		if j.Run > 1000 {
			t.Fatal("it is tried for ever")
		}
		if e.To == job.Dead {
			break
		}
		if e.Burn {
			if e.Delay != time.Minute {
				t.Errorf("waits %v, not for the backoff", e.Delay)
			}
			j.Used++
			continue
		}
		if least, most := time.Second, time.Minute; e.Delay <= least || e.Delay > most {
			t.Errorf("run %d waits %v", j.Run, e.Delay)
		}
		waited += e.Delay
		free++
	}
	if free != 2*job.MaxStoreFailures || j.Run != int64(free)+2 || j.Used != 1 {
		t.Errorf("%d runs for free of %d, %d attempts burned before the last", free, j.Run, j.Used)
	}
	if waited < 2*3*time.Minute || waited > 2*7*time.Minute {
		t.Errorf("waited %v for the store in two attempts", waited)
	}
}

func TestJ31_UnreadableArgumentsAreParkedAndBurnNothing(t *testing.T) {
	e := decide(job.Undecoded, 4, 5)
	if e.To != job.Suspended || e.Burn || e.Failure != nil || e.Wait != job.Parked || e.Reason != "no luck" {
		t.Errorf("got %+v", e)
	}
}

func TestP9_CancelRequestDoesNotUndoWhatWasDone(t *testing.T) {
	for _, to := range []job.State{job.Done, job.Dead} {
		if e := job.Settle(job.End{To: to}, true); e.To != to {
			t.Errorf("%s became %s", to, e.To)
		}
	}
	for _, to := range []job.State{job.Waiting, job.Suspended} {
		if e := job.Settle(job.End{To: to, Wait: job.Parked}, true); e.To != job.Cancelled || e.Wait != job.NoWait {
			t.Errorf("%s became %s, want cancelled", to, e.To)
		}
		if e := job.Settle(job.End{To: to}, false); e.To != to {
			t.Errorf("%s became %s without a request", to, e.To)
		}
	}
}

func TestJ9_RetryInBurnsAnAttemptAndChoosesItsTime(t *testing.T) {
	retryIn := job.Outcome{Kind: job.Failed, Message: "no luck", Delay: 3 * time.Hour, Timed: true}
	never := job.Policy{Backoff: func(job.FailedAttempt) time.Duration { panic("asked") }}
	e := job.Decide(job.Run{Run: 7, Used: 1, MaxAttempts: 5}, retryIn, never)
	if e.To != job.Waiting || e.Delay != 3*time.Hour || !e.Burn || e.Snooze || e.Failure == nil {
		t.Errorf("with attempts left: %+v", e)
	}
	if e := job.Decide(job.Run{Run: 7, Used: 4, MaxAttempts: 5}, retryIn, never); e.To != job.Dead || !e.Burn {
		t.Errorf("the last attempt: %+v", e)
	}
	retryIn.Delay = 0
	if e := job.Decide(job.Run{Run: 7, MaxAttempts: 5}, retryIn, never); e.To != job.Waiting || e.Delay != 0 || !e.Burn {
		t.Errorf("at once: %+v", e)
	}
}

func TestJ7_BackoffSeesTheErrorAndTheJob(t *testing.T) {
	j := &job.Job{ID: job.NewID()}
	cause := errors.New("no luck")
	var saw job.FailedAttempt
	p := job.Policy{Backoff: func(f job.FailedAttempt) time.Duration { saw = f; return time.Minute }}
	job.Decide(job.Run{ID: j.ID, Run: 7, Used: 2, MaxAttempts: 5, Job: j}, job.Outcome{Kind: job.Failed, Err: cause, Message: "no luck"}, p)
	if saw != (job.FailedAttempt{Attempt: 3, Err: cause, Job: j}) {
		t.Errorf("it saw %+v", saw)
	}
}

func TestP10_FailureTextIsBounded(t *testing.T) {
	f := job.NewFailure(1, 1, strings.Repeat("é", 10_000), strings.Repeat("s", 100_000))
	if len(f.Message) > 5<<10 || len(f.Stack) > 9<<10 || !strings.HasSuffix(f.Message, "…") {
		t.Errorf("message %d bytes, stack %d bytes", len(f.Message), len(f.Stack))
	}
	if f := job.NewFailure(1, 1, "bad \xff byte", ""); f.Message != "bad \uFFFD byte" {
		t.Errorf("message %q", f.Message)
	}
}

func TestJ7_BackoffDoublesWithinItsBounds(t *testing.T) {
	wait := job.Exponential(time.Second, 30*time.Minute)
	for used := 1; used <= 100; used++ {
		ceiling := 30 * time.Minute
		if used < 12 {
			ceiling = min(ceiling, time.Second<<(used-1))
		}
		for range 50 {
			if d := wait(job.FailedAttempt{Attempt: used}); d < ceiling/2 || d > ceiling {
				t.Fatalf("after %d: %v is not within %v..%v", used, d, ceiling/2, ceiling)
			}
		}
	}
	spread := map[time.Duration]bool{}
	for range 100 {
		spread[wait(job.FailedAttempt{Attempt: 5})] = true
	}
	if len(spread) < 50 {
		t.Errorf("only %d different waits of 100: no jitter", len(spread))
	}
}

func TestJ7_DefaultsRetryForAboutThreeDays(t *testing.T) {
	wait := job.Exponential(job.BackoffBase, job.BackoffMax)
	var ceilings, longest time.Duration
	for attempt := 1; attempt < job.DefaultAttempts; attempt++ { // none after the last
		ceiling := min(time.Second<<(attempt-1), 6*time.Hour)
		if d := wait(job.FailedAttempt{Attempt: attempt}); d < ceiling/2 || d > ceiling {
			t.Errorf("after attempt %d: %v is not within %v..%v", attempt, d, ceiling/2, ceiling)
		}
		ceilings, longest = ceilings+ceiling, max(longest, ceiling)
	}
	if days := ceilings.Hours() / 24; days < 2.5 || days > 3.5 || longest != 6*time.Hour {
		t.Errorf("%d attempts last %.1f days with at most %v between them, want about 3 days with 6 h", job.DefaultAttempts, days, longest)
	}
}

// One attempt is not "all 1 attempts".
func TestJ7_AnOnlyAttemptIsCalledSo(t *testing.T) {
	for most, want := range map[int]string{1: "its only attempt failed", 2: "all 2 attempts failed"} {
		e := job.Decide(job.Run{Used: most - 1, MaxAttempts: most}, job.Outcome{Kind: job.Failed, Message: "no"}, job.Policy{})
		if e.To != job.Dead || e.Reason != want {
			t.Errorf("%d: %s: %s", most, e.To, e.Reason)
		}
	}
}
