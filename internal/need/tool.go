package need

import (
	"os/exec"
	"testing"
)

// Tool gives the test the path of a program. testenv puts those it knows into PATH, also where Debian hides them.
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, "no "+name+" in PATH")
	}
	record(t, name)
	return path
}
