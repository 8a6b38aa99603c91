package job_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pawlwork/pawl/job"
)

func TestP5_JobsThatWaitForTheSameAreAGroup(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	able := []job.Offer{{Kinds: map[string]int{"encode": 1, "crop": 1}}}
	situation := func(edit func(*job.Situation)) job.Situation {
		s := job.Situation{Now: now, Workers: able, Job: job.Job{
			ID: job.NewID(), State: job.Waiting, Queue: "video", Kind: "encode", Version: 1, Due: now,
		}}
		edit(&s)
		return s
	}
	behind := func(n int, more bool) func(*job.Situation) {
		return func(s *job.Situation) { s.Ahead, s.AheadCapped = n, more }
	}
	dueIn := func(d time.Duration) func(*job.Situation) {
		return func(s *job.Situation) { s.Job.Due = now.Add(d) }
	}
	all := []job.Situation{
		situation(dueIn(time.Hour)),
		situation(behind(100, true)),
		situation(func(s *job.Situation) { s.Pause = &job.Pause{Scope: job.PauseQueue, Name: s.Job.Queue} }),
		situation(behind(7, false)),
		situation(dueIn(time.Minute)),
		situation(behind(8, false)),
		situation(func(s *job.Situation) { s.Job.Kind = "crop" }),
		situation(func(s *job.Situation) { s.Job.Capabilities = []string{"gpu"} }),
		situation(func(s *job.Situation) { s.Job.Capabilities = []string{"tpu"} }),
		situation(func(s *job.Situation) { s.Job.Queue, s.Job.Due = "audio", now.Add(time.Hour) }),
	}
	groups := job.ExplainAll(all)
	want := []struct {
		code job.WhyCode
		jobs []int // places in all
		like int   // whose sentence it is
	}{
		{job.WhySlot, []int{1, 3, 5}, 3},
		{job.WhyScheduled, []int{0, 4}, 4},
		{job.WhyPaused, []int{2}, 2},
		{job.WhySlot, []int{6}, 6},
		{job.WhyNoCapability, []int{7}, 7},
		{job.WhyNoCapability, []int{8}, 8},
		{job.WhyScheduled, []int{9}, 9},
	}
	if len(groups) != len(want) {
		t.Fatalf("%d groups, want %d: %+v", len(groups), len(want), groups)
	}
	for i, w := range want {
		g := groups[i]
		var ids []job.ID
		for _, n := range w.jobs {
			ids = append(ids, all[n].Job.ID)
		}
		// Here the sentence, the earliest time and the least number are one job's.
		if g.Why != job.Explain(all[w.like]) || g.Why.Code != w.code || !slices.Equal(g.Jobs, ids) {
			t.Errorf("group %d is %+v, want %s of jobs %v as job %d has it", i, g, w.code, w.jobs, w.like)
		}
	}
	if got := job.ExplainAll(nil); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
