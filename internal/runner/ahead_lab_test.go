package runner_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
)

// What was claimed ahead of a key with an endless backlog does not stand in the way of one
// that comes now and then: its jobs begin as soon as they are claimed.
func TestJ19_WhatWasClaimedAheadIsPassed(t *testing.T) {
	inLab(t, func(l *lab) {
		rules := job.NewGateRules(map[string]job.LimitSettings{"tenants": {Queue: "q", PerKey: true}})
		of := func(key string) func(*job.Draft) {
			return func(d *job.Draft) { d.Key, d.Gate = key, rules.Gate(d.Queue, d.Kind, key) }
		}
		var started []string // keys, in order
		begin := make(chan string, 10_000)
		p := l.run(20, func(_ context.Context, t *runner.Task) job.Outcome {
			begin <- t.Job.Key
			time.Sleep(time.Millisecond) // virtual: the work
			return succeed
		})
		p.SetGates(rules)
		l.add(4_000, of("large"), p)
		after(50 * time.Millisecond)
		before, line := len(begin), p.Stats().Ready
		for ; line < 60 && before < 3_000; before, line = len(begin), p.Stats().Ready {
			after(time.Millisecond) // until a claim has just come: the line is short before it
		}
		if line < 60 {
			t.Errorf("%d began and %d wait in line, the test proves nothing", before, line)
		}
		l.add(20, of("small"), p)
		after(20 * time.Millisecond)
		p.stop()
		close(begin)
		for key := range begin {
			started = append(started, key)
		}
		large, small := 0, 0
		for _, key := range started[before:] {
			if key == "large" {
				large++
			} else if small++; small == 20 {
				break
			}
		}
		if small < 20 || large > line-20 {
			t.Errorf("%d of 20 began after %d others, of which %d were claimed before", small, large, line)
		}
	})
}
