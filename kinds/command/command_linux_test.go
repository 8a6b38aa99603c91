package command_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/kinds/command"
	"github.com/pawlwork/pawl/pawltest"
	"github.com/pawlwork/pawl/store/sqlite"
)

// programs are the ones that the tests run. The shell is a program of the job's choice, which is what tests want.
func programs() []command.Program {
	return []command.Program{
		{
			Name: "sh", Path: "/bin/sh", Args: []string{"-c"}, Env: []string{"COLOR", "PATH"},
			Exit: map[int]error{
				3: nil, 65: pawl.Dead(errors.New("bad input")), 75: pawl.SnoozeFor(time.Hour, "busy"), 76: pawl.RetryIn(time.Minute, errors.New("later")),
			},
		},
		{Name: "echo", Path: "/bin/echo", Args: []string{"--"}, Check: func(args []string) error {
			if slices.Contains(args, "no") {
				return errors.New(`"no" is no argument`)
			}
			return nil
		}},
	}
}

// with runs a test on an engine that has the programs.
func with(t *testing.T, change func(*command.Config), test func(t *testing.T, root string, e *pawltest.Engine)) {
	t.Helper()
	root := t.TempDir()
	config := command.Config{Root: root, Allow: programs()}
	if change != nil {
		change(&config)
	}
	pawltest.Real(t, sqlite.Memory(), func(e *pawl.Engine) {
		if err := command.Register(e, config); err != nil {
			t.Fatal(err)
		}
	}, func(t *testing.T, e *pawltest.Engine) { test(t, root, e) })
}

func sh(script string) command.Run { return command.Run{Program: "sh", Args: []string{script}} }

