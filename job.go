package pawl

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlwork/pawl/internal/runner"
	"github.com/pawlwork/pawl/job"
)

// Job is a job as its handler sees it. One made by hand, &Job[Welcome]{Args: …},
// is good enough to call a handler in a unit test: its lines go to slog.Default,
// its progress nowhere.
type Job[A any] struct {
	Info
	Args A
}

// Info is what is known about a running job apart from its arguments. It is
// what middleware sees. (ID, Run) is a fence token: Run ascends with each claim,
// so that a system outside can refuse a stale run as Pawl does.
type Info struct {
	ID          ID
	Kind        string
	Queue       string
	Key         string
	Tags        []string
	Priority    int
	Attempt     int // of MaxAttempts, from 1
	MaxAttempts int
	Run         int64
	Lost        int       // runs that ended with their process
	Snoozes     int       // runs that were put off
	Throttles   int       // runs before this one that were throttled, in a row
	Failures    []Failure // of earlier attempts, the newest last
	Created     time.Time
	Due         time.Time
	Deadline    time.Time

	engine *Engine
	task   *runner.Task
	says   *says // nil for a job that was made by hand
}

// says is what a handler says about its run: all copies of an Info share it.
type says struct {
	ctx    context.Context // of the handler, for Then
	result []byte
	thenMu sync.Mutex
	then   *job.FollowUps
	ended  bool // the handler has returned: nothing is handed over any more
	// panicked is set when the handler did; a middleware may have left it in another goroutine.
	panicked atomic.Pointer[PanicError]
	// suspended is set when the job was given back while its handler runs.
	suspended atomic.Pointer[suspendedError]
	logOnce   sync.Once
	log       *slog.Logger
}

type infoKey struct{}

func newInfo(t *runner.Task, e *Engine) *Info {
	j := &t.Job
	return &Info{
		ID: j.ID, Kind: j.Kind, Queue: j.Queue, Key: j.Key, Tags: j.Tags, Priority: j.Priority,
		Attempt: j.Attempt(), MaxAttempts: j.MaxAttempts, Run: j.Run, Lost: j.Lost,
		Snoozes: j.Snoozes, Throttles: j.Throttles(), Failures: j.Failures.List(),
		Created: j.Created, Due: j.Due, Deadline: j.Deadline,
		engine: e, task: t, says: &says{},
	}
}

// InfoFrom is the job in whose handler, or in code called by it, this context is.
// Outside of one, and in a batch handler, it is empty: its ID is zero. Each job of
// a batch has its own.
func InfoFrom(ctx context.Context) *Info {
	if i, ok := ctx.Value(infoKey{}).(*Info); ok {
		return i
	}
	return &Info{}
}

type engineKey struct{}

// EngineFrom is the engine that runs the handler whose context this is, for code
// that is not handed one. It is nil outside of a handler.
func EngineFrom(ctx context.Context) *Engine {
	if i, ok := ctx.Value(infoKey{}).(*Info); ok {
		return i.engine
	}
	e, _ := ctx.Value(engineKey{}).(*Engine) // a batch has no Info
	return e
}

// Log is a logger whose lines are kept with the job and also go to the engine's
// logger with the job's id, kind and attempt.
func (i *Info) Log() *slog.Logger {
	if i.says == nil {
		return slog.Default().With("job", i.ID, "kind", i.Kind)
	}
	i.says.logOnce.Do(func() { // a handler's goroutines may ask at the same time
		next := i.engine.cfg.Logger.With("job", i.ID, "kind", i.Kind, "queue", i.Queue, "attempt", i.Attempt)
		i.says.log = slog.New(&taskLog{task: i.task, next: next})
	})
	return i.says.log
}

// Progress says how far the handler is. It is kept with the job; calls in quick
// succession are coalesced. It returns the cause when the run should stop.
func (i *Info) Progress(ctx context.Context, done, total int64) error {
	if i.task != nil {
		i.task.SetProgress(job.Progress{Done: done, Total: total})
	}
	return context.Cause(ctx)
}

// Headers are what the job was enqueued with.
func (i *Info) Headers() map[string]string {
	if i.task == nil {
		return nil
	}
	return i.task.Job.Headers()
}

func (i *Info) setResult(v any) error {
	b, err := i.engine.cfg.Codec.Marshal(v)
	if err != nil {
		return err
	}
	return i.keepResult(b)
}

// keepResult takes a result as it is.
func (i *Info) keepResult(b []byte) error {
	if limit := i.engine.cfg.Bounds.Payload; len(b) > limit {
		return job.Invalid("result", sizeText(len(b)), "must be at most "+sizeText(limit))
	}
	if b == nil {
		b = []byte{} // a codec's way to write an empty value, which is a result too
	}
	i.says.result = b
	return nil
}

func (i *Info) info() *Info { return i }
