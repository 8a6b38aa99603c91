package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/kinds/internal/guard"
)

const (
	// killLimit is how long the killed may take to go. Longer is a kernel that does not let go of them.
	killLimit = 10 * time.Second
	// readLimit is how long output is read after its writers are gone. On Linux it ends with them; elsewhere somebody who
	// got away may hold it.
	readLimit = 2 * time.Second
	reasonEnd = 1 << 10 // bytes of stderr in an error
)

// errTimeout is the cause of a run that took longer than it may.
var errTimeout = errors.New("timeout")

// launcher runs jobs of kind pawl.command.
type launcher struct {
	config   Config
	programs map[string]Program
}

// work runs the program of one job, and returns when nothing of it is left.
func (h *launcher) work(ctx context.Context, j *pawl.Job[Run]) (Result, error) {
	p, err := h.admit(j.Args)
	if err != nil {
		return Result{}, pawl.Dead(err)
	}
	limit := h.config.Timeout
	if j.Args.Timeout > 0 {
		limit = j.Args.Timeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	e, err := h.start(j, p)
	if err != nil {
		return Result{}, err
	}
	ended := e.wait(ctx, h.config.Grace)
	e.finish()
	if ended != nil {
		if errors.Is(ended, errTimeout) {
			ended = fmt.Errorf("ended after its timeout of %v", limit)
		}
		return Result{}, fmt.Errorf("%s: %w%s", p.Name, ended, e.reason())
	}
	if err := e.process.Err(); err != nil {
		return Result{}, fmt.Errorf("%s: %w", p.Name, err)
	}
	return e.result(h.config.Output), e.outcome(p)
}

// execution is one program that runs.
type execution struct {
	process        *guard.Process
	stdin          *os.File // our end; nil without input
	stdout, stderr *stream
	written        chan struct{} // closed when nobody writes to stdin any more
}

func (h *launcher) start(j *pawl.Job[Run], p Program) (_ *execution, err error) {
	var theirs, ours []io.Closer
	defer func() {
		closeAll(theirs)
		if err != nil {
			closeAll(ours)
		}
	}()
	dir, err := openDir(h.config.Root, j.Args.Dir)
	if err != nil {
		return nil, err
	}
	theirs = append(theirs, dir)
	e := &execution{written: make(chan struct{})}
	input := j.Args.StdinBytes
	if j.Args.Stdin != "" {
		input = []byte(j.Args.Stdin)
	}
	var stdin *os.File
	if len(input) == 0 {
		stdin, err = os.Open(os.DevNull)
	} else if stdin, e.stdin, err = os.Pipe(); err == nil {
		ours = append(ours, e.stdin)
	}
	if err != nil {
		return nil, err
	}
	theirs = append(theirs, stdin)
	var files [2]*os.File
	for i, s := range []**stream{&e.stdout, &e.stderr} {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		files[i] = write
		theirs, ours = append(theirs, write), append(ours, read)
		*s = newStream(read, h.config.Output)
	}
	if h.config.Log {
		e.stdout.lines = &lineLog{log: j.Log().Info}
		e.stderr.lines = &lineLog{log: j.Log().Warn}
	}
	e.process, err = guard.Start(guard.Program{
		Path: p.Path, Args: append(slices.Clone(p.Args), j.Args.Args...), Env: h.environment(j.Args.Env),
		Dir: dir, Stdin: stdin, Stdout: files[0], Stderr: files[1],
		UID: h.config.UID, GID: h.config.GID, Grace: h.config.Grace,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	go func() {
		defer close(e.written)
		if e.stdin != nil {
			_, _ = e.stdin.Write(input) // who does not read it all does not want it
			_ = e.stdin.Close()
		}
	}()
	go e.stdout.read()
	go e.stderr.read()
	return e, nil
}

// environment is all that the program gets.
func (h *launcher) environment(of map[string]string) (list []string) {
	for name, value := range h.config.Env {
		if _, own := of[name]; !own {
			list = append(list, name+"="+value)
		}
	}
	for name, value := range of {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// wait waits until nothing of the program is left. It returns why the program was ended, nil if it ended by itself: an end
// that came before we asked for it counts, also when somebody asks now.
func (e *execution) wait(ctx context.Context, grace time.Duration) (ended error) {
	select {
	case <-e.process.Exited():
	case <-ctx.Done():
		select {
		case <-e.process.Exited():
		default:
			ended = context.Cause(ctx)
			e.process.End()
		}
	}
	left := time.NewTimer(grace + killLimit)
	defer left.Stop()
	select {
	case <-e.process.Done():
	case <-left.C:
		e.process.Kill()
		ended = errors.Join(ended, fmt.Errorf("something of it is left %v after it was killed; its guard goes on", killLimit))
	}
	return ended
}

// finish waits for the streams, which nobody serves any more.
func (e *execution) finish() {
	if e.stdin != nil {
		_ = e.stdin.Close()
	}
	<-e.written
	e.stdout.finish(readLimit)
	e.stderr.finish(readLimit)
}

// outcome is what the exit makes of the job.
func (e *execution) outcome(p Program) error {
	exit := e.process.Exit()
	if exit.Signal != "" {
		return fmt.Errorf("%s: ended by signal %q%s", p.Name, exit.Signal, e.reason())
	}
	said, ok := p.Exit[exit.Code]
	switch {
	case ok && said == nil, !ok && exit.Code == 0:
		return nil
	case ok:
		return fmt.Errorf("%w (%s: exit code %d%s)", said, p.Name, exit.Code, e.reason())
	}
	return fmt.Errorf("%s: exit code %d%s", p.Name, exit.Code, e.reason())
}

// reason is the end of stderr.
func (e *execution) reason() string {
	text := e.stderr.kept.text(reasonEnd)
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return ": " + text
}

func (e *execution) result(limit int) Result {
	r := Result{
		Exit: e.process.Exit().Code, StdoutSize: e.stdout.kept.size, StderrSize: e.stderr.kept.size,
	}
	fit(&r, &e.stdout.kept, &e.stderr.kept, limit)
	return r
}

func closeAll(files []io.Closer) {
	for _, f := range files {
		_ = f.Close()
	}
}
