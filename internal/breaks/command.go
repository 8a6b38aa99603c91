package breaks

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// newCommand prepares a command whose whole family ends with the context: a broken test may hang, and go test would
// leave it behind.
func newCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Dir = dir
	command.Env = environment(os.Environ())
	command.WaitDelay = 5 * time.Second
	endWithFamily(command)
	return command
}

// environment leaves out what would lead a command from the copy back to the tree it was copied from: git's own
// variables when this runs inside a git hook, a workspace named by path, and the folder the caller stood in.
func environment(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(setting string) bool {
		name, value, _ := strings.Cut(setting, "=")
		return strings.HasPrefix(name, "GIT_") || name == "GOWORK" && value != "off" || name == "PWD"
	})
}
