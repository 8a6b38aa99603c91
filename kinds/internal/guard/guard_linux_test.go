package guard

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawlwork/pawl/internal/need"
)

// roleVariable makes the test program play a part.
const roleVariable = "PAWL_GUARD_TEST_ROLE"

func TestMain(m *testing.M) {
	Main()
	// The race detector lets a program sleep for a second before it exits; a guard is one.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	switch os.Getenv(roleVariable) {
	case "":
		goleak.VerifyTestMain(m)
	case "family":
		family(true)
	case "group":
		family(false)
	case "leaver":
		begin(true, "sh", "-c", nap) // and is gone: the sleeper is an orphan in a session of its own
	case "worker":
		if _, err := Start(program(os.Stdout, "family")); err != nil {
			panic(err)
		}
		time.Sleep(time.Minute) // stimulus: it does not end by itself
	}
}

// nap is what those do who must be gone before it is over. They do not stay for ever if they are not.
const nap = "sleep 30; echo survived"

// family starts sleepers in its own group and, if away, such as try to get away, says that it has, and waits.
func family(away bool) {
	begin(false, "sh", "-c", nap)
	begin(false, "sh", "-c", "trap '' TERM; ("+nap+") & "+nap)
	if away {
		begin(true, "sh", "-c", nap)
		begin(true, "sh", "-c", "trap '' TERM HUP; setsid sh -c '"+nap+"' & "+nap)
		if err := os.Setenv(roleVariable, "leaver"); err != nil {
			panic(err)
		}
		_ = begin(false, os.Args[0]).Wait()
	}
	fmt.Println("ready")
	time.Sleep(time.Minute) // stimulus: it does not end by itself
}

// begin starts a program that holds our stdout.
func begin(session bool, path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Stdout = os.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return cmd
}

// program is this test program in a role.
func program(stdout *os.File, role string) Program {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	dir, err := os.Open(os.TempDir())
	if err != nil {
		panic(err)
	}
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Program{
		Path: path, Env: []string{roleVariable + "=" + role, "PATH=" + os.Getenv("PATH")},
		Dir: dir, Stdin: null, Stdout: stdout, Stderr: null, Grace: time.Hour,
	}
}

// run starts a program and returns the reading end of its stdout, which ends when nobody holds the other any more.
func run(t *testing.T, change func(*Program), role string) (*Process, *bufio.Reader) {
	t.Helper()
	out, their, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := program(their, role)
	if change != nil {
		change(&p)
	}
	g, err := Start(p)
	for _, f := range []*os.File{their, p.Dir, p.Stdin} {
		_ = f.Close()
	}
	t.Cleanup(func() { _ = out.Close() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Kill()
		<-g.Done()
	})
	return g, bufio.NewReader(out)
}

func shell(script string, grace time.Duration) func(*Program) {
	return func(p *Program) { p.Path, p.Args, p.Grace = "/bin/sh", []string{"-c", script}, grace }
}

func says(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	if line, err := r.ReadString('\n'); err != nil || strings.TrimSpace(line) != want {
		t.Fatalf("says %q, %v, want %q", line, err, want)
	}
}

// ends waits until nobody holds the pipe.
func ends(t *testing.T, r io.Reader, want string) {
	t.Helper()
	if rest, err := io.ReadAll(r); err != nil || string(rest) != want {
		t.Errorf("then %q, %v, want %q", rest, err, want)
	}
}

func TestJ21_AFamilyIsGoneAfterItsEnd(t *testing.T) {
	for name, end := range map[string]func(*Process){
		"End":  (*Process).End,
		"Kill": (*Process).Kill,
		"Exit": func(p *Process) { _ = syscall.Kill(p.PID(), syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			g, out := run(t, func(p *Program) { p.Grace = time.Millisecond }, "family")
			says(t, out, "ready")
			end(g)
			<-g.Done()
			ends(t, out, "")
			if err := g.Err(); err != nil {
				t.Error(err)
			}
			if g.Exit().Signal == "" {
				t.Errorf("exit %+v", g.Exit())
			}
		})
	}
}

// The worker is this test program once more; it is killed as by the kernel, and nobody but the guard can notice.
func TestJ21_AFamilyIsGoneAfterItsWorkerIsKilled(t *testing.T) {
	worker := exec.Command(os.Args[0])
	worker.Env = append(os.Environ(), roleVariable+"=worker")
	out, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	says(t, lines, "ready")
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	ends(t, lines, "")
	_ = worker.Wait()
}

