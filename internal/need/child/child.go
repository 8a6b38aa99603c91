// Package child starts processes that end with the one that started them.
//
// A test server that outlives its test holds a port, a data folder and a core. Cleanup code covers the orderly ends
// only: a test binary that panics, runs into its timeout or is killed with -9 runs none. So the kernel is asked to do
// it (Linux: the parent-death signal), and cleanup code is the polite way, not the only one.
package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// Process is a started program in a process group of its own.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start starts cmd in a process group of its own and, on Linux, has the kernel send it orphaned when this process ends
// in whatever way. Fields already set in cmd.SysProcAttr are kept.
//
// The kernel ties that signal to the starting thread, not to the process, and Go ends threads at will. So the goroutine
// that starts the program keeps its thread until the program has ended.
func Start(cmd *exec.Cmd, orphaned syscall.Signal) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if !cmd.SysProcAttr.Setsid { // a session leader leads a group already
		cmd.SysProcAttr.Setpgid = true
	}
	tie(cmd.SysProcAttr, orphaned)

	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// PID is the process id, which is also the id of its group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended and its id has been given back.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end and returns what exec.Cmd.Wait returned.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Signal sends sig to the process alone. A process that has ended is not an error.
func (p *Process) Signal(sig syscall.Signal) error {
	err := p.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// SignalGroup sends sig to the process and to those of its descendants that stayed in its group. It does nothing once
// the process has ended: by then the number may be somebody else's.
func (p *Process) SignalGroup(sig syscall.Signal) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	err := syscall.Kill(-p.PID(), sig)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// Stop sends sig to the group, waits at most grace and then kills the group. It returns when the process has ended, and
// reports whether it did so without being killed.
func (p *Process) Stop(sig syscall.Signal, grace time.Duration) bool {
	_ = p.SignalGroup(sig)
	select {
	case <-p.done:
		return true
	case <-time.After(grace):
		_ = p.SignalGroup(syscall.SIGKILL)
		<-p.done
		return false
	}
}

// Unprivileged is the credential for a server that refuses to run as root (Postgres, pgbouncer): that of the user
// called name if this process is root, else nil, which means the present user.
func Unprivileged(name string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("running as root, and the server needs the user %q: %w", name, err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %q: uid %q: %w", name, u.Uid, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %q: gid %q: %w", name, u.Gid, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
