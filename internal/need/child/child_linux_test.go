package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// partVariable makes the test program play a starter: it starts a child and waits to be killed.
const partVariable = "PAWL_CHILD_TEST_PART"

func TestMain(m *testing.M) {
	if os.Getenv(partVariable) == "" {
		os.Exit(m.Run())
	}
	p, err := Start(waiting(os.Stdout), syscall.SIGKILL)
	if err != nil {
		panic(err)
	}
	fmt.Println(p.PID())
	for {
		_ = syscall.Pause()
	}
}

// waiting is a program that waits for ever and keeps held open meanwhile.
func waiting(held *os.File) *exec.Cmd {
	cmd := exec.Command("sleep", "100000")
	cmd.Stdout = held
	return cmd
}

// The child holds the pipe that the test reads: the pipe ends when both starter and child have.
func TestStart_ChildEndsWithItsKilledStarter(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	starter := exec.Command(self)
	starter.Env = append(os.Environ(), partVariable+"=starter")
	out, err := starter.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil {
		t.Fatalf("the starter says %q, %v", line, err)
	}
	if err := starter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("then %q, %v", rest, err)
	}
	_ = starter.Wait()
}

// The kernel watches the starting thread. Here that thread's goroutine ends while the process goes on.
func TestStart_ChildOutlivesTheStartingGoroutine(t *testing.T) {
	var p *Process
	var err error
	started := make(chan struct{})
	go func() {
		defer close(started)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		p, err = Start(waiting(nil), syscall.SIGKILL)
	}()
	<-started
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop(syscall.SIGKILL, time.Minute)
	// Threads that end do so before others can be made to prove it: start and end some.
	for range 20 {
		other, err := Start(exec.Command("true"), syscall.SIGKILL)
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-p.Done():
		t.Errorf("ended by itself: %v", p.Wait())
	default:
	}
}

func TestStart_SaysWhatCannotBeStarted(t *testing.T) {
	if _, err := Start(exec.Command("/no/such/program"), syscall.SIGKILL); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestStop_KillsWhatDoesNotListen(t *testing.T) {
	deaf := exec.Command("sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1000; done")
	p, _, err := Serve(deaf, syscall.SIGKILL, "deaf")
	if err != nil {
		t.Fatal(err)
	}
	if p.Stop(syscall.SIGTERM, 0) {
		t.Error("said to have ended by SIGTERM, which it ignores")
	}
	var exit *exec.ExitError
	if err := p.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("ended by %v, want SIGKILL", err)
	}
	if err := p.SignalGroup(syscall.SIGTERM); err != nil { // its number may be another's by now
		t.Errorf("a signal to what has ended: %v", err)
	}
}

func TestStop_IsPolite(t *testing.T) {
	p, err := Start(waiting(nil), syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Stop(syscall.SIGTERM, time.Minute) {
		t.Error("said to have been killed")
	}
}

func TestServe_TellsWhyAServerEnded(t *testing.T) {
	_, log, err := Serve(exec.Command("sh", "-c", "echo one; echo the disk is full >&2; exit 3"), syscall.SIGKILL, "ready")
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("got %v, want the exit code and the log", err)
	}
	if log.String() != "one\nthe disk is full" {
		t.Errorf("log %q", log)
	}
}

func TestServe_KeepsTheEndOfTheLog(t *testing.T) {
	_, log, err := Serve(exec.Command("sh", "-c", "seq 1 1000; exit 1"), syscall.SIGKILL, "ready")
	if err == nil {
		t.Fatal("a server that ended counts as ready")
	}
	lines := strings.Split(log.String(), "\n")
	if len(lines) != logLines || lines[0] != "961" || lines[len(lines)-1] != "1000" {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
}

func TestOf_ListsChildren(t *testing.T) {
	p, err := Start(waiting(nil), syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	children, err := Of(os.Getpid())
	if err != nil || !slices.Contains(children, p.PID()) || Ended(p.PID()) {
		t.Errorf("children %v, %v, ended %t, want %d alive among them", children, err, Ended(p.PID()), p.PID())
	}
	p.Stop(syscall.SIGKILL, time.Minute)
	children, err = Of(os.Getpid())
	if err != nil || slices.Contains(children, p.PID()) || !Ended(p.PID()) {
		t.Errorf("children %v, %v, ended %t, want %d gone", children, err, Ended(p.PID()), p.PID())
	}
}

func TestUnprivileged_NamesTheMissingUser(t *testing.T) {
	credential, err := Unprivileged("pawl-no-such-user")
	if os.Geteuid() != 0 {
		if credential != nil || err != nil {
			t.Errorf("got %v, %v, want the present user", credential, err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), `"pawl-no-such-user"`) {
		t.Errorf("got %v, %v", credential, err)
	}
}
