package webui

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// A queue that cools down again and again has no end worth telling: the next cool-down begins right after. One that rests for long has.
func TestU7_AQueueThatCoolsAgainAndAgainSaysSo(t *testing.T) {
	now := time.Date(2026, 11, 15, 14, 28, 8, 0, time.UTC)
	for _, c := range []struct {
		length    time.Duration
		throttles int
		kind      string
		want      string
	}{
		{5 * time.Second, 51, "geo.lookup", "Queue geo cools down again and again, throttled 51 times by <b><bdi>geo.lookup</bdi></b>."},
		{5 * time.Second, 51, "", "Queue geo cools down again and again, throttled 51 times."},
		{5 * time.Second, 1, "", ">14:28:13</time>, throttled once."},
		{10 * time.Minute, 4, "geo.lookup", ">14:38:08</time>, throttled 4 times by <b><bdi>geo.lookup</bdi></b>."},
	} {
		got := string(coolingText(now, "geo", &job.CoolDown{Since: now, Until: now.Add(c.length), Throttles: c.throttles}, c.kind))
		if !strings.HasSuffix(got, c.want) {
			t.Errorf("%v, %d times: %s, want %s", c.length, c.throttles, got, c.want)
		}
	}
}

// Numbers of a queue are of some time, and say of which: a drawn range is not the last minutes.
func TestU7_NumbersOfQueuesSayOfWhatTimeTheyAre(t *testing.T) {
	rows := []*queueRow{{}, {Flow: queueFlow{RecentIn: 5 * time.Minute, In: 12 * time.Minute}}}
	from := time.Date(2026, 11, 15, 14, 0, 0, 0, time.UTC)
	for want, s := range map[string]span{
		"Done a minute is of the last 5 min; failed and p95 are of the last 12 min.":                              {Name: "15m"},
		"Done a minute is of the last 5 min from 15 Nov 14:00 to 14:12 UTC; failed and p95 are of all that time.": {From: from, To: from.Add(12 * time.Minute)},
	} {
		if got := s.counted(rows); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (span{}).counted(rows[:1]); got != "" {
		t.Errorf("%q of nothing", got)
	}
}

// What cannot start is said with where it is, since "held" says nothing to who has not read the manual.
func TestU7_WhatCannotStartIsSaidWithItsQueues(t *testing.T) {
	now := time.Date(2026, 11, 15, 14, 28, 8, 0, time.UTC)
	queue := func(name string, ready, workers int, since time.Duration) pawl.QueueState {
		return pawl.QueueState{Name: name, Ready: pawl.Counted{Jobs: ready}, Workers: workers, Oldest: now.Add(-since)}
	}
	l := &look{Now: now, Queues: []pawl.QueueState{queue("orders", 5, 1, 2*time.Second), queue("legacy", 121, 0, 4*time.Minute),
		queue("exports", 3, 1, time.Minute), queue("geo", 48, 1, time.Second)}}
	l.Queues[2].Pause = &pawl.Pause{Scope: pawl.PauseQueue}
	l.Queues[3].CoolDown = &job.CoolDown{}
	l.add()
	if got := l.whyHeld(); got != "Nothing starts in their queues: 3 in paused, 121 in unserved, 48 in cooling ones." {
		t.Error(got)
	}
	if served, held, in := l.oldest(); served != 2*time.Second || held != 4*time.Minute || heldIn[in] != "an unserved queue" {
		t.Error(served, held, in)
	}
}

// A filter of an operation is told as its dialog told it.
func TestU7_AFilterHasWords(t *testing.T) {
	v := &view{Now: time.Date(2026, 11, 15, 14, 28, 8, 0, time.UTC)}
	for want, f := range map[string]pawl.Filter{
		"all jobs":                                {},
		"all dead jobs with kind mail.*":          {States: []pawl.State{job.Dead}, Kind: "mail.*"},
		"all ready jobs with queue a, key b":      {States: []pawl.State{job.Waiting}, DueBefore: v.Now, Queue: "a", Key: "b"},
		"all scheduled jobs with worker 7":        {States: []pawl.State{job.Waiting}, DueAfter: v.Now, Worker: 7},
		"all dead and cancelled jobs with tag eu": {States: []pawl.State{job.Dead, job.Cancelled}, Tag: "eu"},
		"all jobs created since 15 Nov 13:28 UTC": {CreatedAfter: v.Now.Add(-time.Hour)},
	} {
		if got := v.filterWords(&f); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A spark is of the time of which anything is known: what goes on, and what was before the first, is no fall.
func TestU7_ASparkIsOfWhatIsKnown(t *testing.T) {
	no := math.NaN()
	if got := plainPoints([]float64{no, no, 4, no, 5, no}); !slices.Equal(got, []float64{4, 0, 5}) {
		t.Error(got)
	}
	if got := plainPoints([]float64{no}); len(got) > 0 {
		t.Error(got)
	}
}
