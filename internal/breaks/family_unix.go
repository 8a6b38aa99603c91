//go:build unix

package breaks

import (
	"os/exec"
	"syscall"
)

// endWithFamily gives the command a process group of its own and ends the whole group on cancel.
func endWithFamily(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
}
