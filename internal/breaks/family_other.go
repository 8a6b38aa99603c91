//go:build !unix

package breaks

import "os/exec"

// endWithFamily ends the command only: there are no process groups here.
func endWithFamily(command *exec.Cmd) {
	command.Cancel = func() error { return command.Process.Kill() }
}
