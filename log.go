package pawl

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/pawlwork/pawl/internal/runner"
)

// taskLog keeps a job's log lines with the job and hands them on.
type taskLog struct {
	task  *runner.Task
	next  *slog.Logger
	attrs string // of WithAttrs, already written
	group string
}

// Enabled keeps everything from Info up, and Debug where the engine's logger wants it.
func (l *taskLog) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || l.next.Enabled(ctx, level)
}

func (l *taskLog) Handle(ctx context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	b.WriteString(l.attrs)
	r.Attrs(func(a slog.Attr) bool {
		writeAttr(&b, l.group, a)
		return true
	})
	l.task.AddLog(int(r.Level), b.String())
	if l.next.Enabled(ctx, r.Level) {
		return l.next.Handler().Handle(ctx, r)
	}
	return nil
}

func (l *taskLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	b.WriteString(l.attrs)
	for _, a := range attrs {
		writeAttr(&b, l.group, a)
	}
	return &taskLog{task: l.task, next: slog.New(l.next.Handler().WithAttrs(attrs)), attrs: b.String(), group: l.group}
}

func (l *taskLog) WithGroup(name string) slog.Handler {
	if name == "" {
		return l
	}
	return &taskLog{task: l.task, next: slog.New(l.next.Handler().WithGroup(name)), attrs: l.attrs, group: l.group + name + "."}
}

func writeAttr(b *strings.Builder, group string, a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, inner := range v.Group() {
			writeAttr(b, group, inner)
		}
		return
	}
	if a.Equal(slog.Attr{}) {
		return
	}
	fmt.Fprintf(b, " %s%s=%v", group, a.Key, v)
}
