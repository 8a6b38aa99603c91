package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
)

func TestP5_ExplainNamesTheBlocker(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	able := []job.Offer{{Kinds: map[string]int{"encode": 1}, Capabilities: []string{"gpu"}}}
	base := func() job.Situation {
		return job.Situation{Now: now, Workers: able, Job: job.Job{
			State: job.Waiting, Queue: "video", Kind: "encode", Due: now, Capabilities: []string{"gpu"},
		}}
	}
	for _, c := range []struct {
		name string
		set  func(*job.Situation)
		want string
	}{
		{"due", func(s *job.Situation) { s.Job.Due = now.Add(time.Minute) }, "not due until 2026-11-15 12:01:00"},
		{"retry", func(s *job.Situation) {
			s.Job.Due, s.Job.Used = now.Add(time.Minute), 2
			s.Job.Failures = failures("timeout", "connection refused")
		}, "attempt 2 failed (connection refused)"},
		{"J30_paused", func(s *job.Situation) {
			s.Pause = &job.Pause{Scope: job.PauseQueue, Name: "video", Since: now, By: "ann", Note: "disk full"}
		}, "queue video is paused by ann since 2026-11-15 12:00:00.000 UTC: disk full"},
		{"J30_kind paused", func(s *job.Situation) {
			s.Pause = &job.Pause{Scope: job.PauseKind, Name: "encode", Since: now}
		}, "kind encode is paused since 2026-11-15 12:00:00.000 UTC"},
		{"J30_frozen", func(s *job.Situation) {
			s.Pause = &job.Pause{Scope: job.PauseAll, Since: now, By: "bob", Note: "migration"}
		}, "everything is frozen by bob since 2026-11-15 12:00:00.000 UTC: migration"},
		{"J8_cooling", func(s *job.Situation) {
			s.CoolDown = &job.CoolDown{Queue: "video", Since: now, Until: now.Add(time.Minute), Throttles: 3}
		}, "queue video cools down until 2026-11-15 12:01:00.000 UTC (throttled 3 times)"},
		{"J8_throttled by a limit", func(s *job.Situation) {
			s.Job.Due, s.Job.Reason, s.Job.Rare = now.Add(time.Minute), "throttled by github: 429", &job.Rare{Throttles: 1}
		}, "not due until 2026-11-15 12:01:00.000 UTC: throttled by github: 429"},
		{"J14_nobody serves", func(s *job.Situation) { s.Workers = nil }, "no live worker serves queue video"},
		{"J14_nobody knows", func(s *job.Situation) { s.Job.Kind = "crop" }, "knows kind crop"},
		{"J31_too new", func(s *job.Situation) { s.Job.Version = 2 }, "knows version 2 of kind encode"},
		{"incapable", func(s *job.Situation) { s.Job.Capabilities = []string{"gpu", "tpu"} }, "has [gpu tpu]"},
		{"behind one", func(s *job.Situation) { s.Ahead = 1 }, "behind 1 job"},
		{"J18_the only worker has the whole total", func(s *job.Situation) {
			s.Use = job.Use{Total: 1, Sharing: 1, Running: 1, Workers: 1}
		}, "its total of 1 is used up: 1 runs on 1 worker, 1 shares it"},
		{"behind", func(s *job.Situation) { s.Ahead, s.AheadCapped = 1000, true }, "behind 1000+ jobs"},
		{"J12_suspect", func(s *job.Situation) { s.Job.Lost, s.Job.Deferred = 2, 1 }, "so it runs alone in its process, one such job at a time (deferred 1 of 3 times)"},
		{"J12_suspect later", func(s *job.Situation) {
			s.Job.Due, s.Job.Lost, s.Job.Deferred = now.Add(time.Minute), 2, 1
		}, "12:01:00.000 UTC: it was lost with its process 2 times"},
		{"J12_suspect beside others", func(s *job.Situation) { s.Job.Lost, s.Job.Deferred = 4, 3 }, "deferred 3 times, so it runs beside others"},
		{"J9_snoozed", func(s *job.Situation) {
			s.Job.Due, s.Job.Used, s.Job.Reason = now.Add(time.Minute), 1, "waits for the bank"
			s.Job.Failures = failures("connection refused")
		}, "not due until 2026-11-15 12:01:00.000 UTC: snoozed: waits for the bank"},
		{"J32_the store failed", func(s *job.Situation) {
			f := job.NewFailure(1, 3, "locked", "")
			f.Store = true
			s.Job.Due, s.Job.Run = now.Add(time.Minute), 3
			s.Job.Failures = job.StoredFailures(job.AppendFailure(nil, now, f.Body()))
		}, "UTC: the store failed its run, which burned no attempt (locked)"},
		{"unreadable retry", func(s *job.Situation) {
			s.Job.Due, s.Job.Used = now.Add(time.Minute), 2
			s.Job.Failures = job.StoredFailures([]byte("not frames"))
		}, "attempt 2 failed (cannot be read: 10 bytes"},
		{"unreadable needs", func(s *job.Situation) { s.Job.Capabilities, s.Job.Unreadable = nil, []string{"tags", "capabilities"} }, "what it needs of a worker cannot be read"},
		{"parked", func(s *job.Situation) {
			s.Job.State, s.Job.Wait, s.Job.Reason = job.Suspended, job.Parked, "bad json"
		}, "parked: bad json"},
		{"running", func(s *job.Situation) { s.Job.State, s.Label = job.Running, "a-worker-1" }, "running on a-worker-1"},
		{"J12_running on one that is silent", func(s *job.Situation) {
			s.Job.State = job.Running
			s.Unheard = &job.Unheard{Label: "a-worker-1", Since: now.Add(-20 * time.Second), Until: now.Add(10 * time.Second)}
		}, "on a-worker-1, not heard of since 2026-11-15 11:59:40.000 UTC (its lease ends 2026-11-15 12:00:10.000 UTC)"},
		{"J18_a silent one holds a portion", func(s *job.Situation) {
			s.Holding = []job.Unheard{{Label: "a-worker-1", Since: now.Add(-20 * time.Second), Until: now.Add(10 * time.Second)}}
		}, "a portion of its total belongs to a-worker-1, not heard of since 2026-11-15 11:59:40"},
		{"J18_silent ones hold portions", func(s *job.Situation) {
			s.Holding = []job.Unheard{{Label: "a-worker-1"}, {Label: "a-worker-2"}}
		}, "belong to 2 workers that are lost or not heard of, such as a-worker-1"},
		{"J18_a lost one holds runs", func(s *job.Situation) {
			s.Holding = []job.Unheard{{Label: "a-worker-1", Lost: true, Runs: 3}}
		}, "a portion of its total belongs to a-worker-1, which is lost or has left, and holds 3 of its runs until they are taken back"},
		{"J18_a total is used up", func(s *job.Situation) {
			s.Use = job.Use{Total: 4, Sharing: 3, Running: 4, Workers: 2}
		}, "its total of 4 is used up: 4 run on 2 workers, 3 share it"},
		{"J18_a total is used in part", func(s *job.Situation) {
			s.Use = job.Use{Total: 4, Sharing: 3, Running: 1, Workers: 1}
		}, "1 of its total of 4 runs on 1 worker, 3 share it"},
		{"dead", func(s *job.Situation) { s.Job.State, s.Job.Reason = job.Dead, "all 5 attempts failed" }, "all 5 attempts failed"},
		{"dead with its last message", func(s *job.Situation) {
			s.Job.State, s.Job.Reason, s.Job.Failures = job.Dead, "all 2 attempts failed", failures("timeout", "connection refused")
		}, "all 2 attempts failed (connection refused)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := base()
			c.set(&s)
			got := job.Explain(s)
			if !strings.Contains(got.String(), c.want) {
				t.Errorf("got %q, want %q in it", got, c.want)
			}
			if want := codes[c.name]; got.Code != want || got.Queue != "video" || got.Kind != s.Job.Kind {
				t.Errorf("got %s of %s and %s, want %s of video and %s", got.Code, got.Queue, got.Kind, want, s.Job.Kind)
			}
		})
	}
}

