package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/need/pgproxy"
	"github.com/pawlwork/pawl/job"
)

// A commit whose callers have all given up is not sent again by itself: they send
// their ends again, in smaller portions, and would wait behind it. What it did
// before is found by the end that comes again.
func TestP8_ACommitThatNobodyWaitsForIsNotRepeated(t *testing.T) {
	l := newLossy(t)
	l.queue = "deserted"
	w, jobs := l.running(1)
	commits := 0
	l.proxy.Judge(func(c pgproxy.Commit) pgproxy.Fate {
		if !strings.Contains(strings.Join(c.Statements, "\n"), "job_archive") {
			return pgproxy.Deliver
		}
		if commits++; commits == 1 {
			return pgproxy.Mute // the store waits for the answer until its patience ends
		}
		return pgproxy.Deliver
	})
	end := done(&jobs[0])
	ctx, cancel := context.WithTimeout(t.Context(), short/5)
	defer cancel()
	if _, err := l.hasty.Finish(ctx, w, []job.End{end}); !errors.Is(err, job.ErrOutcomeUnknown) {
		t.Fatalf("error %v, want one that says that the outcome is unknown", err)
	}
	end.Again = true
	verdicts, err := l.hasty.Finish(t.Context(), w, []job.End{end})
	l.proxy.Judge(nil)
	if err != nil || verdicts[0] != job.Already {
		t.Errorf("verdicts %v, %v; want already applied", verdicts, err)
	}
	if commits != 3 { // the first, its repeat by the caller, and the look for what became of it
		t.Errorf("%d commits, want 3", commits)
	}
	l.ended(&jobs[0], end)
}

// A commit is bounded by everything that an end carries.
func TestP10_AnEndWeighsWhatItCarries(t *testing.T) {
	text := strings.Repeat("x", 4*bytesOfRow)
	plain := weightOfEnd(&job.End{})
	for name, e := range map[string]job.End{
		"result":   {Result: []byte(text)},
		"reason":   {Reason: text},
		"failure":  {Failure: []byte(text)},
		"progress": {Progress: &job.Progress{Note: text}},
		"lines":    {Logs: []job.LogLine{{Time: time.Time{}, Text: text}}},
	} {
		if w := weightOfEnd(&e); w != plain+4 {
			t.Errorf("%s: weighs %d rows, want %d", name, w, plain+4)
		}
	}
}
