package pool_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/internal/need"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/kinds/pool"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store/sqlite"
)

// events are log lines, for tests that wait for one.
type events struct {
	slog.Handler
	lines chan string
}

func newEvents() *events { return &events{slog.DiscardHandler, make(chan string, 1000)} }

func (e *events) Enabled(context.Context, slog.Level) bool { return true }
func (e *events) WithAttrs([]slog.Attr) slog.Handler       { return e }
func (e *events) WithGroup(string) slog.Handler            { return e }
func (e *events) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	select {
	case e.lines <- text:
	default:
	}
	return nil
}

// wait waits for a line that contains the text.
func (e *events) wait(text string) {
	for line := range e.lines {
		if strings.Contains(line, text) {
			return
		}
	}
}

// with runs a test on an engine whose jobs a pool of one child does. Both log to events.
func with(t *testing.T, change func(*pool.Config), test func(t *testing.T, e *pawltest.Engine, p *pool.Pool, said *events)) {
	t.Helper()
	said := newEvents()
	config := playing("child")
	config.Logger = slog.New(said)
	if change != nil {
		change(&config)
	}
	var p *pool.Pool
	defer func() {
		if p != nil {
			p.Close()
		}
	}()
	pawltest.Real(t, sqlite.Memory(), func(e *pawl.Engine) {
		var err error
		if p, err = pool.Register(e, config); err != nil {
			t.Fatal(err)
		}
	}, func(t *testing.T, e *pawltest.Engine) { test(t, e, p, said) }, pawltest.Config(func(c *pawl.Config) { c.Logger = slog.New(said) }))
}

