package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
)

func TestJ25_WhatIsNotWhatItWasIsLeftAlone(t *testing.T) {
	o := store.Operation{Filter: store.Filter{Queue: "mail", States: []job.State{job.Dead, job.Cancelled}}}
	for _, c := range []struct {
		state job.State
		queue string
		want  bool
	}{
		{job.Dead, "mail", true}, {job.Cancelled, "mail", true},
		{job.Waiting, "mail", false}, {job.Running, "mail", false}, {job.Dead, "slow", false}, {0, "", false},
	} {
		if got := o.Matches(c.state, c.queue); got != c.want {
			t.Errorf("%s in %s: %v, want %v", c.state, c.queue, got, c.want)
		}
	}
	o.Filter.Queue = ""
	if !o.Matches(job.Dead, "slow") {
		t.Error("without a queue every one matches")
	}
}

// A page that fails is put off, longer each time; after ten in a row it is given up.
func TestJ25_AFailingOperationIsGivenUp(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := store.Operation{Verb: store.Verb{Name: store.VerbRetry}, Pace: 100}
	o.Begin(now)
	last := time.Duration(0)
	for n := 1; n < store.OperationTries; n++ {
		o.Fail(errors.New("boom"), now)
		if pause := o.Next.Sub(now); o.State != store.OperationOpen || o.Reason != "boom" || pause <= last {
			t.Fatalf("failure %d: %s, %q, put off for %v after %v", n, o.State, o.Reason, pause, last)
		} else {
			last = pause
		}
	}
	again := o
	again.Advance(&store.Listed{More: true}, nil, now)
	if again.Failures != 0 || again.Reason != "" || again.State != store.OperationOpen {
		t.Errorf("after a page that was done: %+v", again)
	}
	o.Fail(errors.New("boom"), now)
	if o.State != store.OperationFailed || o.Ended != now || !o.Next.IsZero() {
		t.Errorf("after the last failure: %+v", o)
	}
}

// The pace is counted from when a page was due; what was missed for long is not made
// up for at once.
func TestJ25_ThePaceIsKeptAndNotMadeUpFor(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := store.Operation{Verb: store.Verb{Name: store.VerbRetry}, Pace: 100}
	o.Begin(now)
	page := make([]store.Change, 10)
	more := &store.Listed{More: true}
	o.Advance(more, page, now.Add(30*time.Millisecond))
	if want := now.Add(100 * time.Millisecond); !o.Next.Equal(want) {
		t.Errorf("next at %v, want %v", o.Next, want)
	}
	o.Advance(more, page, now.Add(195*time.Millisecond))
	if want := now.Add(205 * time.Millisecond); !o.Next.Equal(want) { // a breath later at least
		t.Errorf("next at %v, want %v", o.Next, want)
	}
	late := now.Add(time.Hour)
	o.Advance(more, page, late)
	if want := late.Add(100 * time.Millisecond); !o.Next.Equal(want) {
		t.Errorf("next at %v, want %v", o.Next, want)
	}
}