// codes are those of the cases above.
var codes = map[string]job.WhyCode{
	"due": job.WhyScheduled, "retry": job.WhyRetry, "J30_paused": job.WhyPaused, "J30_kind paused": job.WhyKindPaused, "J30_frozen": job.WhyFrozen, "J14_nobody serves": job.WhyNoWorker, "J14_nobody knows": job.WhyNoKind,
	"J31_too new": job.WhyNoVersion, "incapable": job.WhyNoCapability, "behind": job.WhySlot, "behind one": job.WhySlot, "J18_the only worker has the whole total": job.WhyTotal, "J12_suspect": job.WhySlot, "J12_suspect later": job.WhyRetry,
	"J8_cooling": job.WhyCooling, "J8_throttled by a limit": job.WhyThrottled,
	"J12_suspect beside others": job.WhySlot, "J9_snoozed": job.WhySnoozed, "J32_the store failed": job.WhyRetry, "unreadable retry": job.WhyRetry,
	"unreadable needs": job.WhyUnreadable, "parked": job.WhyParked, "running": job.WhyRunning, "J12_running on one that is silent": job.WhyUnheard,
	"J18_a silent one holds a portion": job.WhyTotal, "J18_silent ones hold portions": job.WhyTotal, "J18_a lost one holds runs": job.WhyTotal,
	"J18_a total is used up": job.WhyTotal, "J18_a total is used in part": job.WhySlot, "dead": job.WhyEnded, "dead with its last message": job.WhyEnded,
}

