package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

// taskVariable makes the process a runner of one phase of one run; it holds the task.
const taskVariable = "PAWL_BENCH_TASK"

// task is what the table asks of a runner.
type task struct {
	Work    string
	System  string
	Prepare bool   // the preparation, not the measurement
	Profile string // file for a CPU profile of the measurement; "" means none
	Costs   bool   // count what it asks of Postgres
	At      place
}

// resultFile is where a runner leaves its measurement. Standard output will not do: peers write to it.
func resultFile(at place) string { return filepath.Join(at.Dir, "result.json") }

// runOnce measures a contender in processes of its own, within the work's limit.
func runOnce(ctx context.Context, w work, c contender, at place, profile string, costs bool) (measurement, error) {
	limit := w.limit
	if limit == 0 {
		limit = runLimit
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("took longer than %v", limit))
	defer cancel()
	t := task{Work: w.name, System: c.name, At: at, Profile: profile, Costs: costs && at.Postgres != ""}
	if c.prepare != nil {
		t.Prepare = true
		if err := spawn(ctx, t); err != nil {
			return measurement{}, fmt.Errorf("prepare: %w", err)
		}
		t.Prepare = false
	}
	if err := spawn(ctx, t); err != nil {
		return measurement{}, err
	}
	text, err := os.ReadFile(resultFile(at))
	if err != nil {
		return measurement{}, err
	}
	var m measurement
	return m, json.Unmarshal(text, &m)
}

// spawn runs this program again for one task and waits for it.
func spawn(ctx context.Context, t task) error {
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	var said bytes.Buffer
	command := exec.CommandContext(ctx, program)
	command.Env = append(os.Environ(), taskVariable+"="+string(text))
	command.Stdout, command.Stderr = &said, &said
	command.Cancel = func() error { return askForStacks(command.Process) }
	command.WaitDelay = time.Second
	if err := command.Run(); err != nil {
		return &failure{errors.Join(err, context.Cause(ctx)), said.String()}
	}
	return nil
}

// failure is a runner that did not succeed, with all it said; one that was ended at its limit says where it stood.
type failure struct {
	cause error
	said  string
}

// Error holds the last lines only.
func (f *failure) Error() string {
	const enough = 400
	before, _, _ := strings.Cut(f.said, "SIGQUIT: quit") // stacks are for the log
	tail := strings.TrimSpace(before)
	return strings.ReplaceAll(fmt.Sprintf("%v: %s", f.cause, tail[max(0, len(tail)-enough):]), "\n", "; ")
}

func (f *failure) Unwrap() error { return f.cause }

// perform is the runner: it does the task and leaves the result.
func perform(ctx context.Context, text string) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return fmt.Errorf("%s: %w", taskVariable, err)
	}
	c, err := findContender(t.Work, t.System)
	if err != nil {
		return err
	}
	if t.Prepare {
		return c.prepare(ctx, t.At)
	}
	if t.Profile != "" {
		stop, err := profile(t.Profile)
		if err != nil {
			return err
		}
		defer stop()
	}
	measure := c.measure
	if t.Costs {
		measure = func(ctx context.Context, at place) (measurement, error) { return count(ctx, c, at) }
	}
	m, err := measure(ctx, t.At)
	if err != nil {
		return err
	}
	if m.RSS == nil {
		m.RSS = peakRSS()
	}
	result, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(resultFile(t.At), result, 0o600)
}

// profile writes a CPU profile until it is stopped.
func profile(path string) (stop func(), err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, nil
}

func findContender(workName, system string) (contender, error) {
	for _, w := range works() {
		if w.name != workName {
			continue
		}
		if i := slices.IndexFunc(w.systems, func(c contender) bool { return c.name == system }); i >= 0 {
			return w.systems[i], nil
		}
	}
	return contender{}, fmt.Errorf("no system %q in work %q", system, workName)
}