// process does a job and returns which child did it.
func process(t *testing.T, e *pawltest.Engine) int {
	t.Helper()
	j, err := e.Work(asked{Do: "ok"})
	if err != nil {
		t.Fatal(err)
	}
	pid, err := pawl.Result[int](t.Context(), e.Engine, j.ID)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestJ22_APythonChildDoesJobs(t *testing.T) {
	child, err := filepath.Abs("testdata/child.py")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(child); err != nil || strings.Count(string(text), "\n") > 30 {
		t.Errorf("a child needs %d lines, %v", strings.Count(string(text), "\n"), err)
	}
	with(t, func(c *pool.Config) {
		c.Kinds, c.Path, c.Args, c.Env = []string{"count.words", "count.lines"}, need.Tool(t, "python3"), []string{child}, nil
	}, func(t *testing.T, e *pawltest.Engine, _ *pool.Pool, _ *events) {
		j, err := e.Work(pawl.RawArgs("count.words", []byte("{\n  \"text\": \"one\\ntwo\"\n}")))
		if err != nil || string(j.Result) != `{"words": 2}` {
			t.Errorf("%s, %v", j.Result, err)
		}
		logs, err := e.Logs(t.Context(), j.ID, 0, 10)
		if err != nil || len(logs) != 1 || logs[0].Text != "doing count.words attempt 1" {
			t.Errorf("log %+v, %v", logs, err)
		}
		j, err = e.Work(pawl.RawArgs("count.lines", []byte(`{}`)))
		if j.State != job.Dead || fmt.Sprint(err) != "KeyError: 'count.lines'" {
			t.Errorf("%s, %v", j.State, err)
		}
	})
}

func TestJ22_StatusesAreOutcomes(t *testing.T) {
	with(t, nil, func(t *testing.T, e *pawltest.Engine, _ *pool.Pool, _ *events) {
		first := process(t, e)
		for _, c := range []struct {
			asked  asked
			state  pawl.State
			failed int
			is     func(error) bool
		}{
			{asked{Do: "ok"}, job.Done, 0, func(err error) bool { return err == nil }},
			{asked{Do: "retry"}, job.Waiting, 1, func(err error) bool { return !pawl.IsRetryIn(err) && err.Error() == "because" }},
			{asked{Do: "retry", Delay: 3600}, job.Waiting, 1, pawl.IsRetryIn},
			{asked{Do: "dead"}, job.Dead, 1, pawl.IsDead},
			{asked{Do: "snooze", Delay: 3600.5}, job.Waiting, 0, pawl.IsSnooze},
			{asked{Do: "throttled", Delay: 3600}, job.Waiting, 0, pawl.IsThrottled},
			{asked{Do: "throttled"}, job.Waiting, 0, pawl.IsThrottled},
		} {
			j, err := e.Work(c.asked)
			if j.State != c.state || len(j.Failures.List()) != c.failed || !c.is(err) {
				t.Errorf("%+v: %s, %d failures, %v", c.asked, j.State, len(j.Failures.List()), err)
			}
			why, err := e.Why(t.Context(), j.ID)
			if err != nil || (why.Code == pawl.WhyCooling) != (c.asked.Do == "throttled") {
				t.Errorf("%+v: why: %v, %v", c.asked, why, err)
			}
			if err := e.Queue("default").ResetCoolDown(t.Context()); err != nil {
				t.Fatal(err)
			}
			if j.State == job.Waiting { // it would run again with the next
				if _, err := e.Cancel(t.Context(), j.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		if again := process(t, e); again != first {
			t.Errorf("child %d after %d: an answer is no reason to replace one", again, first)
		}
	})
}

func TestJ22_AChildThatGivesNoAnswerIsReplaced(t *testing.T) {
	for _, c := range []struct {
		asked asked
		says  string
	}{
		{asked{Do: "garbage"}, `the child said "Traceback (most recent call last):`},
		{asked{Do: "mismatch"}, `the child answered "0", and was asked "`},
		{asked{Do: "exit"}, "the child ended with exit code 3"},
		{asked{Do: "half"}, "the child ended with exit code 0"},
		{asked{Do: "long"}, "the child wrote a line of more than 2097152 bytes"},
		{asked{Do: "fine"}, `status "fine": must be ok, retry, dead, snooze or throttled`},
		{asked{Do: "snooze"}, `"snooze" without a delay`},
		{asked{Do: "retry", Delay: -1}, "a delay of -1 seconds"},
		{asked{Do: "retry", Delay: 1e300}, "a delay of 1e+300 seconds"},
		{asked{Do: "hang"}, "the child gave no answer within 1s"},
	} {
		t.Run(c.asked.Do, func(t *testing.T) {
			with(t, func(p *pool.Config) {
				if c.asked.Do == "hang" {
					p.Timeout = time.Second
				}
			}, func(t *testing.T, e *pawltest.Engine, _ *pool.Pool, _ *events) {
				first := process(t, e)
				j, err := e.Work(c.asked, pawl.Attempts(1)) // it would come again and end more children
				if j.State != job.Dead || pawl.IsDead(err) || len(j.Failures.List()) != 1 || !strings.Contains(fmt.Sprint(err), c.says) {
					t.Errorf("%s, %v", j.State, err)
				}
				if err := syscall.Kill(first, 0); !errors.Is(err, syscall.ESRCH) {
					t.Errorf("child %d is still there when its job has ended: %v", first, err)
				}
				if second := process(t, e); second == first {
					t.Errorf("child %d again", first)
				}
			})
		})
	}
}

// Its last words are the job's.
func TestJ22_WhatAChildSaysBeforeItEndsIsInTheLog(t *testing.T) {
	with(t, nil, func(t *testing.T, e *pawltest.Engine, _ *pool.Pool, _ *events) {
		for i := range 10 {
			for _, do := range []string{"ok", "exit"} {
				say := fmt.Sprintf("%s %d", do, i)
				j, _ := e.Work(asked{Do: do, Say: say + "\nand " + say}, pawl.Attempts(1))
				logs, err := e.Logs(t.Context(), j.ID, 0, 10)
				if err != nil || len(logs) != 2 || logs[0].Text != say || logs[1].Text != "and "+say {
					t.Errorf("%s: %+v, %v", say, logs, err)
				}
			}
		}
	})
}

// Without a job a child has nothing to say, and may end.
func TestJ22_AnIdleChildThatSpeaksOrEndsIsReplaced(t *testing.T) {
	with(t, nil, func(t *testing.T, e *pawltest.Engine, _ *pool.Pool, said *events) {
		first := process(t, e)
		if _, err := e.Work(asked{Do: "twice"}); err != nil {
			t.Fatal(err)
		}
		said.wait("a child of the pool is replaced")
		second := process(t, e)
		if err := syscall.Kill(second, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		said.wait(`the child was ended by signal "killed"`)
		if third := process(t, e); second == first || third == second {
			t.Errorf("children %d, %d, %d", first, second, third)
		}
	})
}

func TestJ22_ACancelledJobsChildIsReplaced(t *testing.T) {
	with(t, nil, func(t *testing.T, e *pawltest.Engine, _ *pool.Pool, said *events) {
		first := process(t, e)
		id := job.NewID()
		var cancel sync.WaitGroup
		cancel.Go(func() {
			said.wait("begun")
			if _, err := e.Cancel(context.Background(), id); err != nil {
				t.Error(err)
			}
		})
		if j, err := e.Work(asked{Do: "hang", Say: "begun"}, pawl.WithID(id)); j.State != job.Cancelled {
			t.Errorf("%s, %v", j.State, err)
		}
		cancel.Wait()
		if err := syscall.Kill(first, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("child %d is still there: %v", first, err)
		}
		process(t, e)
	})
}

func TestJ22_WaitingForAChildEndsWithACancel(t *testing.T) {
	with(t, func(c *pool.Config) { c.Wait = time.Hour }, func(t *testing.T, e *pawltest.Engine, _ *pool.Pool, said *events) {
		holder, waiter := job.NewID(), job.NewID()
		var cancel sync.WaitGroup
		cancel.Go(func() {
			said.wait("begun") // the only child is taken
			ctx := context.Background()
			e.Enqueue(asked{Do: "ok"}, pawl.WithID(waiter))
			for j, err := e.Get(ctx, waiter); err == nil && j.State != job.Running; j, err = e.Get(ctx, waiter) {
				if err := e.Ready(ctx); err != nil {
					t.Error(err)
				}
			}
			if _, err := e.Cancel(ctx, waiter); err != nil {
				t.Error(err)
			}
			if j, err := e.Wait(ctx, waiter); err != nil || j.State != job.Cancelled {
				t.Errorf("%s, %v", j.State, err)
			}
			if j, err := e.Get(ctx, holder); err != nil || j.State != job.Running {
				t.Errorf("the other job: %s, %v", j.State, err)
			}
			if _, err := e.Cancel(ctx, holder); err != nil {
				t.Error(err)
			}
		})
		_, _ = e.Work(asked{Do: "hang", Say: "begun"}, pawl.WithID(holder))
		cancel.Wait()
	})
}

func TestJ22_WhoWaitsTooLongIsPutOff(t *testing.T) {
	with(t, func(c *pool.Config) { c.Env[roleVariable], c.Ready, c.Wait = "crash", true, 5*time.Second }, func(t *testing.T, e *pawltest.Engine, _ *pool.Pool, said *events) {
		j, err := e.Work(asked{Do: "ok"})
		if j.State != job.Waiting || len(j.Failures.List()) != 0 || !pawl.IsSnooze(err) {
			t.Errorf("%s, %v", j.State, err)
		}
		for _, want := range []string{"no child was idle for 5s", "the child ended with exit code 3"} {
			if !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%v lacks %q", err, want)
			}
		}
		said.wait("no licence") // what it says without a job goes to the pool's logger
	})
}

func TestJ22_AChildIsReadyWhenItSaysSo(t *testing.T) {
	with(t, func(c *pool.Config) { c.Env[roleVariable], c.Ready = "ready", true }, func(t *testing.T, e *pawltest.Engine, _ *pool.Pool, _ *events) {
		if first, second := process(t, e), process(t, e); first != second {
			t.Errorf("children %d, %d", first, second)
		}
	})
	for role, says := range map[string]string{
		"eager": `the child said "hello\n" instead of being ready`, "deaf": "the child was not ready within 100ms", "crash": "exit code 3",
	} {
		with(t, func(c *pool.Config) {
			c.Env[roleVariable], c.Ready = role, true
			if role == "deaf" {
				c.Start = 100 * time.Millisecond
			}
		}, func(_ *testing.T, _ *pawltest.Engine, _ *pool.Pool, said *events) { said.wait(says) })
	}
}

// More than a pipe holds, to a child that reads nothing.
func TestJ22_AChildThatDoesNotReadDoesNotHang(t *testing.T) {
	with(t, func(c *pool.Config) { c.Env[roleVariable], c.Timeout = "deaf", 100*time.Millisecond }, func(t *testing.T, e *pawltest.Engine, _ *pool.Pool, _ *events) {
		j, err := e.Work(asked{Fill: strings.Repeat("x", 900<<10)}, pawl.Attempts(1))
		if j.State != job.Dead || !strings.Contains(fmt.Sprint(err), "no answer within 100ms") {
			t.Errorf("%s, %v", j.State, err)
		}
	})
}

func TestJ22_WhatDoesNotFitALineIsDead(t *testing.T) {
	with(t, func(c *pool.Config) { c.Line = 2 << 10 }, func(t *testing.T, e *pawltest.Engine, _ *pool.Pool, _ *events) {
		for payload, says := range map[string]string{
			`{"Fill":"` + strings.Repeat("x", 2<<10) + `"}`: "must make a line of at most 2048 bytes",
			`{}{"id":"x"}`: "children of a pool read JSON",
			"":             "children of a pool read JSON",
		} {
			if j, err := e.Work(pawl.RawArgs("play", []byte(payload))); j.State != job.Dead || !strings.Contains(fmt.Sprint(err), says) {
				t.Errorf("%.20q: %s, %v", payload, j.State, err)
			}
		}
	})
}

// Two children do two jobs at once: each would wait for the other otherwise.
func TestJ22_IdleChildrenArePicked(t *testing.T) {
	with(t, func(c *pool.Config) { c.Size = 2 }, func(t *testing.T, e *pawltest.Engine, _ *pool.Pool, said *events) {
		id := job.NewID()
		var other sync.WaitGroup
		other.Go(func() {
			said.wait("begun")
			ctx := context.Background()
			r := e.Enqueue(asked{Do: "ok"})
			if j, err := e.Wait(ctx, r.ID); err != nil || j.State != job.Done {
				t.Errorf("%s, %v", j.State, err)
			}
			if _, err := e.Cancel(ctx, id); err != nil {
				t.Error(err)
			}
		})
		_, _ = e.Work(asked{Do: "hang", Say: "begun"}, pawl.WithID(id))
		other.Wait()
	})
}

// held makes a named pipe, and opens it for reading when somebody has it open for writing.
func held(t *testing.T) (name string, open func() *bufio.Reader) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name, func() *bufio.Reader {
		f, err := os.Open(name)
		if err != nil {
			t.Error(err)
			return nil
		}
		t.Cleanup(func() { _ = f.Close() })
		r := bufio.NewReader(f)
		if text, err := r.ReadString('\n'); text != "ready\n" {
			t.Errorf("%q, %v", text, err)
		}
		return r
	}
}

// gone waits until nobody holds the pipe.
func gone(t *testing.T, r io.Reader) {
	t.Helper()
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

func TestJ22_CloseEndsChildrenAndWhatTheyStarted(t *testing.T) {
	with(t, nil, func(t *testing.T, e *pawltest.Engine, p *pool.Pool, _ *events) {
		name, open := held(t)
		pipe := make(chan *bufio.Reader, 1)
		go func() { pipe <- open() }()
		if _, err := e.Work(asked{Do: "fork", File: name}); err != nil {
			t.Fatal(err)
		}
		r := <-pipe
		p.Close()
		gone(t, r)
		p.Close()
		if j, err := e.Work(asked{Do: "ok"}); j.State != job.Waiting || !pawl.IsSnooze(err) {
			t.Errorf("after Close: %s, %v", j.State, err)
		}
	})
}

// Close does not wait for a job, which is not to blame.
func TestJ22_AJobWhosePoolIsClosedIsPutOff(t *testing.T) {
	with(t, nil, func(t *testing.T, e *pawltest.Engine, p *pool.Pool, said *events) {
		var closed sync.WaitGroup
		closed.Go(func() {
			said.wait("begun")
			p.Close()
		})
		if j, err := e.Work(asked{Do: "hang", Say: "begun"}); j.State != job.Waiting || !pawl.IsSnooze(err) {
			t.Errorf("%s, %v", j.State, err)
		}
		closed.Wait()
	})
}

// The worker is this test program once more, and is killed.
func TestJ22_ChildrenAreGoneAfterTheWorkerIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "work.db")
	name, open := held(t)
	e, err := pawl.New(sqlite.File(file), pawl.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Enqueue(t.Context(), asked{Do: "fork", File: name}); err != nil {
		t.Fatal(err)
	}
	worker := exec.Command(os.Args[0])
	worker.Env = append(os.Environ(), roleVariable+"=worker", fileVariable+"="+file)
	worker.Stderr = os.Stderr
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	r := open()
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
	gone(t, r)
}

func TestJ22_ConfigSaysAllFaultsAtOnce(t *testing.T) {
	var h pawl.Handlers
	_, err := pool.Register(&h, pool.Config{
		Kinds: []string{"a", "a", "b c,"}, Path: "python3", Dir: "/no/such", Env: map[string]string{"A=B": "", "C": "\x00"},
		Size: -1, Wait: -1, Timeout: -1, Grace: time.Hour, Line: 3,
	})
	for _, want := range []string{
		"is there twice", "Kinds[2]", "Config.Path", "Config.Dir", `Env "A=B"`, `Env "C"`, "Config.Size", "Config.Wait", "Config.Timeout", "Config.Grace", "Config.Line",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
	if _, err = pool.Register(&h, pool.Config{Path: "/etc"}); err == nil || !strings.Contains(err.Error(), "must be a program") || !strings.Contains(err.Error(), "Config.Kinds") {
		t.Errorf("%v", err)
	}
	if !slices.Contains(strings.Split(fmt.Sprint(err), ":"), "pool") || !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("%v", err)
	}
}
