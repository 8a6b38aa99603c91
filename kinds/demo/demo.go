package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
)

// Bounds of what a demo job may ask for.
const (
	mostSeconds   = 24 * 60 * 60
	mostSteps     = 10_000
	mostThrottles = job.MaxThrottles // one more burns an attempt, and the count begins anew
)

// Echo gives back what it was given, as its result.
type Echo struct {
	Value json.RawMessage `json:"value,omitempty"` // any JSON; null without
}

// Sleep is done after a time.
type Sleep struct {
	Seconds float64 `json:"seconds"` // 0..86400
}

// Fail fails.
type Fail struct {
	Times   int    `json:"times,omitempty"`   // the attempts that fail, from the first [all]
	Message string `json:"message,omitempty"` // of the error ["failed as asked"]
	Dead    bool   `json:"dead,omitempty"`    // the first failure is final
}

// Throttle is throttled, and its queue cools down each time: for no less than Seconds,
// and longer where that is asked for again and again (pawl.Throttled).
type Throttle struct {
	Times   int     `json:"times,omitempty"`   // how often [1], at most 100
	Seconds float64 `json:"seconds,omitempty"` // for how long each time [1]; an hour at most counts
}

// Panic panics.
type Panic struct {
	Times   int    `json:"times,omitempty"`   // the attempts that panic, from the first [all]
	Message string `json:"message,omitempty"` // of the panic ["panicked as asked"]
}

// Progress goes on step by step.
type Progress struct {
	Steps   int     `json:"steps,omitempty"` // 1..10000 [10]
	Seconds float64 `json:"seconds"`         // for each step, 0..86400
}

// Kind is "pawl.demo.echo".
func (Echo) Kind() string { return "pawl.demo.echo" }

// Kind is "pawl.demo.sleep".
func (Sleep) Kind() string { return "pawl.demo.sleep" }

// Kind is "pawl.demo.fail".
func (Fail) Kind() string { return "pawl.demo.fail" }

// Kind is "pawl.demo.throttle".
func (Throttle) Kind() string { return "pawl.demo.throttle" }

// Kind is "pawl.demo.panic".
func (Panic) Kind() string { return "pawl.demo.panic" }

// Kind is "pawl.demo.progress".
func (Progress) Kind() string { return "pawl.demo.progress" }

// Register adds all of them to an engine or to handlers; the options hold for each.
func Register(to pawl.Registrar, opts ...pawl.HandleOption) {
	pawl.HandleResult(to, echo, opts...)
	pawl.Handle(to, sleep, opts...)
	pawl.Handle(to, fail, opts...)
	pawl.Handle(to, throttle, opts...)
	pawl.Handle(to, panics, opts...)
	pawl.Handle(to, progress, opts...)
}

func echo(_ context.Context, j *pawl.Job[Echo]) (json.RawMessage, error) {
	if len(j.Args.Value) == 0 {
		return json.RawMessage("null"), nil
	}
	return j.Args.Value, nil
}

func sleep(ctx context.Context, j *pawl.Job[Sleep]) error {
	wait, err := duration(j.Args.Seconds)
	if err != nil {
		return err
	}
	return rest(ctx, wait)
}

func fail(_ context.Context, j *pawl.Job[Fail]) error {
	if j.Args.Times > 0 && j.Attempt > j.Args.Times {
		return nil
	}
	err := errors.New("failed as asked")
	if j.Args.Message != "" {
		err = errors.New(j.Args.Message)
	}
	if j.Args.Dead {
		return pawl.Dead(err)
	}
	return err
}

func throttle(_ context.Context, j *pawl.Job[Throttle]) error {
	seconds := j.Args.Seconds
	if seconds == 0 {
		seconds = 1
	}
	wait, err := duration(seconds)
	if err != nil {
		return err
	}
	times := max(j.Args.Times, 1)
	if times > mostThrottles {
		return pawl.Dead(job.Invalid("times", times, fmt.Sprintf("must be 0..%d", mostThrottles)))
	}
	if j.Throttles >= times {
		return nil
	}
	return fmt.Errorf("as asked, %d of %d: %w", j.Throttles+1, times, pawl.Throttled(wait))
}

func panics(_ context.Context, j *pawl.Job[Panic]) error {
	if j.Args.Times > 0 && j.Attempt > j.Args.Times {
		return nil
	}
	if j.Args.Message != "" {
		panic(j.Args.Message)
	}
	panic("panicked as asked")
}

func progress(ctx context.Context, j *pawl.Job[Progress]) error {
	steps := j.Args.Steps
	if steps == 0 {
		steps = 10
	}
	if steps < 0 || steps > mostSteps {
		return pawl.Dead(job.Invalid("steps", steps, fmt.Sprintf("must be 1..%d", mostSteps)))
	}
	wait, err := duration(j.Args.Seconds)
	if err != nil {
		return err
	}
	for i := range steps {
		if err := rest(ctx, wait); err != nil {
			return err
		}
		if err := j.Progress(ctx, int64(i)+1, int64(steps)); err != nil {
			return err
		}
	}
	j.Log().Info("all steps are done", "steps", steps)
	return nil
}

// rest waits, unless the run is to end before.
func rest(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// duration reads seconds. A bad number will not get better.
func duration(seconds float64) (time.Duration, error) {
	if math.IsNaN(seconds) || seconds < 0 || seconds > mostSeconds {
		return 0, pawl.Dead(job.Invalid("seconds", seconds, fmt.Sprintf("must be 0..%d", mostSeconds)))
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
