package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlwork/pawl/internal/need"
)

// The test program plays three parts beside its own, so that what is tested is a real testenv in real processes.
const (
	partVariable  = "PAWL_TESTENV_TEST_PART"
	partTestenv   = "testenv"  // this program as testenv itself
	partLauncher  = "launcher" // `go run` or make: starts testenv and waits
	commandPart   = "command"  // what testenv runs: says what it got, leaves an escaped child, waits for its end
	stubbornPart  = "stubborn" // the same, deaf to polite signals
	escapedPart   = "escaped"  // a grandchild in a session of its own
	readyPrefix   = "ready "
	generousLimit = 60 * time.Second // for what must happen at once; only a failure waits so long
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case commandPart, stubbornPart:
			playCommand(os.Args[1] == stubbornPart)
			return
		case escapedPart:
			block()
		}
	}
	switch os.Getenv(partVariable) {
	case partTestenv:
		main()
	case partLauncher:
		playLauncher()
	default:
		os.Exit(m.Run())
	}
}

// run is a running testenv and what its command said of itself.
type run struct {
	guard  *exec.Cmd
	root   string // where it may make temporary files
	said   *bytes.Buffer
	stdout io.Closer
	ready  string // TMPDIR of the command, once it runs
	family *family
}

// needServers skips, or fails, where the servers of the usual suites are not installed.
func needServers(t *testing.T) {
	t.Helper()
	need.PostgresBin(t)
	need.Tool(t, "redis-server")
	need.Tool(t, "pgbouncer")
	need.Tool(t, "faketime")
}

// root makes a folder for temporary files that the user of Postgres can reach. It must be empty at the end: whatever a
// testenv leaves shows there.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "r")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Error(err)
		}
		for _, entry := range left {
			t.Errorf("left behind: %s", entry.Name())
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// testenv prepares a testenv with these arguments, in a process group of its own.
func testenv(t *testing.T, root string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), partVariable+"="+partTestenv, "TMPDIR="+root)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = generousLimit
	var said bytes.Buffer
	cmd.Stderr = &said
	return cmd, &said
}

// start runs a testenv with one of this program's parts as its command and returns when that runs.
func start(t *testing.T, part string, change func(*exec.Cmd)) *run {
	t.Helper()
	needServers(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &run{root: root(t)}
	r.guard, r.said = testenv(t, r.root, "-install=false", "--", self, part)
	if change != nil {
		change(r.guard)
	}
	stdout, err := r.guard.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.guard.Start(); err != nil {
		t.Fatal(err)
	}
	r.stdout = stdout
	line, err := bufio.NewReader(stdout).ReadString('\n')
	temporary, ready := strings.CutPrefix(strings.TrimSpace(line), readyPrefix)
	if err != nil || !ready {
		_ = r.guard.Wait()
		t.Fatalf("the command did not start: %q, %v\n%s", line, err, r.said)
	}
	r.ready = temporary
	r.family = familyOf(t, r.guard.Process.Pid)
	return r
}

// wait is the exit code of the process that was started.
func (r *run) wait(t *testing.T) int {
	t.Helper()
	return exit(t, r.guard.Wait())
}

func exit(t *testing.T, err error) int {
	t.Helper()
	var failed *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &failed):
		return failed.ExitCode() // -1 if a signal ended it
	default:
		t.Fatal(err)
		return 0
	}
}

func playCommand(stubborn bool) {
	if stubborn {
		signal.Ignore(endings...)
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	escaped := exec.Command(self, escapedPart)
	escaped.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := escaped.Start(); err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(os.TempDir(), "litter"), []byte("x"), 0o600); err != nil {
		panic(err)
	}
	fmt.Println(readyPrefix + os.TempDir())
	block()
}

// block waits for a signal's default action.
func block() {
	for {
		_ = syscall.Pause()
	}
}

func playLauncher() {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), partVariable+"="+partTestenv)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// complete runs a testenv to its end.
func complete(t *testing.T, cmd *exec.Cmd) (stdout string, code int) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()
	return out.String(), exit(t, err)
}