// A why carries what its sentence says.
func TestP5_WhyIsAValue(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	able := []job.Offer{{Kinds: map[string]int{"encode": 1}}}
	j := job.Job{State: job.Waiting, Queue: "video", Kind: "encode", Due: now.Add(time.Minute)}
	if w := job.Explain(job.Situation{Now: now, Workers: able, Job: j}); !w.Until.Equal(j.Due) {
		t.Errorf("it is due %v, want %v", w.Until, j.Due)
	}
	j.Due = now
	if w := job.Explain(job.Situation{Now: now, Workers: able, Job: j, Ahead: 7, AheadCapped: true}); w.Ahead != 7 || !w.More {
		t.Errorf("%d jobs come first (more: %v), want 7 and more", w.Ahead, w.More)
	}
	j.Capabilities = []string{"gpu", "eu"}
	if w := job.Explain(job.Situation{Now: now, Workers: able, Job: j}); w.Blocker != "gpu, eu" {
		t.Errorf("in the way is %q", w.Blocker)
	}
	j.State, j.Started = job.Running, now
	until := now.Add(time.Minute)
	if w := job.Explain(job.Situation{Now: now, Job: j, Unheard: &job.Unheard{Label: "w-1", Until: until}}); w.Blocker != "w-1" || !w.Until.Equal(until) {
		t.Errorf("in the way is %q until %v", w.Blocker, w.Until)
	}
}

func failures(messages ...string) job.Failures {
	var stored []byte
	for i, m := range messages {
		stored = job.AppendFailure(stored, time.Time{}, job.NewFailure(i+1, int64(i+1), m, "").Body())
	}
	return job.StoredFailures(stored)
}

func TestJ31_OfferTakesOnlyVersionsItKnows(t *testing.T) {
	o := job.Offer{Kinds: map[string]int{"a": 2}, Capabilities: []string{"x", "y"}}
	for _, c := range []struct {
		kind    string
		version int
		needs   []string
		want    bool
	}{
		{"a", 0, nil, true}, {"a", 2, []string{"y"}, true}, {"a", 3, nil, false},
		{"b", 0, nil, false}, {"a", 1, []string{"z"}, false}, {"a", 1, []string{"x", "z"}, false},
	} {
		if got := o.Takes(c.kind, c.version, c.needs); got != c.want {
			t.Errorf("%s v%d needing %v: %v", c.kind, c.version, c.needs, got)
		}
	}
}
