package need

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSmallDisk_IsFullSoonAndGoneAtTheEnd(t *testing.T) {
	var dir string
	t.Run("Inner", func(t *testing.T) {
		dir = SmallDisk(t, 1<<20)
		err := os.WriteFile(filepath.Join(dir, "much"), make([]byte, 2<<20), 0o600)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("2 MiB on a disk of 1 MiB: %v", err)
		}
	})
	if t.Failed() {
		return
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	if dir != "" && strings.Contains(string(mounts), dir) {
		t.Errorf("%s is still mounted", dir)
	}
}
