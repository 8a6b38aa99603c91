package need

import (
	"fmt"
	"testing"
)

// SmallDisk gives the test a folder on a file system of its own with room for so many bytes, to be filled up. It is
// taken away when the test ends. It needs Linux and the right to mount (root).
func SmallDisk(t testing.TB, bytes int) string {
	t.Helper()
	dir := t.TempDir()
	unmount, err := mountSmall(dir, bytes)
	if err != nil {
		missing(t, fmt.Sprintf("no small disk: this test must be able to mount a tmpfs, as root on Linux: %v", err))
	}
	t.Cleanup(func() {
		if err := unmount(); err != nil {
			t.Errorf("need: unmounting the test's disk (is a file on it still open?): %v", err)
		}
	})
	record(t, "disk")
	return dir
}
