package runner

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlwork/pawl/job"
)

func said(n int) *Task {
	t := &Task{Job: job.Job{Run: 3}}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	for i := range n {
		t.AddLog(0, fmt.Sprint("line ", i))
	}
	return t
}

func texts(lines []job.LogLine) []string {
	var out []string
	for _, l := range lines {
		out = append(out, l.Text)
	}
	return out
}

func TestP10_LogLinesNotYetStoredAreBounded(t *testing.T) {
	task := said(maxLines + 5)
	var end job.End
	task.journal.close(&end)
	if len(end.Logs) != maxLines+1 || end.Logs[0].Text != "5 log lines were dropped" || end.Logs[1].Text != "line 5" {
		t.Errorf("%d lines, beginning with %v", len(end.Logs), texts(end.Logs[:2]))
	}
	task.AddLog(0, strings.Repeat("x", 3*maxLine))
	task.SetProgress(job.Progress{Done: 1})
	if _, more := task.journal.note(task.Ref()); more {
		t.Error("what is said after the end was kept")
	}
}

func TestP10_LogLinesOfARunAreBounded(t *testing.T) {
	task := said(0)
	stored := 0
	for range 20 {
		for range maxLines {
			task.AddLog(0, "x")
		}
		if n, ok := task.journal.note(task.Ref()); ok {
			stored += len(n.Logs)
			task.journal.noted(n, true)
		}
	}
	if stored > maxRunLines+20 { // and the lines that say what was dropped
		t.Errorf("%d lines of one run", stored)
	}
}

func TestP10_LinesAreCutAndAlwaysText(t *testing.T) {
	task := said(0)
	task.AddLog(0, strings.Repeat("ä", maxLine))
	task.AddLog(0, "bad \xff byte")
	var end job.End
	task.journal.close(&end)
	if n := len(end.Logs[0].Text); n > maxLine+8 {
		t.Errorf("a line of %d bytes", n)
	}
	if end.Logs[1].Text != "bad \uFFFD byte" {
		t.Errorf("text %q", end.Logs[1].Text)
	}
}

func TestJournal_NoteThatFailedIsKeptForTheNext(t *testing.T) {
	task := said(2)
	task.SetProgress(job.Progress{Done: 1, Total: 2})
	n, ok := task.journal.note(task.Ref())
	if !ok || len(n.Logs) != 2 || n.Progress == nil || n.Progress.Done != 1 {
		t.Fatalf("note %+v", n)
	}
	task.AddLog(0, "later")
	task.journal.noted(n, false)
	n, _ = task.journal.note(task.Ref())
	if got := texts(n.Logs); fmt.Sprint(got) != "[line 0 line 1 later]" || n.Progress == nil {
		t.Errorf("second note %v, progress %v", got, n.Progress)
	}
	task.journal.noted(n, true)
	var end job.End
	task.journal.close(&end)
	if len(end.Logs) != 0 || end.Progress != nil {
		t.Errorf("the end repeats what was stored: %+v", end)
	}
}

func TestJournal_EndInATransactionTakesTheLinesAlongAndKeepsThem(t *testing.T) {
	task := said(2)
	task.kind, task.queue = &Kind{Name: "k"}, &queue{}
	task.queue.set(QueueConfig{Backoff: job.NoBackoff})
	if end := task.End(job.Outcome{Kind: job.Succeeded}); end.To != job.Done || len(end.Logs) != 2 {
		t.Errorf("end %+v", end)
	}
	if end := task.End(job.Outcome{Kind: job.Succeeded}); len(end.Logs) != 2 { // after a rollback
		t.Errorf("second end has %d lines, want 2", len(end.Logs))
	}
}