// result is that of a job that must be done.
func result(t *testing.T, e *pawltest.Engine, run command.Run) command.Result {
	t.Helper()
	j, err := e.Work(run)
	if err != nil || j.State != job.Done {
		t.Fatalf("%s: %v", j.State, err)
	}
	r, err := pawl.Result[command.Result](t.Context(), e.Engine, j.ID)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestJ21_OutputAndExitAreKept(t *testing.T) {
	with(t, nil, func(t *testing.T, _ string, e *pawltest.Engine) {
		got := result(t, e, sh("echo out; echo err >&2; printf '\\377'; exit 3"))
		if want := (command.Result{Exit: 3, Stdout: "out\n\uFFFD", Stderr: "err\n", StdoutSize: 5, StderrSize: 4}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		got = result(t, e, command.Run{Program: "echo", Args: []string{"$HOME `id` ; *", "a b"}}) // no shell reads it
		if got.Stdout != "-- $HOME `id` ; * a b\n" && got.Stdout != "$HOME `id` ; * a b\n" {
			t.Errorf("got %q", got.Stdout)
		}
	})
}

func TestJ21_ExitCodesAreOutcomes(t *testing.T) {
	with(t, nil, func(t *testing.T, _ string, e *pawltest.Engine) {
		for _, c := range []struct {
			script string
			state  pawl.State
			failed int
			says   string
		}{
			{"exit 0", job.Done, 0, ""},
			{"echo oh no >&2; exit 1", job.Waiting, 1, "sh: exit code 1: oh no"},
			{"exit 65", job.Dead, 1, "bad input (sh: exit code 65)"},
			{"exit 75", job.Waiting, 0, "busy"},
			{"exit 76", job.Waiting, 1, "later (sh: exit code 76)"},
			{"kill -9 $$", job.Waiting, 1, `sh: ended by signal "killed"`},
		} {
			j, err := e.Work(sh(c.script))
			if j.State != c.state || len(j.Failures.List()) != c.failed || c.says != "" && !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("%q: %s, %d failures, %v", c.script, j.State, len(j.Failures.List()), err)
			}
		}
	})
}

func TestJ21_WhatIsNotAllowedIsDead(t *testing.T) {
	with(t, nil, func(t *testing.T, root string, e *pawltest.Engine) {
		outside := t.TempDir()
		for name, to := range map[string]string{"out": outside, "up": "..", "round": "round", "file": os.Args[0]} {
			if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(root, "text"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(filepath.Join(root, "fifo"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			run  command.Run
			says string
		}{
			{command.Run{Program: "rm"}, `program "rm": is not on this worker's list`},
			{command.Run{Program: "/bin/sh"}, "is not on this worker's list"},
			{command.Run{}, "is not on this worker's list"},
			{command.Run{Program: "echo", Args: []string{"no"}}, `arguments of echo: "no" is no argument`},
			{command.Run{Program: "echo", Args: []string{"a\x00b"}}, "zero byte"},
			{command.Run{Program: "echo", Args: make([]string, 1001)}, "args 1001: must be at most 1000"},
			{command.Run{Program: "echo", Args: []string{strings.Repeat("x", 300<<10)}}, "must be at most 262144 bytes"},
			{command.Run{Program: "sh", Env: map[string]string{"LD_PRELOAD": "x"}}, `env "LD_PRELOAD": is not among`},
			{command.Run{Program: "sh", Env: map[string]string{"COLOR": "a\x00b"}}, "zero byte"},
			{command.Run{Program: "sh", Dir: "../x"}, "without a way out of it"},
			{command.Run{Program: "sh", Dir: "a/../../x"}, "without a way out of it"},
			{command.Run{Program: "sh", Dir: "/etc"}, "without a way out of it"},
			{command.Run{Program: "sh", Dir: "out"}, "also where links lead"},
			{command.Run{Program: "sh", Dir: "up"}, "also where links lead"},
			{command.Run{Program: "sh", Dir: "round"}, "dir"},
			{command.Run{Program: "sh", Dir: "text"}, "must be a folder"},
			{command.Run{Program: "sh", Dir: "fifo"}, "must be a folder"},
			{command.Run{Program: "sh", Timeout: time.Hour}, "must be 0 (the worker's) to 10m0s"},
			{command.Run{Program: "sh", Timeout: -1}, "timeout"},
			{command.Run{Program: "sh", Stdin: "a", StdinBytes: []byte("b")}, "must be one of them"},
		} {
			if j, err := e.Work(c.run); j.State != job.Dead || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("%+v: %s, %v", c.run, j.State, err)
			}
		}
		// What may be there later is tried again.
		if j, err := e.Work(command.Run{Program: "sh", Dir: "later"}); j.State != job.Waiting || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s, %v", j.State, err)
		}
	})
}

func TestJ21_FolderAndEnvironmentAreGiven(t *testing.T) {
	t.Setenv("PAWL_SECRET", "hush")
	with(t, func(c *command.Config) { c.Env = map[string]string{"LANG": "C"} }, func(t *testing.T, root string, e *pawltest.Engine) {
		if err := os.MkdirAll(filepath.Join(root, "a", "b"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("b", filepath.Join(root, "a", "link")); err != nil {
			t.Fatal(err)
		}
		root, err := filepath.EvalSymlinks(root)
		if err != nil {
			t.Fatal(err)
		}
		run := sh(`pwd -P; /usr/bin/env | /usr/bin/sort | /bin/grep -v -e ^PWD -e ^SHLVL -e ^_ -e ^OLDPWD`)
		for dir, want := range map[string]string{"": root, "a/link": root + "/a/b", "./a/b/..": root + "/a"} {
			run.Dir, run.Env = dir, map[string]string{"COLOR": "blue"}
			want += "\nCOLOR=blue\nLANG=C\nPATH=/usr/local/bin:/usr/bin:/bin\n"
			if got := result(t, e, run).Stdout; got != want {
				t.Errorf("%q: %q, want %q", dir, got, want)
			}
		}
		run.Env["PATH"] = "/nowhere"
		if got := result(t, e, run).Stdout; !strings.Contains(got, "\nPATH=/nowhere\n") {
			t.Errorf("%q", got)
		}
	})
}

func TestJ21_StdinIsReadWhollyOrNotAtAll(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", (1<<20-4096)/16)
	with(t, nil, func(t *testing.T, _ string, e *pawltest.Engine) {
		run := sh("wc -c")
		run.Stdin = big
		if got := strings.TrimSpace(result(t, e, run).Stdout); got != fmt.Sprint(len(big)) {
			t.Errorf("read %s of %d", got, len(big))
		}
		run = sh("echo done") // 1 MB that nobody reads
		run.Stdin = big
		if got := result(t, e, run).Stdout; got != "done\n" {
			t.Errorf("%q", got)
		}
		run = sh("sleep 30 <&0 & exec <&-; echo done") // nor does who inherits it
		run.Stdin = big
		if got := result(t, e, run).Stdout; got != "done\n" {
			t.Errorf("%q", got)
		}
		run = sh("cat") // both ways at once, more than pipes hold
		run.StdinBytes = []byte(big[:300<<10])
		if got := result(t, e, run).Stdout; got != big[:300<<10] {
			t.Errorf("%d bytes", len(got))
		}
		if got := result(t, e, sh("cat; echo end")).Stdout; got != "end\n" { // no input is an empty one
			t.Errorf("%q", got)
		}
	})
}

func TestJ21_OutputIsBounded(t *testing.T) {
	with(t, nil, func(t *testing.T, _ string, e *pawltest.Engine) {
		got := result(t, e, sh(`echo begin; head -c 100000000 /dev/zero | tr '\0' '<'; echo end; echo few >&2`))
		if got.StdoutSize != 100_000_000+10 || !got.StdoutCut || got.StderrCut || got.Stderr != "few\n" {
			t.Errorf("%d bytes, cut %t and %t, %q", got.StdoutSize, got.StdoutCut, got.StderrCut, got.Stderr)
		}
		if !strings.HasPrefix(got.Stdout, "begin\n<<") || !strings.HasSuffix(got.Stdout, "<<end\n") || !strings.Contains(got.Stdout, " bytes left out …\n") {
			t.Errorf("%.40q … %q", got.Stdout, got.Stdout[len(got.Stdout)-40:])
		}
		text, err := json.Marshal(got)
		if err != nil || len(text) > 1<<20 || len(text) < 1<<19 {
			t.Errorf("%d bytes, %v", len(text), err)
		}
	})
	with(t, func(c *command.Config) { c.Output = 2 << 10 }, func(t *testing.T, _ string, e *pawltest.Engine) {
		got := result(t, e, sh("seq 1 1000; seq 1 1000 >&2"))
		if text, _ := json.Marshal(got); !got.StdoutCut || !got.StderrCut || len(text) > 2<<10 {
			t.Errorf("%d bytes", len(text))
		}
	})
}

func TestJ21_OutputGoesToTheLog(t *testing.T) {
	with(t, func(c *command.Config) { c.Log = true }, func(t *testing.T, _ string, e *pawltest.Engine) {
		j, err := e.Work(sh("echo one; printf 'two\\r\\nthree'; echo oh >&2"))
		if err != nil {
			t.Fatal(err)
		}
		logs, err := e.Logs(t.Context(), j.ID, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range logs {
			got = append(got, fmt.Sprintf("%d %s", l.Level, l.Text))
		}
		slices.Sort(got)
		if want := []string{"0 one", "0 three", "0 two", "4 oh"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// forks holds the pipe of its first argument with all that it starts, some of which does not listen to SIGTERM or leaves.
const forks = `exec 3>"$0"; nap="sleep 30; echo survived >&3"; sh -c "$nap" & setsid sh -c "$nap" & sh -c "trap '' TERM; $nap" &
	(setsid sh -c "trap '' TERM HUP; ($nap) & $nap" &) ; echo ready >&3; wait`

// pipe makes a named pipe, and opens it for reading when somebody has it open for writing.
func pipe(t *testing.T, root string) (name string, open func() *bufio.Reader) {
	t.Helper()
	name = filepath.Join(root, "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name, func() *bufio.Reader {
		f, err := os.Open(name)
		if err != nil {
			t.Error(err)
			return bufio.NewReader(bytes.NewReader(nil))
		}
		t.Cleanup(func() { _ = f.Close() })
		r := bufio.NewReader(f)
		if line, err := r.ReadString('\n'); line != "ready\n" {
			t.Errorf("says %q, %v", line, err)
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

func TestJ21_AllIsGoneAfterCancel(t *testing.T) {
	with(t, func(c *command.Config) { c.Grace = time.Millisecond }, func(t *testing.T, root string, e *pawltest.Engine) {
		name, open := pipe(t, root)
		id := job.NewID()
		held := make(chan *bufio.Reader, 1)
		go func() {
			held <- open()
			if _, err := e.Cancel(context.Background(), id); err != nil {
				t.Error(err)
			}
		}()
		run := sh(forks)
		run.Args = append(run.Args, name)
		if j, err := e.Work(run, pawl.WithID(id)); j.State != job.Cancelled {
			t.Errorf("%s, %v", j.State, err)
		}
		gone(t, <-held)
	})
}

func TestJ21_AllIsGoneAfterTheTimeout(t *testing.T) {
	with(t, func(c *command.Config) { c.Grace = time.Millisecond }, func(t *testing.T, root string, e *pawltest.Engine) {
		name, open := pipe(t, root)
		held := make(chan *bufio.Reader, 1)
		go func() { held <- open() }()
		run := sh("echo why >&2; " + forks)
		run.Args, run.Timeout = append(run.Args, name), 3*time.Second // it must have forked by then
		j, err := e.Work(run)
		if j.State != job.Waiting || len(j.Failures.List()) != 1 || fmt.Sprint(err) != "sh: ended after its timeout of 3s: why" {
			t.Errorf("%s, %v", j.State, err)
		}
		gone(t, <-held)
	})
}

// The worker is this test program once more. It is killed while the program runs; another does the job again.
func TestJ21_AllIsGoneAfterTheWorkerIsKilled(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "work.db")
	name, open := pipe(t, root)
	e, err := pawl.New(sqlite.File(file), pawl.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	run := sh(`[ ! -e again ] || exit 0; touch again; ` + forks)
	run.Args = append(run.Args, name)
	r, err := e.Enqueue(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	worker := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), workerVariable+"="+file, workerRoot+"="+root)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	kill := func(cmd *exec.Cmd) {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait()
	}
	first := worker()
	held := open()
	kill(first)
	gone(t, held)
	second := worker()
	defer kill(second)
	if j, err := e.Wait(t.Context(), r.ID); err != nil || j.State != job.Done || j.Run < 2 {
		t.Errorf("%s in run %d, %v", j.State, j.Run, err)
	}
	if report, err := e.Check(t.Context(), pawl.CheckOptions{}); err != nil || len(report.Faults) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

// An end by SIGTERM is no success, whatever the program says about it.
func TestJ21_WhoIsEndedIsNotDone(t *testing.T) {
	with(t, nil, func(t *testing.T, root string, e *pawltest.Engine) {
		name, open := pipe(t, root)
		id := job.NewID()
		held := make(chan *bufio.Reader, 1)
		go func() {
			held <- open()
			if _, err := e.Cancel(context.Background(), id); err != nil {
				t.Error(err)
			}
		}()
		run := sh(`trap 'exit 0' TERM; exec 3>"$0"; echo ready >&3; while :; do sleep 0.01; done`)
		run.Args = append(run.Args, name)
		if j, err := e.Work(run, pawl.WithID(id)); j.State != job.Cancelled || err == nil {
			t.Errorf("%s, %v", j.State, err)
		}
		gone(t, <-held)
	})
}

func TestJ21_ConfigSaysAllFaultsAtOnce(t *testing.T) {
	var h pawl.Handlers
	err := command.Register(&h, command.Config{})
	for _, want := range []string{"Config.Allow", "Config.Root"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("off: %v, want %s", err, want)
		}
	}
	err = command.Register(&h, command.Config{
		Root: "work", Env: map[string]string{"A=B": "", "C": "\x00"}, Timeout: -1, Grace: -1, Output: 3,
		Allow: []command.Program{
			{Name: "", Path: "ls"}, {Name: "a", Path: "/no/such"}, {Name: "a", Path: "/etc/passwd", Env: []string{"B C"}},
		},
	})
	for _, want := range []string{
		"Allow[0].Name", "Allow[0].Path", "must be absolute", "Allow[1].Path", "no such file", "Allow[2].Name", "is there twice",
		"must be a program", "Allow[2].Env", "Config.Root", `"A=B"`, "Env[C]", "Config.Timeout", "Config.Grace", "Config.Output",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
	if !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("%v is no ErrInvalid", err)
	}
}
