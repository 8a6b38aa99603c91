//go:build unix && !linux

package guard

import (
	"errors"
	"os"
	"syscall"
)

func self() (string, error) { return os.Executable() }

// adopt does nothing: only Linux lets a process adopt orphans.
func adopt() error { return nil }

// tie does nothing: only Linux tells a child of its parent's death.
func tie(*syscall.SysProcAttr) {}

// reap takes the program's exit status, and reports whether nobody is left in its group.
func (w *watch) reap() (gone bool) {
	for !w.exited {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(w.program, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			w.exited = true
		case pid == 0:
			return false
		default:
			w.exit(status)
		}
	}
	return syscall.Kill(-w.program, 0) != nil
}

// signalAll sends a signal to the program's group.
func signalAll(w *watch, sig syscall.Signal) { _ = syscall.Kill(-w.program, sig) }

// killSession finds nothing where there is no /proc.
func killSession(int) bool { return false }
