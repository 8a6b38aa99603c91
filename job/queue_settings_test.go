package job_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
)

func TestJ30_QueueSettingsAreJSON(t *testing.T) {
	s := job.QueueSettings{
		Total: job.NoTotal, Attempts: 3, KeepDone: job.KeepNone, KeepDead: 90 * time.Minute, KeepCancelled: time.Millisecond, Aging: job.NoAging,
		Backoff: &job.BackoffSettings{Base: 1500 * time.Millisecond, Max: time.Hour, Factor: 1.5},
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"aging":-1,"attempts":3,"backoff":{"base":1.5,"factor":1.5,"max":3600},"keep_cancelled":0.001,"keep_dead":5400,"keep_done":-1,"total":-1}`
	if string(text) != want {
		t.Errorf("got %s\nwant %s", text, want)
	}
	var back job.QueueSettings
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if *back.Backoff != *s.Backoff {
		t.Errorf("backoff is %+v, want %+v", *back.Backoff, *s.Backoff)
	}
	back.Backoff = s.Backoff
	if back != s {
		t.Errorf("got %+v, want %+v", back, s)
	}
	if text, err := json.Marshal(job.QueueSettings{}); err != nil || string(text) != "{}" {
		t.Errorf("what is not set is %s, %v", text, err)
	}
}

// What a later build has written costs the field that cannot be read, and no other.
func TestP8_QueueSettingsOfALaterBuild(t *testing.T) {
	var s job.QueueSettings
	err := json.Unmarshal([]byte(`{"total":{"day":1},"attempts":7,"keep_done":"a week","colour":"red"}`), &s)
	if err == nil || !strings.Contains(err.Error(), "total") || !strings.Contains(err.Error(), "keep_done") {
		t.Errorf("the error is %v, want total and keep_done in it", err)
	}
	if s.Attempts != 7 || s.Total != 0 || s.KeepDone != 0 {
		t.Errorf("got %+v", s)
	}
}

func TestJ30_QueueSettingsHaveBounds(t *testing.T) {
	good := job.QueueSettings{Total: 1, Attempts: 1, KeepDone: time.Hour, Backoff: &job.BackoffSettings{Off: true}}
	if err := good.Check("queue a"); err != nil {
		t.Errorf("refused: %v", err)
	}
	bad := job.QueueSettings{
		Total: -2, Attempts: -1, KeepDone: -2, KeepDead: 1 << 62, KeepCancelled: -time.Second, Aging: 366 * 24 * time.Hour,
		Backoff: &job.BackoffSettings{Base: time.Hour, Max: time.Minute, Factor: 0.5},
	}
	err := bad.Check("queue a")
	if !errors.Is(err, job.ErrInvalid) {
		t.Fatalf("got %v, want ErrInvalid", err)
	}
	for _, field := range []string{"Total -2", "Attempts -1", "KeepDone", "KeepDead", "KeepCancelled -1s", "Aging", "Backoff.Base", "Backoff.Factor 0.5"} {
		if !strings.Contains(err.Error(), "queue a."+field) {
			t.Errorf("%q is not in %v", field, err)
		}
	}
}

func TestJ30_BackoffSettingsAreSpreadAsExponential(t *testing.T) {
	b := job.BackoffSettings{Base: time.Second, Max: time.Minute, Factor: 3}
	for attempt, most := range map[int]time.Duration{1: time.Second, 2: 3 * time.Second, 3: 9 * time.Second, 5: time.Minute, 1000: time.Minute} {
		for range 50 {
			if d := b.Func()(job.FailedAttempt{Attempt: attempt}); d <= most/2 || d > most {
				t.Fatalf("attempt %d waits %v, want %v .. %v", attempt, d, most/2, most)
			}
		}
	}
	b.Off = true
	if d := b.Func()(job.FailedAttempt{Attempt: 9}); d != 0 {
		t.Errorf("it waits %v, want none", d)
	}
	var unset job.BackoffSettings
	if d := unset.Func()(job.FailedAttempt{Attempt: 100}); d <= job.BackoffMax/2 || d > job.BackoffMax {
		t.Errorf("it waits %v, want up to %v", d, job.BackoffMax)
	}
}

func TestJ30_PatternsOfQueues(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "mail", true}, {"*", "a/b", true}, {"mail", "mail", true}, {"mail", "mails", false},
		{"mail.*", "mail.a.b", true}, {"mail.*", "mail", false}, {"*.fast", "mail.fast", true}, {"*.fast", "mail.slow", false},
		{"a[1]", "a[1]", true}, {"a[1]", "a1", false}, {"q-?", "q-1", true}, {"q-?", "q-11", false}, {"[*", "[x", false},
	} {
		if got := job.Matches(c.pattern, c.name); got != c.want {
			t.Errorf("%q matches %q: %t, want %t", c.pattern, c.name, got, c.want)
		}
	}
	if !job.MatchesAny([]string{"a", "b.*"}, "b.c") || job.MatchesAny(nil, "a") {
		t.Error("MatchesAny is not any of them")
	}
}