func TestJ21_AGroupIsGoneAfterItsGuardIsKilled(t *testing.T) {
	g, out := run(t, nil, "group")
	says(t, out, "ready")
	if err := syscall.Kill(g.Guard(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ends(t, out, "")
	if err := g.Err(); err == nil || !strings.Contains(err.Error(), "the guard ended too early: signal: killed") {
		t.Errorf("says %v", err)
	}
}

// Each child leaves for a session of its own, forks and ends, so that there is never the same one twice.
func TestJ21_AChainOfLeaversIsCaught(t *testing.T) {
	const chain = `
import os, sys, time
end = time.time() + 30
print("ready", flush=True)
while time.time() < end:
    if os.fork():
        os._exit(0)
    os.setsid()
print("survived", flush=True)`
	python := need.Tool(t, "python3")
	g, out := run(t, func(p *Program) { p.Path, p.Args = python, []string{"-c", chain} }, "")
	says(t, out, "ready")
	g.Kill()
	ends(t, out, "")
	<-g.Done()
}

func TestJ21_GuardPassesSignalsMeantForAllBy(t *testing.T) {
	g, out := run(t, shell("trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done", time.Hour), "")
	says(t, out, "ready")
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if err := syscall.Kill(g.Guard(), sig); err != nil {
			t.Fatal(err)
		}
	}
	g.End()
	g.End()
	ends(t, out, "bye\n")
	<-g.Done()
	if got := g.Exit(); got != (Exit{Code: 7}) {
		t.Errorf("exit %+v", got)
	}
}

func TestJ21_WhoIgnoresTheEndIsKilled(t *testing.T) {
	g, out := run(t, shell("trap '' TERM; echo ready; "+nap, time.Millisecond), "")
	says(t, out, "ready")
	g.End()
	<-g.Done()
	ends(t, out, "")
	if got := g.Exit(); got != (Exit{Code: -1, Signal: "killed"}) {
		t.Errorf("exit %+v", got)
	}
}

// A program that has ended well is done, and what it left is killed without a grace.
func TestJ21_WhatAProgramLeavesIsKilled(t *testing.T) {
	g, out := run(t, shell("trap '' TERM; ("+nap+") & setsid sh -c '"+nap+"' & echo done", time.Hour), "")
	says(t, out, "done")
	<-g.Done()
	ends(t, out, "")
	if got := g.Exit(); got != (Exit{}) || g.Err() != nil {
		t.Errorf("exit %+v, %v", got, g.Err())
	}
}

// Nothing of ours reaches the program: no variable, no open file, no ignored signal.
func TestJ21_AProgramHasOnlyWhatItIsGiven(t *testing.T) {
	t.Setenv("PAWL_SECRET", "hush")
	_, out := run(t, func(p *Program) {
		shell("echo $(env | cut -d= -f1 | sort | grep -v -e ^_ -e PWD -e SHLVL); echo $(ls /proc/self/fd); pwd; "+
			"grep -e SigIgn -e NoNewPrivs /proc/self/status", 0)(p)
		p.Env = []string{"PATH=" + os.Getenv("PATH"), "COLOR=blue"}
	}, "")
	text, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"COLOR PATH", "0 1 2 3", os.TempDir(), "SigIgn:\t0000000000000000", "NoNewPrivs:\t1"} // 3 is ls' own
	// 32 and 33 are the C library's own, and whoever started us may have ignored them.
	text = regexp.MustCompile(`SigIgn:\t[0-9a-f]+`).ReplaceAllFunc(text, func(line []byte) []byte {
		ignored, err := strconv.ParseUint(string(line[len("SigIgn:\t"):]), 16, 64)
		if err != nil {
			return line
		}
		return fmt.Appendf(nil, "SigIgn:\t%016x", ignored&^(3<<31))
	})
	got := strings.Split(strings.TrimSpace(string(text)), "\n")
	slices.Sort(want[3:])
	slices.Sort(got[3:])
	if !slices.Equal(got, want) {
		t.Errorf("has %q, want %q", got, want)
	}
}

// Bytes are bytes, also where they are no text.
func TestJ21_ArgumentsAreHandedOverAsTheyAre(t *testing.T) {
	_, out := run(t, func(p *Program) {
		shell(`printf '%s|' "$0" "$@" "$X"`, 0)(p)
		p.Args = append(p.Args, "\xff", "", "a b\n")
		p.Env = []string{"X=\xfe"}
	}, "")
	ends(t, out, "\xff||a b\n|\xfe|")
}

func TestJ21_AProgramRunsAsItsUser(t *testing.T) {
	out, their, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p := program(their, "")
	shell("id -u; id -g; kill -9 $PPID || echo refused", 0)(&p)
	p.UID, p.GID = 65534, 65533
	g, err := Start(p)
	_ = their.Close()
	if os.Geteuid() != 0 {
		if !errorHas(err, "operation not permitted") {
			t.Errorf("another user's program: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	ends(t, out, "65534\n65533\nrefused\n")
	<-g.Done()
}

func TestJ21_WhatCannotBeStartedSaysWhy(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	p := program(null, "")
	p.Path = "/no/such/program"
	if _, err := Start(p); !errorHas(err, "starting /no/such/program: no such file or directory") {
		t.Errorf("missing: %v", err)
	}
	p.Dir = null
	if _, err := Start(p); !errorHas(err, "entering the folder") {
		t.Errorf("no folder: %v", err)
	}
	ready.Store(false)
	defer ready.Store(true)
	if _, err := Start(p); !errors.Is(err, ErrNotReady) {
		t.Errorf("without Main: %v", err)
	}
}

// Started by hand the guard says what it is and ends.
func TestJ21_AGuardByHandEnds(t *testing.T) {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{name}}
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(text), "pawl-guard is started by Pawl") {
		t.Errorf("%v: %s", err, text)
	}
}

func errorHas(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

func TestJ21_LookReadsNamesWithParentheses(t *testing.T) {
	p, ok := look(os.Getpid())
	if !ok || p.parent != os.Getppid() || p.group != syscall.Getpgrp() {
		t.Errorf("%+v", p)
	}
	for q := range processes() {
		if q.id == os.Getpid() {
			return
		}
	}
	t.Error("this process is not in /proc: " + strconv.Itoa(os.Getpid()))
}
