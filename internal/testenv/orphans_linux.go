package main

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawlwork/pawl/internal/need/child"
)

// adoptOrphans makes this process the parent of every descendant whose own parent dies. So none gets away, whatever
// session or group it put itself into.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming the parent of orphans: %w", err)
	}
	return nil
}

// orphanGrace is how long an orphan may take to end by SIGTERM. A Postgres whose test was killed gives its shared memory
// back in that time, of which it takes 5 s to kill a process of its own that stands still.
const orphanGrace = 20 * time.Second

// endChildren ends all children but those to keep, and their children as these fall to us, until there are none.
func endChildren(keep []int) {
	for sig := syscall.SIGTERM; ; sig = syscall.SIGKILL {
		deadline := time.After(orphanGrace)
		signalled := map[int]bool{}
		for late := false; !late; {
			children := others(keep)
			if len(children) == 0 {
				return
			}
			for _, pid := range children {
				if !signalled[pid] {
					signalled[pid] = true
					_ = syscall.Kill(pid, sig)
				}
				reap(pid)
			}
			select {
			case <-deadline:
				late = true
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
}

// reapOrphans takes the exit status of adopted orphans while the command runs, as init would do for them: a test that
// waits for a process to be gone must not wait for a zombie. The children to keep are waited for elsewhere.
func reapOrphans(keep []int) (stop func()) {
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-died:
				for _, pid := range others(keep) {
					reap(pid)
				}
			case <-quit:
				return
			}
		}
	}()
	return func() {
		signal.Stop(died)
		close(quit)
		<-done
	}
}

func others(keep []int) []int {
	children, err := child.Of(os.Getpid())
	if err != nil {
		say("%v", err)
	}
	return slices.DeleteFunc(children, func(pid int) bool { return slices.Contains(keep, pid) })
}

func reap(pid int) {
	_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
}

// launchers are the programs that start testenv for somebody: `go run`, which passes no signals on, and make, which can be
// killed like anyone. Without them nobody waits for the result. Another parent, a shell say, may go without us.
var launchers = []string{"go", "make"}

// watchLauncher tells when the launcher has died.
func watchLauncher() <-chan struct{} {
	parent := os.Getppid()
	name, err := os.ReadFile("/proc/" + strconv.Itoa(parent) + "/comm")
	if err != nil || !slices.Contains(launchers, string(bytes.TrimSpace(name))) {
		return nil
	}
	handle, err := unix.PidfdOpen(parent, 0)
	died := make(chan struct{})
	if err != nil || os.Getppid() != parent { // it died while we looked
		close(died)
		return died
	}
	go func() {
		defer close(died)
		for {
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, -1); err != unix.EINTR {
				return
			}
		}
	}()
	return died
}
